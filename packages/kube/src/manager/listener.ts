/**
 * HTTP(S) servers with limits, used for probes, metrics and webhooks.
 *
 * Guarantees: `close` stops accepting at once, lets requests in progress finish for `graceMs` and then closes them; a
 * client that sends slowly, or nothing, cannot hold a connection indefinitely.
 */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { limitConnections, type ConnectionLimits } from '../connection-table.ts'
import { KubeError } from '../errors.ts'

export interface ListenOptions {
  /** `HOST:PORT`, `:PORT` (every interface) or `[::1]:PORT`; port 0 selects a free one. */
  listen: string
  handler: RequestListener
  /** Serves TLS with this certificate; `Listener.secure` replaces it later. */
  tls?: { cert: string; key: string }
}

export interface Listener {
  /** The bound address, e.g. `127.0.0.1:8081`. */
  readonly address: string
  /** New connections use this certificate; open ones keep theirs. */
  secure(tls: { cert: string; key: string }): void
  close(graceMs: number): Promise<void>
}

/** Of each listener of a manager: a flood of one takes nothing from the probes. */
const LISTENER_LIMITS = {
  maxConnections: 1_000,
  maxPerAddress: 250,
  headersTimeoutMs: 10_000,
  idleTimeoutMs: 60_000,
} as const satisfies ConnectionLimits

const limits = {
  requestTimeout: 30_000,
  headersTimeout: LISTENER_LIMITS.headersTimeoutMs,
  keepAliveTimeout: LISTENER_LIMITS.idleTimeoutMs,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 32_768,
}

export async function startListener({ listen, handler, tls }: ListenOptions): Promise<Listener> {
  const { host, port } = parseListen(listen)
  const server: Server | TlsServer =
    tls === undefined
      ? createServer(limits, handler)
      : createTlsServer({ ...limits, ...tls, minVersion: 'TLSv1.2' }, handler)
  limitConnections(server, LISTENER_LIMITS)
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    throw new KubeError('LISTEN', `cannot listen on ${listen}; is another process using the port?`, { cause: error })
  }
  // Errors of a single handshake or request are ignored; without a listener they would end the process.
  server.on('error', () => undefined)
  server.on('clientError', (_error, socket) => socket.destroy())
  // Node gives a tunnel to nobody else.
  server.on('connect', (_request, socket) => {
    socket.on('error', () => undefined)
    socket.end('HTTP/1.1 405 Method Not Allowed\r\nallow: GET, HEAD\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
  })
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
