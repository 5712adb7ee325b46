/**
 * HTTP/1.1 through undici, for plain http and for servers without HTTP/2. Loaded at first use: most processes never
 * need it, and it costs 100 ms and 20 MB.
 *
 * undici's own timeouts are disabled: they would abort the body of an idle watch after 300 s. This module enforces the
 * deadlines; a watch is supervised by the reflector.
 */
import type { Pool } from 'undici'
import type { Clock } from '../clock.ts'
import { messageOf, TransportError } from '../errors.ts'
import { dial, type DialTarget } from './dial.ts'
import {
  abortedError,
  deadlineError,
  tooLargeError,
  whatOf,
  type Exchange,
  type Lane,
  type Transport,
} from './transport.ts'

const CONNECTIONS: Record<Lane, number | null> = { request: 16, watch: null, lease: 1 }

export interface Http1Options {
  readonly clock: Clock
  readonly origin: string
  readonly tlsVersion: () => number
  readonly target: () => DialTarget
}

export function createHttp1Transport(options: Http1Options): Transport {
  const pools = new Map<Lane, { version: number; pool: Pool }>()
  const retired = new Set<Pool>()
  let isClosed = false

  async function poolOf(lane: Lane): Promise<Pool> {
    const { Pool } = await import('./undici-pool.ts')
    if (isClosed) throw new TransportError('CLOSED', 'the client is closed', { unprocessed: true })
    const version = options.tlsVersion()
    const current = pools.get(lane)
    if (current?.version === version) return current.pool
    if (current !== undefined) {
      const { pool: old } = current
      retired.add(old)
      old
        .close()
        .catch(() => undefined)
        .finally(() => retired.delete(old))
    }
    const pool = new Pool(options.origin, {
      connections: CONNECTIONS[lane],
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 60_000,
      connect: (_request, connected) => {
        dial({ ...options.target(), protocols: ['http/1.1'] }).then(
          (socket) => connected(null, socket),
          (error: unknown) => connected(error instanceof Error ? error : new Error(messageOf(error)), null),
        )
      },
    })
    pools.set(lane, { version, pool })
    return pool
  }

  /** Combines deadline and abort in one signal; `why` returns which of them occurred. */
  function guard(exchange: Exchange) {
    const controller = new AbortController()
    let why: TransportError | undefined
    const stop = (error: TransportError) => {
      why ??= error
      controller.abort()
    }
    const onAbort = () => stop(abortedError(exchange))
    const cancel = options.clock.after(Math.max(0, exchange.deadlineMs), () => stop(deadlineError(exchange)))
    if (exchange.signal?.aborted === true) onAbort()
    exchange.signal?.addEventListener('abort', onAbort, { once: true })
    return {
      signal: controller.signal,
      stop,
      cancelDeadline: cancel,
      release: () => {
        cancel()
        exchange.signal?.removeEventListener('abort', onAbort)
      },
      explain: (cause: unknown): TransportError => {
        if (why !== undefined) return why
        if (cause instanceof TransportError) return cause
        return new TransportError('RESET', `${whatOf(exchange)}: ${messageOf(cause)}`, { cause })
      },
    }
  }

  async function start(exchange: Exchange, signal: AbortSignal) {
    const pool = await poolOf(exchange.lane)
    return pool.request({
      path: exchange.path,
      method: exchange.method,
      headers: exchange.headers as Record<string, string | string[]>,
      signal,
      ...(exchange.body !== undefined && { body: exchange.body }),
    })
  }

  return {
    async send(exchange) {
      const guarded = guard(exchange)
      try {
        const { statusCode, headers, body } = await start(exchange, guarded.signal)
        const chunks: Buffer[] = []
        let bytes = 0
        for await (const chunk of body) {
          chunks.push(chunk as Buffer)
          bytes += (chunk as Buffer).length
          if (bytes > exchange.maxBodyBytes) throw tooLargeError(exchange)
        }
        return { status: statusCode, headers, body: Buffer.concat(chunks, bytes) }
      } catch (error) {
        throw guarded.explain(error)
      } finally {
        guarded.release()
      }
    },
    async open(exchange) {
      const guarded = guard(exchange)
      try {
        const { statusCode, headers, body } = await start(exchange, guarded.signal)
        guarded.cancelDeadline()
        body.once('close', guarded.release)
        const cancel = () => guarded.stop(abortedError(exchange))
        return { status: statusCode, headers, body, cancel }
      } catch (error) {
        guarded.release()
        throw guarded.explain(error)
      }
    },
    async close() {
      isClosed = true
      const all = [...[...pools.values()].map(({ pool }) => pool), ...retired]
      await Promise.all(all.map(async (pool) => pool.destroy()))
    },
    get stats() {
      const all = [...pools.values()].map(({ pool }) => pool.stats)
      return {
        sessions: all.reduce((sum, { connected }) => sum + connected, 0),
        streams: all.reduce((sum, { running }) => sum + running, 0),
      }
    },
  }
}
