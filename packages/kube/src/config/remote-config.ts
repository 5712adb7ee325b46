/**
 * Kubeconfigs from Secrets: written by tenants, so treated as data, not as code. Accepts a server, CA data, and client
 * certificate data or a token; rejects everything else by name, in every entry, used or not.
 *
 * Guarantees: opens no file, starts no process, follows no reference; every rejection is a ConfigError with a code;
 * parsing is bounded (64 KiB, 10 aliases, 100 entries). Names are checked again when they are resolved
 * (address-guard.ts).
 * A test checks the imports of this file: neither node:child_process nor node:fs is reachable.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { addressGuard, type AddressGuard, type GuardOptions } from './address-guard.ts'
import type { ClusterConfig } from './cluster-config.ts'
import { staticCredentials } from './credentials.ts'
import { ConfigError } from '../errors.ts'
import { parseKubeconfig, pemField, quote, selectContext, textField, type Fields } from './kubeconfig.ts'

export interface RemoteConfigOptions extends GuardOptions {
  /** @default current-context */
  context?: string
  /** Wall clock, ms: expired certificates are rejected. @default Date.now */
  now?: () => number
}

const MAX_BYTES = 64 * 1024
const MAX_ENTRIES = 100

/** Allowed keys of each mapping; any other key is rejected, with a specific message for known dangerous ones. */
const ALLOWED = {
  kubeconfig: new Set(['apiVersion', 'kind', 'preferences', 'clusters', 'users', 'contexts', 'current-context']),
  cluster: new Set(['server', 'certificate-authority-data']),
  user: new Set(['client-certificate-data', 'client-key-data', 'token']),
  context: new Set(['cluster', 'user', 'namespace']),
}

const DANGERS = new Map([
  ['exec', 'it would run a program; put a token or client certificate data into the Secret'],
  ['auth-provider', 'it would run a program or send credentials elsewhere; use a token or client certificate data'],
  ['tokenFile', 'it would read a file of ours; use token'],
  ['certificate-authority', 'it would read a file of ours; use certificate-authority-data'],
  ['client-certificate', 'it would read a file of ours; use client-certificate-data'],
  ['client-key', 'it would read a file of ours; use client-key-data'],
  ['proxy-url', 'it would send our traffic elsewhere'],
  ['insecure-skip-tls-verify', 'any server could impersonate the cluster; use certificate-authority-data'],
  ['tls-server-name', 'the certificate must match the server'],
  ['username', 'use a token or client certificate data'],
  ['password', 'use a token or client certificate data'],
  ['as', 'impersonation is not for the kubeconfig of a member cluster'],
])

export function parseRemoteConfig(text: string, options: RemoteConfigOptions = {}): ClusterConfig {
  const config = parseKubeconfig(text, { maxBytes: MAX_BYTES, maxEntries: MAX_ENTRIES, uniqueNames: true })
  refuseOthers(config.fields, 'kubeconfig', 'the kubeconfig')
  const preferences = config.fields.get('preferences')
  if (preferences instanceof Map ? preferences.size > 0 : preferences !== undefined && preferences !== null) {
    throw new ConfigError('REFUSED', 'kubeconfig: preferences are refused')
  }
  for (const [name, fields] of config.clusters) refuseOthers(fields, 'cluster', `cluster ${quote(name)}`)
  for (const [name, fields] of config.users) refuseOthers(fields, 'user', `user ${quote(name)}`)
  for (const [name, fields] of config.contexts) refuseOthers(fields, 'context', `context ${quote(name)}`)

  const { name, context, cluster, user } = selectContext(config, options.context)
  const guard = addressGuard(options)
  const where = `the cluster of context ${quote(name)}`
  const server = readServer(cluster, where, guard, options.allowLoopback === true)
  const now = (options.now ?? Date.now)()
  const ca = readCertificates(cluster, 'certificate-authority-data', where, now)
  const identity = readIdentity(user, `the user of context ${quote(name)}`, now)
  return {
    name,
    server,
    namespace: textField(context, 'namespace', `context ${quote(name)}`) ?? 'default',
    credentials: staticCredentials(identity.token === undefined ? {} : { authorization: `Bearer ${identity.token}` }, {
      ...(ca !== undefined && { ca }),
      ...identity.pair,
    }),
    guard,
  }
}

