/**
 * Requests with credentials, retries and deadlines; below it the transport, above it the typed client and the watches.
 *
 * Guarantees: a 401 loads fresh credentials and is retried once; `Retry-After` is honoured up to ten times while the
 * deadline allows; a write is repeated only when the server certainly did not act on it, or when repeating it cannot
 * do harm. Anything else reaches the caller as a typed error.
 */
import { setMaxListeners } from 'node:events'
import { systemClock, sleep, type Clock } from '../clock.ts'
import type { RawRequest, RawResponse, RequestObserver } from './client.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import type { AuthHeaders } from '../config/credentials.ts'
import { apiError, TransportError, type ApiError } from '../errors.ts'
import type { Status } from '../object/object.ts'
import { createTransport } from '../transport/connect.ts'
import type { Exchange, OpenStream, Transport } from '../transport/transport.ts'
import { requestedWaitMs, spreadWaitMs } from '../requested-wait.ts'

export interface RestRequest extends Omit<RawRequest, 'lane'> {
  lane?: 'request' | 'lease' | 'watch' | undefined
  /** Sending it twice has the effect of sending it once. @default true for all but POST and PATCH */
  isIdempotent?: boolean | undefined
  maxBodyBytes?: number | undefined
}

/** Throws when a write must not be sent. */
export type WriteGuard = (write: { readonly method: string; readonly path: string }) => void

export interface Rest {
  readonly host: string
  call(request: RestRequest): Promise<RawResponse>
  /** A streaming answer; rejects with an ApiError unless the status is 200. */
  stream(request: RestRequest): Promise<OpenStream>
  /** See `Cluster.guardWrites`. */
  readonly guardWrites: (check: WriteGuard) => void
  readonly close: () => Promise<void>
  readonly transport: Transport
}

export interface RestOptions {
  clock?: Clock
  random?: () => number
  observer?: RequestObserver
  userAgent?: string
  /** @default HTTP/2 or HTTP/1.1, as the server speaks */
  transport?: Transport
}

type Answer = RawResponse | OpenStream

const DEADLINE_MS = 30_000
/** An object is at most 1.5 MB in etcd; a page of 500 big ones still fits. */
const MAX_BODY_BYTES = 512 * 2 ** 20
const MAX_ERROR_BYTES = 2 ** 20
const MAX_RETRIES = 10

