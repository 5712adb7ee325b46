/**
 * HTTP(S) servers with bounds: what probes, metrics and webhooks listen with.
 *
 * Guarantees: `close` stops accepting at once, lets requests under way finish for `graceMs` and then cuts them; a client
 * that sends slowly, or nothing, cannot hold a connection for ever.
 */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { KubeError } from '../errors.ts'

export interface ListenOptions {
  /** `HOST:PORT`, `:PORT` (every interface) or `[::1]:PORT`; port 0 takes a free one. */
  listen: string
  handler: RequestListener
  /** Serves TLS with it; `Listener.secure` replaces it later. */
  tls?: { cert: string; key: string }
}

export interface Listener {
  /** `127.0.0.1:8081`, with the port really taken. */
  readonly address: string
  /** New connections use this certificate; open ones go on with theirs. */
  secure(tls: { cert: string; key: string }): void
  close(graceMs: number): Promise<void>
}

const limits = { requestTimeout: 30_000, headersTimeout: 10_000, keepAliveTimeout: 60_000, maxHeaderSize: 32_768 }
const connectionLimit = 1_000

export async function startListener({ listen, handler, tls }: ListenOptions): Promise<Listener> {
  const { host, port } = parseListen(listen)
  const server: Server | TlsServer =
    tls === undefined
      ? createServer(limits, handler)
      : createTlsServer({ ...limits, ...tls, minVersion: 'TLSv1.2' }, handler)
  server.maxConnections = connectionLimit
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    throw new KubeError('LISTEN', `cannot listen on ${listen}; is another process using the port?`, { cause: error })
  }
  // A broken handshake or request is its sender's matter; without a listener it would end the process.
  server.on('error', () => undefined)
  server.on('clientError', (_error, socket) => socket.destroy())
  return {
    address: addressOf(server.address() as AddressInfo),
    secure(next) {
      if ('setSecureContext' in server) server.setSecureContext({ ...next, minVersion: 'TLSv1.2' })
    },
    async close(graceMs) {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeIdleConnections()
      const timer = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(timer)
    },
  }
}

export function parseListen(listen: string): { host?: string; port: number } {
  const match = /^(?:\[(?<six>[0-9a-fA-F:]+)\]|(?<host>[^:[\]]*)):(?<port>\d{1,5})$/.exec(listen)
  const port = Number(match?.groups?.['port'])
  if (match === null || port > 65_535) {
    throw new KubeError('LISTEN', `cannot listen on ${JSON.stringify(listen)}; write HOST:PORT or :PORT`)
  }
  const host = match.groups?.['six'] ?? match.groups?.['host']
  return host === undefined || host === '' ? { port } : { host, port }
}

function addressOf({ address, family, port }: AddressInfo): string {
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`
}
