/**
 * One HTTP call of a provider. Its failures are classified: certainly not executed, or possibly executed.
 * No header, body or URL query is part of an error, because they contain credentials.
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
  /** Maximum octets of the response. @default 256 MiB */
  readonly maxBytes?: number
}

export interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly text: string
  readonly retryAfterMs?: number
}

/** Octets of a response after decompression; a larger one is aborted. A zone of a million records is smaller. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024
/** Octets of an error response: only the beginning of its text is shown. */
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
 * The text of a response. Octets are counted as they arrive, after decompression: neither a chunked nor a compressed
 * response states its length. The text of an error is truncated, that of a success never is.
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

/** The message `fetch failed` has no information; its cause does. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}

/** True when nothing was sent. */
function isRefusedConnection(error: unknown): boolean {
  const code = error instanceof Error ? (error.cause as { code?: unknown } | undefined)?.code : undefined
  return (
    code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EHOSTUNREACH' || code === 'UND_ERR_CONNECT_TIMEOUT'
  )
}

/** The failure for an HTTP status, or undefined for success. `detail` must not contain secrets. */
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
