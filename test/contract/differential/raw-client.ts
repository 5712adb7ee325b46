/** A plain HTTPS client configured by a kubeconfig, without layers that could hide a difference. */
import { Agent, request as httpsRequest } from 'node:https'
import type { IncomingHttpHeaders } from 'node:http'
import { parse } from 'yaml'

export interface RawRequest {
  method: string
  /** Path and query. */
  path: string
  headers?: Readonly<Record<string, string>>
  body?: string | Buffer
  /** A stream: the number of lines to read before disconnecting. */
  lines?: number
}

export interface RawAnswer {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

export interface RawClient {
  send(request: RawRequest): Promise<RawAnswer>
  close(): void
}

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
  users: { user: { token?: string; 'client-certificate-data'?: string; 'client-key-data'?: string } }[]
}

const streamTimeoutMs = 10_000

/** `isAnonymous` ignores the credentials of the kubeconfig. */
export function rawClient(kubeconfig: string, isAnonymous = false): RawClient {
  const { clusters, users } = parse(kubeconfig) as Kubeconfig
  const [cluster, user] = [clusters[0]?.cluster, isAnonymous ? {} : users[0]?.user]
  if (cluster === undefined || user === undefined) throw new Error('the kubeconfig names no cluster or no user')
  const ca = decode(cluster['certificate-authority-data'])
  const cert = decode(user['client-certificate-data'])
  const key = decode(user['client-key-data'])
  const server = new URL(cluster.server)
  const agent = new Agent({ keepAlive: true, ca, cert, key })
  const authorization = user.token === undefined ? {} : { authorization: `Bearer ${user.token}` }

  return {
    close: () => agent.destroy(),
    async send({ method, path, headers = {}, body, lines }) {
      return new Promise((resolve, reject) => {
        // Node sends the body of a DELETE without framing unless its length is set.
        const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
        const target = { hostname: server.hostname, port: server.port, path }
        const options = { ...target, method, agent, headers: { ...authorization, ...length, ...headers } }
        const outgoing = httpsRequest(options, (incoming) => {
          let text = ''
          let count = 0
          const finish = () => {
            clearTimeout(timer)
            const whole = lines === undefined ? text : text.split('\n').slice(0, lines).join('\n')
            resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text: whole })
          }
          const timer = setTimeout(() => incoming.destroy(), streamTimeoutMs)
          incoming.setEncoding('utf8').on('data', (chunk: string) => {
            text += chunk
            count += chunk.split('\n').length - 1
            if (lines !== undefined && count >= lines) incoming.destroy()
          })
          incoming.once('error', () => undefined)
          incoming.once('close', finish)
        })
        outgoing.once('error', reject)
        outgoing.end(body)
      })
    },
  }
}

function decode(base64: string | undefined): string | undefined {
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64').toString()
}
