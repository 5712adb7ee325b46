/**
 * HTTP/2 over three session pools: requests, watches and the lease never share a connection, because a connection
 * carries only 100 streams by default and a hundred watches would block all other requests.
 *
 * A request that was certainly not processed (GOAWAY, refused stream) is sent again on another session by this module;
 * every other failure is returned to the caller.
 */
import type { Clock } from '../clock.ts'
import { TransportError } from '../errors.ts'
import { SessionPool } from './pool.ts'
import type { Session } from './session.ts'
import {
  abortedError,
  deadlineError,
  type Exchange,
  type Lane,
  type OpenStream,
  type RawResponse,
  type Transport,
} from './transport.ts'

const MAX_SESSIONS: Record<Lane, number> = { request: 8, watch: 1000, lease: 1 }
/** With `--goaway-chance` at its maximum of 0.02, five consecutive refusals occur once in 300 million requests. */
const MAX_SENDS = 5

export interface Http2Options {
  readonly clock: Clock
  readonly tlsVersion: () => number
  readonly open: (onChange: () => void) => Promise<Session>
}

export function createHttp2Transport(options: Http2Options): Transport {
  const pools = new Map<Lane, SessionPool>()

  function poolOf(lane: Lane): SessionPool {
    let pool = pools.get(lane)
    if (pool === undefined) {
      pool = new SessionPool({ maxSessions: MAX_SESSIONS[lane], tlsVersion: options.tlsVersion, open: options.open })
      pools.set(lane, pool)
    }
    return pool
  }

  async function attempt<T>(
    exchange: Exchange,
    startedAt: number,
    use: (session: Session, left: Exchange) => Promise<T>,
  ): Promise<T> {
    for (let sends = 1; ; sends++) {
      if (exchange.signal?.aborted === true) throw abortedError(exchange, true)
      const left = { ...exchange, deadlineMs: exchange.deadlineMs - (options.clock.monotonic() - startedAt) }
      try {
        return await withDeadline(left, exchange, options.clock, async (signal) => {
          return poolOf(exchange.lane).take(signal, async (session) => use(session, left))
        })
      } catch (error) {
        const isRefused = error instanceof TransportError && error.code === 'REFUSED' && error.unprocessed
        if (!isRefused || sends === MAX_SENDS) throw error
      }
    }
  }

  return {
    send(exchange): Promise<RawResponse> {
      // A stream that is cancelled at once still reaches the server, which may process it.
      if (exchange.signal?.aborted === true) return Promise.reject(abortedError(exchange, true))
      const startedAt = options.clock.monotonic()
      const session = poolOf(exchange.lane).find()
      if (session === undefined) return attempt(exchange, startedAt, (other, left) => other.send(left))
      return session.send(exchange).catch((error: unknown) => {
        if (!(error instanceof TransportError) || error.code !== 'REFUSED') throw error
        return attempt(exchange, startedAt, (other, left) => other.send(left))
      })
    },
    async open(exchange): Promise<OpenStream> {
      return attempt(exchange, options.clock.monotonic(), async (session, left) => session.open(left))
    },
    async close() {
      await Promise.all([...pools.values()].map(async (pool) => pool.close()))
    },
    get stats() {
      const all = [...pools.values()]
      return {
        sessions: all.reduce((sum, pool) => sum + pool.sessions, 0),
        streams: all.reduce((sum, pool) => sum + pool.streams, 0),
      }
    },
  }
}

/** The wait for a session is part of the deadline; only this slow path needs its own signal. */
async function withDeadline<T>(
  left: Exchange,
  exchange: Exchange,
  clock: Clock,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const onAbort = () => controller.abort(exchange.signal?.reason)
  exchange.signal?.addEventListener('abort', onAbort, { once: true })
  let isLate = false
  const cancel = clock.after(Math.max(0, left.deadlineMs), () => {
    isLate = true
    controller.abort()
  })
  try {
    return await run(controller.signal)
  } catch (error) {
    if (isLate && error instanceof TransportError && error.code === 'ABORTED') throw deadlineError(exchange)
    throw error
  } finally {
    cancel()
    exchange.signal?.removeEventListener('abort', onAbort)
  }
}