function refuseOthers(fields: Fields, sort: keyof typeof ALLOWED, where: string): void {
  for (const key of fields.keys()) {
    if (typeof key === 'string' && ALLOWED[sort].has(key)) continue
    const why = typeof key === 'string' ? DANGERS.get(key) : undefined
    const shown = typeof key === 'string' ? quote(key) : 'a key that is not text'
    throw new ConfigError(
      'REFUSED',
      `kubeconfig: ${shown} in ${where} is refused: ${why ?? 'it is not known to be safe'}`,
    )
  }
}

function readServer(cluster: Fields, where: string, guard: AddressGuard, allowLoopback: boolean): string {
  const server = textField(cluster, 'server', where)
  if (server === undefined) throw new ConfigError('NO_SERVER', `kubeconfig: ${where} has no server`)
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (url === undefined || url.protocol !== 'https:') {
    throw new ConfigError('BAD_SERVER', `kubeconfig: server of ${where} must be an https URL`)
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '' || url.pathname !== '/') {
    throw new ConfigError('BAD_SERVER', `kubeconfig: server of ${where} must be only https://host:port`)
  }
  if (/[\s\\@]/.test(server)) {
    throw new ConfigError('BAD_SERVER', `kubeconfig: server of ${where} holds characters that hide its host`)
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const bare = host.replace(/\.+$/, '')
  if (!allowLoopback && (bare === 'localhost' || bare.endsWith('.localhost'))) {
    throw new ConfigError(
      'BAD_ADDRESS',
      `kubeconfig: server of ${where} is this machine itself; allowLoopback lets it be used`,
    )
  }
  const refusal = isIP(bare) === 0 ? undefined : guard(bare)
  if (refusal !== undefined) throw new ConfigError('BAD_ADDRESS', `kubeconfig: server of ${where}: ${refusal}`)
  return url.origin
}

function readCertificates(fields: Fields, key: string, where: string, now: number): string | undefined {
  const pem = pemField(fields, key, where)
  if (pem === undefined) return undefined
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) throw new ConfigError('BAD_DATA', `kubeconfig: ${key} of ${where} holds no certificate`)
  for (const block of blocks) {
    let ends: number
    try {
      ends = Date.parse(new X509Certificate(block).validTo)
    } catch {
      throw new ConfigError('BAD_DATA', `kubeconfig: ${key} of ${where} holds a certificate that cannot be read`)
    }
    if (ends <= now) {
      throw new ConfigError(
        'EXPIRED',
        `kubeconfig: ${key} of ${where} holds a certificate that ended ${new Date(ends).toISOString()}`,
      )
    }
  }
  return blocks.join('\n')
}

interface Identity {
  token?: string
  pair?: { cert: string; key: string }
}

function readIdentity(user: Fields, who: string, now: number): Identity {
  const token = textField(user, 'token', who)
  // Other characters would end or split the header.
  if (token !== undefined && !/^[\x21-\x7e]{1,16384}$/.test(token)) {
    throw new ConfigError('BAD_DATA', `kubeconfig: token of ${who} holds characters that no token has`)
  }
  const cert = readCertificates(user, 'client-certificate-data', who, now)
  const key = pemField(user, 'client-key-data', who)
  if ((cert === undefined) !== (key === undefined)) {
    throw new ConfigError('BAD_DATA', `kubeconfig: ${who} has a client certificate or key without the other`)
  }
  if (cert === undefined || key === undefined) {
    if (token === undefined)
      throw new ConfigError('NO_CREDENTIALS', `kubeconfig: ${who} has neither token nor client certificate`)
    return { token }
  }
  if (!isPair(cert, key))
    throw new ConfigError('BAD_DATA', `kubeconfig: certificate and key of ${who} do not belong together`)
  return { pair: { cert, key }, ...(token !== undefined && { token }) }
}

function isPair(cert: string, key: string): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