export function createRest(config: ClusterConfig, options: RestOptions = {}): Rest {
  const { clock = systemClock, random = Math.random, observer, userAgent = 'seamark' } = options
  const transport = options.transport ?? createTransport(config, clock)
  const { host } = new URL(config.server)
  let writeGuard: WriteGuard | undefined

  /** The headers of the last request: those of the next are nearly always the same. */
  let last: { of: RestRequest['headers']; auth: AuthHeaders; merged: Exchange['headers'] } | undefined

  function headersOf({ headers }: RestRequest, auth: AuthHeaders): Exchange['headers'] {
    if (last === undefined || last.of !== headers || last.auth !== auth) {
      const merged = { accept: 'application/json', 'user-agent': userAgent, ...headers, ...auth }
      last = { of: headers, auth, merged }
    }
    return last.merged
  }

  function exchangeOf(request: RestRequest, auth: AuthHeaders, leftMs: number): Exchange {
    return {
      method: request.method,
      path: request.query === undefined ? request.path : request.path + queryString(request.query),
      headers: headersOf(request, auth),
      lane: request.lane ?? 'request',
      deadlineMs: leftMs,
      maxBodyBytes: request.maxBodyBytes ?? MAX_BODY_BYTES,
      body: request.body,
      signal: request.signal,
    }
  }

  /** Every exchange is counted, also those that got no answer. */
  function observe({ method, body }: Exchange, startedAt: number, retry: number, answer: Answer | undefined): void {
    observer?.request({
      code: answer === undefined ? '<error>' : String(answer.status),
      method,
      host,
      durationMs: clock.monotonic() - startedAt,
      sentBytes: body === undefined ? 0 : Buffer.byteLength(body),
      receivedBytes: Buffer.isBuffer(answer?.body) ? answer.body.length : 0,
      retry,
    })
  }

  async function attempts<T extends Answer>(
    request: RestRequest,
    run: (exchange: Exchange) => Promise<T>,
    drop: (answer: T) => void,
  ): Promise<T> {
    const { method, deadlineMs = DEADLINE_MS, signal } = request
    // One signal may stand for any number of requests; Node would call eleven of them a leak.
    if (signal instanceof AbortSignal) setMaxListeners(0, signal)
    const isIdempotent = request.isIdempotent ?? (method !== 'POST' && method !== 'PATCH')
    const startedAt = clock.monotonic()
    let hasRenewed = false
    let hasRepeated = false
    let sends = 0
    for (let retries = 0; ; retries++) {
      const loaded = config.credentials.headers()
      const auth = loaded instanceof Promise ? await loaded : loaded
      if (method !== 'GET') writeGuard?.(request)
      const sentAt = clock.monotonic()
      const exchange = exchangeOf(request, auth, deadlineMs - (sentAt - startedAt))
      let answer: T
      try {
        answer = await run(exchange)
      } catch (error) {
        observe(exchange, sentAt, sends++, undefined)
        // A connection that died under a read: once more on another. A dead server is reported, not hidden.
        if (hasRepeated || method !== 'GET' || !(error instanceof TransportError) || error.code !== 'RESET') throw error
        hasRepeated = true
        continue
      }
      observe(exchange, sentAt, sends++, answer)
      if (answer.status === 401 && !hasRenewed) {
        hasRenewed = true
        config.credentials.invalidate(auth)
        drop(answer)
        continue
      }
      const waitMs = retryAfterMs(answer)
      const mayRepeat =
        answer.status === 429 ||
        (isIdempotent && (answer.status === 503 || answer.status === 500 || answer.status === 504))
      if (waitMs === undefined || !mayRepeat || retries >= MAX_RETRIES) return answer
      // Clients that were refused together must not come back together.
      const jitteredMs = spreadWaitMs(waitMs, random())
      if (clock.monotonic() - startedAt + jitteredMs >= deadlineMs) return answer
      drop(answer)
      await sleep(clock, jitteredMs, request.signal)
    }
  }

  // Plain functions that pass a promise on: each async layer would cost three more turns of the microtask queue.
  const send = (exchange: Exchange) => transport.send(exchange)
  const open = (exchange: Exchange) => transport.open(exchange)
  const nothingToDrop = () => undefined

  return {
    host,
    transport,
    guardWrites: (check) => (writeGuard = check),
    call: (request) => attempts(request, send, nothingToDrop),
    async stream(request) {
      const cancel = (answer: OpenStream) => {
        answer.body.on('error', () => undefined)
        answer.cancel()
      }
      const answer = await attempts({ lane: 'watch', ...request }, open, cancel)
      if (answer.status === 200) return answer
      const body = await readBody(answer, MAX_ERROR_BYTES)
      throw errorOf(request, { status: answer.status, headers: answer.headers, body })
    },
    close: async () => transport.close(),
  }
}

async function readBody(answer: OpenStream, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of answer.body) {
      chunks.push(chunk as Buffer)
      bytes += (chunk as Buffer).length
      if (bytes > maxBytes) break
    }
  } catch {
    // The status alone says enough.
  }
  answer.cancel()
  return Buffer.concat(chunks)
}

/** Seconds, as kube-apiserver sends them; dates are not used by it and are ignored. */
function retryAfterMs({ headers }: { headers: RawResponse['headers'] }): number | undefined {
  return requestedWaitMs(headers['retry-after'])
}

function queryString(query: Readonly<Record<string, string | undefined>>): string {
  let text = ''
  for (const key in query) {
    const value = query[key]
    if (value !== undefined) text += `${text === '' ? '?' : '&'}${key}=${encodeURIComponent(value)}`
  }
  return text
}

/** The typed error of an answer that is not a success. The body is read only if it is a Status. */
export function errorOf(request: Pick<RestRequest, 'method' | 'path'>, response: RawResponse): ApiError {
  let status: Status | undefined
  try {
    const parsed = JSON.parse(response.body.toString('utf8')) as Partial<Status> | null
    if (parsed?.kind === 'Status') status = parsed as Status
  } catch {
    // A proxy's HTML page, or an empty body.
  }
  status ??= { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: response.status }
  // 0 is how a Status without a wait may be written.
  const waitMs = retryAfterMs(response) ?? (requestedWaitMs(status.details?.retryAfterSeconds) || undefined)
  return apiError(`${request.method} ${request.path}`, response.status, status, waitMs)
}
