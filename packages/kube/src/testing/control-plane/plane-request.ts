/**
 * Requests of the test harness itself, over plain node:https: assertions must not depend on the client under test.
 */
import type { Agent } from 'node:https'
import { request as httpsRequest } from 'node:https'
import type { AuthHeaders } from '../../config/credentials.ts'

export interface Reply {
  status: number
  body: unknown
}

export interface Endpoint {
  server: string
  /** @default the roots of the system */
  caPem?: string
  agent: Agent
}

/** Credentials of a request: a client certificate, headers, or both. */
export interface Access {
  name: string
  certPem?: string
  keyPem?: string
  headers?: AuthHeaders
}

export async function sendRequest(
  { server, caPem, agent }: Endpoint,
  access: Access,
  method: string,
  path: string,
  body?: unknown,
  type = 'application/json',
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const headers = {
      accept: 'application/json',
      ...(access.headers as NodeJS.Dict<string | string[]>),
      ...(body !== undefined && { 'content-type': type }),
    }
    const tls = { ca: caPem, cert: access.certPem, key: access.keyPem }
    const outgoing = httpsRequest(new URL(server + path), { method, headers, agent, ...tls }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      incoming.once('error', reject)
      incoming.once('end', () => {
        const isJson = incoming.headers['content-type']?.startsWith('application/json') === true
        resolve({ status: incoming.statusCode ?? 0, body: isJson ? JSON.parse(text) : text })
      })
    })
    outgoing.once('error', reject)
    outgoing.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** A kubeconfig with inline credentials, as JSON (which is YAML). */
export function kubeconfigOf({ server, caPem }: Endpoint, access: Access): string {
  const base64 = (text: string | undefined) => (text === undefined ? undefined : Buffer.from(text).toString('base64'))
  const authorization = access.headers?.['authorization']
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': base64(caPem) } }],
    users: [
      {
        name: access.name,
        user: {
          'client-certificate-data': base64(access.certPem),
          'client-key-data': base64(access.keyPem),
          token: typeof authorization === 'string' ? authorization.replace(/^Bearer /, '') : undefined,
        },
      },
    ],
    contexts: [{ name: 'test', context: { cluster: 'test', user: access.name } }],
  })
}
