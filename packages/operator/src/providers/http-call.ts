/**
 * One HTTP call of a provider, with its failures told apart: what was surely not done, and what may have been done.
 * No header, body or URL query gets into an error: they hold credentials.
 */
import { requestedWaitMs } from '@seamark/kube'
import { ProviderError } from '../rrset/error.ts'

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal: AbortSignal
  readonly fetch: typeof globalThis.fetch
  /** Octets of the answer. @default 256 MiB */
  readonly maxBytes?: number
}

export interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly text: string
  readonly retryAfterMs?: number
}

/** Octets of an answer after decompression; a larger one is broken off. A zone of a million records is below it. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024
/** Octets of an answer that reports a failure: only the beginning of its text is shown. */
const MAX_FAILURE_BYTES = 64 * 1024

export async function callHttp(call: HttpCall): Promise<HttpAnswer> {
  const where = `${call.method} ${call.url.origin}${call.url.pathname}`
  try {
    const response = await call.fetch(call.url, {
      method: call.method,
      signal: call.signal,
      redirect: 'error',
      headers: { ...(call.body !== undefined && { 'content-type': 'application/json' }), ...call.headers },
      ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
    })
    const retryAfterMs = requestedWaitMs(response.headers.get('retry-after'), Date.now())
    return {
      status: response.status,
      contentType: response.headers.get('content-type') ?? '',
      text: await readText(response, response.ok ? (call.maxBytes ?? MAX_ANSWER_BYTES) : MAX_FAILURE_BYTES),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    }
  } catch (cause) {
    const why = describe(cause)
    if (call.method === 'GET' || isRefusedConnection(cause)) {
      throw new ProviderError('ProviderUnavailable', 'later', `${where}: ${why}`, { cause })
    }
    throw new ProviderError('OutcomeUnknown', 'unknown', `${where}: ${why}`, { cause })
  }
}

/**
 * The text of an answer. The octets are counted as they arrive, after decompression: neither a chunked answer nor a
 * compressed one says beforehand how long it is. The text of a failure is cut, that of a success is never a part.
 */
async function readText(response: Response, maxBytes: number): Promise<string> {
  if (response.body === null) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > maxBytes) {
      // Leaving the loop cancels the body.
      if (response.ok) throw new Error(`the answer is larger than ${maxBytes} bytes`)
      break
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** `fetch failed` says nothing; its cause does. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}

/** Nothing was sent. */
function isRefusedConnection(error: unknown): boolean {
  const code = error instanceof Error ? (error.cause as { code?: unknown } | undefined)?.code : undefined
  return (
    code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EHOSTUNREACH' || code === 'UND_ERR_CONNECT_TIMEOUT'
  )
}

/** The failure an HTTP status means, or undefined for success. `detail` must be free of secrets. */
export function failureOf(
  answer: HttpAnswer,
  where: string,
  isWrite: boolean,
  detail: string,
): ProviderError | undefined {
  const { status } = answer
  if (status >= 200 && status < 300) return undefined
  const says = `${where}: HTTP ${status}${detail === '' ? '' : `: ${detail.slice(0, 300)}`}`
  const wait = answer.retryAfterMs === undefined ? {} : { retryAfterMs: answer.retryAfterMs }
  if (status === 401) return new ProviderError('CredentialsInvalid', 'later', says)
  if (status === 403) return new ProviderError('PermissionDenied', 'later', says)
  if (status === 404) return new ProviderError('ZoneNotFound', 'later', says)
  if (status === 429) return new ProviderError('Throttled', 'later', says, wait)
  if (status === 503) return new ProviderError('ProviderUnavailable', 'later', says, wait)
  if (status >= 500) return new ProviderError('ProviderUnavailable', isWrite ? 'unknown' : 'later', says)
  return new ProviderError('RecordRejected', 'rejected', says)
}
