/** The CA of the server, its serving certificate, and kubeconfigs for clients. */
import { randomBytes } from 'node:crypto'
import type { TlsOptions } from './http-server.ts'
import { issueServingCertificate, type ServingAuthority } from './serving-certificate.ts'

export interface ServingCredentials {
  readonly tls: TlsOptions
  readonly caPem: string
}

/** A serving certificate for `host` and the usual local names. @param authority a new one by default */
export function issueServingCredentials(host: string, nowMs: number, authority?: ServingAuthority): ServingCredentials {
  const hosts = new Set([
    'localhost',
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    '127.0.0.1',
    '::1',
    '10.96.0.1',
    host,
  ])
  const { caPem, certPem, keyPem } = issueServingCertificate([...hosts], nowMs, authority)
  return { tls: { cert: certPem, key: keyPem, ca: caPem }, caPem }
}

export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

export interface KubeconfigRequest {
  readonly server: string
  readonly caPem?: string
  readonly token?: string
  /** @default admin */
  readonly user?: string
  /** Names of additional logical clusters, each with its own context. */
  readonly clusters?: readonly string[]
}

/** YAML; the first context is the current one. */
export function writeKubeconfig(request: KubeconfigRequest): string {
  const { server, caPem, token, user = 'admin', clusters = [] } = request
  const entries = [
    { name: 'seamark', url: server },
    ...clusters.map((name) => ({ name, url: `${server}/clusters/${name}` })),
  ]
  const ca = caPem === undefined ? '' : `\n      certificate-authority-data: ${Buffer.from(caPem).toString('base64')}`
  return [
    'apiVersion: v1',
    'kind: Config',
    'current-context: seamark',
    'clusters:',
    ...entries.map(({ name, url }) => `  - name: ${name}\n    cluster:\n      server: ${url}${ca}`),
    'users:',
    `  - name: ${user}\n    user:${token === undefined ? ' {}' : `\n      token: ${token}`}`,
    'contexts:',
    ...entries.map(({ name }) => `  - name: ${name}\n    context:\n      cluster: ${name}\n      user: ${user}`),
    '',
  ].join('\n')
}
