/**
 * Requests with credentials, retries and deadlines; between the transport and the typed client and watches.
 *
 * Guarantees: a 401 loads fresh credentials and is retried once; `Retry-After` is honoured up to ten times within the
 * deadline; a write is repeated only if the server certainly did not process it, or if it is idempotent. Other failures
 * reject with a typed error.
 */
import { setMaxListeners } from 'node:events'
import { systemClock, sleep, type Clock } from '../clock.ts'
import type { RawRequest, RequestObserver } from './client.ts'
import type { ClusterConfig } from '../config/cluster-config.ts'
import type { AuthHeaders } from '../config/credentials.ts'
import { apiError, TransportError, type ApiError } from '../errors.ts'
import type { Status } from '../object/object.ts'
import { cleanText, CredentialFilter } from '../server-text.ts'
import { createTransport } from '../transport/connect.ts'
import type { Exchange, OpenStream, RawResponse, Transport } from '../transport/transport.ts'
import { requestedWaitMs, spreadWaitMs } from '../requested-wait.ts'

export interface RestRequest extends Omit<RawRequest, 'lane' | 'maxBodyBytes'> {
  lane?: 'request' | 'lease' | 'watch' | undefined
  /** Sending it twice has the same effect as once. @default true for all but POST and PATCH */
  isIdempotent?: boolean | undefined
  maxBodyBytes?: number | undefined
}

/** Throws if a write must not be sent. */
export type WriteGuard = (write: { readonly method: string; readonly path: string }) => void

export interface Rest {
  readonly host: string
  call(request: RestRequest): Promise<RawResponse>
  /** A streaming response; rejects with an ApiError unless the status is 200. */
  stream(request: RestRequest): Promise<OpenStream>
  /** See `Cluster.guardWrites`. */
  readonly guardWrites: (check: WriteGuard) => void
  readonly close: () => Promise<void>
  readonly transport: Transport
  /** The typed error of an unsuccessful response. The body is used only if it is a Status. */
  errorOf(request: Pick<RestRequest, 'method' | 'path'>, response: RawResponse): ApiError
  /** Of an ERROR event of a watch. */
  frameError(what: string, status: Status): ApiError
  /** What was sent to authenticate is removed from what the server answers. */
  readonly credentials: Pick<CredentialFilter, 'body'>
}

export interface RestOptions {
  clock?: Clock
  random?: () => number
  observer?: RequestObserver
  userAgent?: string
  /** @default HTTP/2 or HTTP/1.1, as negotiated */
  transport?: Transport
}

/** As client-go's metrics name it. */
export const NO_RESPONSE = '<error>'

type AnyResponse = RawResponse | OpenStream

const DEADLINE_MS = 30_000
/** An object is at most 1.5 MB in etcd; a page of 500 large ones still fits. */
const MAX_BODY_BYTES = 512 * 2 ** 20
const MAX_ERROR_BYTES = 2 ** 20
/** Characters of the message of a failed connection; TLS errors have names out of the certificate of the server. */
const MAX_ERROR_LENGTH = 1_024
const MAX_RETRIES = 10

