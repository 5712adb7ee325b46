/**
 * Reads the body of an admitted request within limits: bytes of one body, bytes of all bodies on a connection and in
 * the server, and time.
 *
 * Guarantees: a body above its limit is never buffered; bytes are counted from the first chunk until `release`.
 */
import { requestTooLarge, statusError } from '../exchange/status.ts'
import { statusResponse, type WholeResponse } from '../exchange/exchange.ts'

/** Bytes of a request body, as in kube-apiserver. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024
/** Bytes of request bodies in flight on one connection: an HTTP/2 connection carries up to 1000 concurrent requests. */
export const MAX_CONNECTION_BODY_BYTES = 32 * 1024 * 1024
/** Bytes of request bodies in flight in the whole server. */
export const MAX_SERVER_BODY_BYTES = 256 * 1024 * 1024
/** Time from the head of a request to the end of its body. */
export const BODY_TIMEOUT_MS = 60_000

/** Counts the bytes of bodies in flight. */
export class BodyBudget {
  readonly #connections = new WeakMap<object, { bytes: number }>()
  #bytes = 0

  /** False when the connection or the server would exceed its limit; then nothing is counted. */
  take(connection: object, bytes: number): boolean {
    let taken = this.#connections.get(connection)
    if (taken === undefined) this.#connections.set(connection, (taken = { bytes: 0 }))
    if (taken.bytes + bytes > MAX_CONNECTION_BODY_BYTES || this.#bytes + bytes > MAX_SERVER_BODY_BYTES) return false
    taken.bytes += bytes
    this.#bytes += bytes
    return true
  }

  give(connection: object, bytes: number): void {
    const taken = this.#connections.get(connection)
    if (taken !== undefined) taken.bytes -= bytes
    this.#bytes -= bytes
  }
}

export interface BodyRequest {
  readonly stream: NodeJS.ReadableStream
  readonly contentLength: string | undefined
  /** The connection that bytes are counted for: an HTTP/2 session or a socket. */
  readonly connection: object
  readonly budget: BodyBudget
  readonly timeoutMs: number
}

export interface ReceivedBody {
  readonly body: Buffer
  /** Must be called when the response has been sent. */
  release(): void
}

const none: ReceivedBody = { body: Buffer.alloc(0), release: () => undefined }

export function emptyBody(): ReceivedBody {
  return none
}

/** The body, or the response that rejects it. Rejects when the client disconnects. */
export async function readBody(request: BodyRequest): Promise<ReceivedBody | WholeResponse> {
  const { stream, connection, budget, timeoutMs } = request
  if (Number(request.contentLength ?? 0) > MAX_BODY_BYTES) {
    stream.resume()
    return tooLarge()
  }
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let isSettled = false
    const release = (): void => budget.give(connection, size)
    const refuse = (response: WholeResponse): void => {
      isSettled = true
      clearTimeout(timer)
      chunks.length = 0
      release()
      resolve(response)
    }
    const timer = setTimeout(() => refuse(timedOut(timeoutMs)), timeoutMs)
    stream.on('data', (chunk: Buffer) => {
      // The rest of a rejected body is discarded.
      if (isSettled) return
      if (size + chunk.length > MAX_BODY_BYTES) refuse(tooLarge())
      else if (budget.take(connection, chunk.length)) {
        size += chunk.length
        chunks.push(chunk)
      } else refuse(tooManyBodies())
    })
    stream.on('end', () => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      resolve({ body: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks), release })
    })
    const abandon = (error: Error): void => {
      if (isSettled) return
      isSettled = true
      clearTimeout(timer)
      release()
      reject(error)
    }
    stream.on('error', abandon)
    // An error captures a stack trace: it is created only for a disconnected client.
    stream.on('close', () => (isSettled ? undefined : abandon(new Error('the client disconnected'))))
  })
}

function tooLarge(): WholeResponse {
  return statusResponse(requestTooLarge(MAX_BODY_BYTES).status)
}

function timedOut(timeoutMs: number): WholeResponse {
  const message = `the request body was not complete after ${timeoutMs / 1000} s`
  return statusResponse(statusError(408, 'Timeout', message).status)
}

function tooManyBodies(): WholeResponse {
  const message = `too many bytes of request bodies are in flight: at most ${MAX_CONNECTION_BODY_BYTES} on a connection and ${MAX_SERVER_BODY_BYTES} in the server; retry later`
  const error = statusError(429, 'TooManyRequests', message, 1)
  return statusResponse(error.status, error.headers)
}
