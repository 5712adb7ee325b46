/** The HTTP server of `seamark dnslb --port`: /healthz and /metrics, without TLS, on all interfaces. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface DnslbServerOptions {
  /** 0: a free one. */
  readonly port: number
  readonly health: () => { readonly isHealthy: boolean; readonly text: string }
  readonly metrics: () => Promise<string>
}

export interface DnslbServer {
  readonly port: number
  close(): Promise<void>
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export async function startDnslbServer({ port, health, metrics }: DnslbServerOptions): Promise<DnslbServer> {
  const server = createServer((request, response) => {
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
  })
  server.requestTimeout = 10_000
  server.listen(port)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