export function createRest(config: ClusterConfig, options: RestOptions = {}): Rest {
  const { clock = systemClock, random = Math.random, observer, userAgent = 'seamark' } = options
  const transport = options.transport ?? createTransport(config, clock)
  const { host } = new URL(config.server)
  const sent = new CredentialFilter()
  let writeGuard: WriteGuard | undefined

  /** The headers of the last request, reused because those of the next are nearly always the same. */
  let last: { of: RestRequest['headers']; auth: AuthHeaders; merged: Exchange['headers'] } | undefined

  function headersOf({ headers }: RestRequest, auth: AuthHeaders): Exchange['headers'] {
    if (last === undefined || last.of !== headers || last.auth !== auth) {
      const merged = { accept: 'application/json', 'user-agent': userAgent, ...headers, ...auth }
      if (last?.auth !== auth) sent.remember(auth)
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

  /** Every exchange is counted, including those without a response. */
  function observe(
    { method, body }: Exchange,
    startedAt: number,
    retry: number,
    response: AnyResponse | undefined,
  ): void {
    observer?.request({
      code: response === undefined ? NO_RESPONSE : String(response.status),
      method,
      host,
      durationMs: clock.monotonic() - startedAt,
      sentBody: body,
      receivedBytes: Buffer.isBuffer(response?.body) ? response.body.length : 0,
      retry,
    })
  }

  async function attempts<T extends AnyResponse>(
    request: RestRequest,
    run: (exchange: Exchange) => Promise<T>,
    discard: (response: T) => void,
  ): Promise<T> {
    const { method, deadlineMs = DEADLINE_MS, signal } = request
    // One signal may be used by any number of requests; Node warns from eleven listeners on.
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
      let response: T
      try {
        response = await run(exchange)
      } catch (error) {
        observe(exchange, sentAt, sends++, undefined)
        if (error instanceof Error) error.message = cleanText(sent.text(error.message), MAX_ERROR_LENGTH)
        // Retry a read once on another connection if its connection was lost. A second failure is returned.
        if (hasRepeated || method !== 'GET' || !(error instanceof TransportError) || error.code !== 'RESET') throw error
        hasRepeated = true
        continue
      }
      observe(exchange, sentAt, sends++, response)
      if (response.status === 401 && !hasRenewed) {
        hasRenewed = true
        config.credentials.invalidate(auth)
        discard(response)
        continue
      }
      const waitMs = retryAfterMs(response)
      const mayRepeat =
        response.status === 429 ||
        (isIdempotent && (response.status === 503 || response.status === 500 || response.status === 504))
      if (waitMs === undefined || !mayRepeat || retries >= MAX_RETRIES) return response
      // Jitter: clients that were rejected together must not retry together.
      const jitteredMs = spreadWaitMs(waitMs, random())
      if (clock.monotonic() - startedAt + jitteredMs >= deadlineMs) return response
      discard(response)
      await sleep(clock, jitteredMs, request.signal)
    }
  }

  // Not async functions: each async layer would cost three more microtask turns.
  const send = (exchange: Exchange) => transport.send(exchange)
  const open = (exchange: Exchange) => transport.open(exchange)
  const nothingToDiscard = () => undefined

  return {
    host,
    transport,
    guardWrites: (check) => (writeGuard = check),
    call: (request) => attempts(request, send, nothingToDiscard),
    async stream(request) {
      const cancel = (response: OpenStream) => {
        response.body.on('error', () => undefined)
        response.cancel()
      }
      const response = await attempts({ lane: 'watch', ...request }, open, cancel)
      if (response.status === 200) return response
      const body = await readBody(response, MAX_ERROR_BYTES)
      throw errorOf(request, { status: response.status, headers: response.headers, body }, sent, host)
    },
    errorOf: (request, response) => errorOf(request, response, sent, host),
    frameError: (what, status) => apiError(what, status.code ?? 500, sent.json(status), { host }),
    credentials: sent,
    close: async () => transport.close(),
  }
}

async function readBody(response: OpenStream, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response.body) {
      chunks.push(chunk as Buffer)
      bytes += (chunk as Buffer).length
      if (bytes > maxBytes) break
    }
  } catch {
    // The status code is sufficient.
  }
  response.cancel()
  return Buffer.concat(chunks)
}

/** Seconds, as sent by kube-apiserver; it does not send dates, which are ignored. */
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

/** The typed error of an unsuccessful response. The body is used only if it is a Status. */
export function errorOf(
  request: Pick<RestRequest, 'method' | 'path'>,
  response: RawResponse,
  sent = new CredentialFilter(),
  host = '',
): ApiError {
  let status: Status | undefined
  try {
    const parsed = JSON.parse(response.body.toString('utf8')) as Partial<Status> | null
    if (parsed?.kind === 'Status') status = sent.json(parsed as Status)
  } catch {
    // A proxy's HTML page, or an empty body.
  }
  status ??= { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: response.status }
  // A Status may contain 0 for no wait.
  const waitMs = retryAfterMs(response) ?? (requestedWaitMs(status.details?.retryAfterSeconds) || undefined)
  return apiError(`${request.method} ${request.path}`, response.status, status, { retryAfterMs: waitMs, host })
}
