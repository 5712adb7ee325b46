/**
 * Selects the protocol for one server: HTTP/2 if TLS negotiates it, otherwise HTTP/1.1. The first connection decides;
 * for a server without HTTP/2 only that connection is discarded.
 */
import { setMaxListeners } from 'node:events'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { systemClock, type Clock } from '../clock.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import { dial, type DialTarget } from './dial.ts'
import { createHttp1Transport } from './http1.ts'
import { createHttp2Transport } from './http2.ts'
import { Session } from './session.ts'
import type { Exchange, Transport } from './transport.ts'
import { TransportError } from '../errors.ts'

/** Thrown by a dial that negotiated HTTP/1.1; the transport then switches. */
class NoHttp2 extends TransportError {}

export function createTransport(config: ClusterConfig, clock: Clock = systemClock): Transport {
  const server = new URL(config.server)
  const prefix = server.pathname.replace(/\/$/, '')
  const tlsVersion = () => config.credentials.tls().version
  const closing = new AbortController()
  // Any number of connections may be opened at the same time; Node warns from eleven listeners on.
  setMaxListeners(0, closing.signal)
  const target = (): DialTarget => ({
    server,
    tls: config.credentials.tls(),
    protocols: ['h2', 'http/1.1'],
    signal: closing.signal,
    ...(config.proxyUrl !== undefined && { proxyUrl: config.proxyUrl }),
    ...(config.guard !== undefined && { guard: config.guard }),
  })

  async function open(onChange: () => void): Promise<Session> {
    const version = tlsVersion()
    const socket: Socket | TLSSocket = await dial(target())
    if ('alpnProtocol' in socket && socket.alpnProtocol !== 'h2') {
      socket.on('error', () => undefined).destroy()
      throw new NoHttp2('CONNECT', `${config.server} does not support HTTP/2`, { unprocessed: true })
    }
    const abandon = () => socket.destroy()
    closing.signal.addEventListener('abort', abandon, { once: true })
    try {
      return await Session.open(socket, { origin: server.origin, tlsVersion: version, clock, onChange })
    } finally {
      closing.signal.removeEventListener('abort', abandon)
    }
  }

  const http1 = createHttp1Transport({ clock, origin: server.origin, tlsVersion, target })
  const http2 = createHttp2Transport({ clock, tlsVersion, open })
  let chosen: Transport = server.protocol === 'https:' ? http2 : http1
  /** The first response has arrived: the protocol is known. */
  let isSettled = chosen === http1

  async function choose<T>(use: (transport: Transport) => Promise<T>): Promise<T> {
    try {
      const response = await use(chosen)
      isSettled = true
      return response
    } catch (error) {
      if (!(error instanceof NoHttp2)) throw error
      chosen = http1
      isSettled = true
      return use(http1)
    }
  }

  const withPrefix = (exchange: Exchange) => (prefix === '' ? exchange : { ...exchange, path: prefix + exchange.path })

  return {
    send: (exchange) =>
      isSettled ? chosen.send(withPrefix(exchange)) : choose((transport) => transport.send(withPrefix(exchange))),
    open: (exchange) =>
      isSettled ? chosen.open(withPrefix(exchange)) : choose((transport) => transport.open(withPrefix(exchange))),
    async close() {
      closing.abort()
      await Promise.all([http1.close(), http2.close()])
    },
    get stats() {
      return chosen.stats
    },
  }
}
