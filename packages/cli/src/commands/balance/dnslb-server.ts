/** The HTTP server of `seamark dnslb --port`: /healthz and /metrics, without TLS, with the limits of a manager's listeners. */
import type { RequestListener } from 'node:http'
import { parseListen, startListener } from '@seamark/kube'

export interface DnslbServerOptions {
  /** `HOST:PORT`, or `:PORT` on all interfaces; port 0: a free one. */
  readonly listen: string
  readonly health: () => { readonly isHealthy: boolean; readonly text: string }
  readonly metrics: () => Promise<string>
}

export interface DnslbServer {
  /** Where it is reached: the loopback address when it listens on all interfaces. */
  readonly address: string
  close(): Promise<void>
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export async function startDnslbServer({ listen, health, metrics }: DnslbServerOptions): Promise<DnslbServer> {
  const handler: RequestListener = (request, response) => {
    const send = (status: number, type: string, text: string): void => {
      response.writeHead(status, { 'content-type': type })
      response.end(request.method === 'HEAD' ? undefined : text)
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') return send(405, 'text/plain', 'method not allowed\n')
    const path = request.url?.split('?')[0]
    if (path === '/healthz') {
      const { isHealthy, text } = health()
      return send(isHealthy ? 200 : 500, 'text/plain', text)
    }
    if (path !== '/metrics') return send(404, 'text/plain', 'not found\n')
    metrics().then(
      (text) => send(200, METRICS_TYPE, text),
      () => send(500, 'text/plain', 'metrics cannot be collected\n'),
    )
    return undefined
  }
  const listener = await startListener({ listen, handler })
  const { host } = parseListen(listen)
  const port = listener.address.slice(listener.address.lastIndexOf(':') + 1)
  return {
    address: `${host === undefined ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`,
    close: async () => listener.close(0),
  }
}
