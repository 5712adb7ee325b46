/**
 * The body of a request on its way to a backend.
 *
 * Guarantees: the request of the backend ends only after all octets of the client's body, as many as were declared. A client
 * that resets its stream or closes its connection ends the request without that: its connection is not used again, or the
 * backend would take the next request for the rest of the body (RFC 9112 §11.2).
 */
import { Http2ServerRequest } from 'node:http2'
import type { Readable, Writable } from 'node:stream'
import type { ProxyRequest } from '../request/exchange.ts'

/** A Buffer can be sent again. */
export type UpstreamBody = Buffer | StreamedBody

export interface StreamedBody {
  readonly stream: Readable
  /** In octets; undefined: until the end of the stream. */
  readonly length: number | undefined
  /** At the end of the stream: whether the client has sent everything. Streams of HTTP/2 also end when they are reset. */
  readonly isWhole: () => boolean
}

export function streamedBody(request: ProxyRequest, length: number | undefined): StreamedBody {
  const isWhole =
    request instanceof Http2ServerRequest
      ? () => !request.stream.aborted && request.stream.rstCode === 0
      : () => request.complete
  return { stream: request, length, isWhole }
}

export function isStreamed(body: UpstreamBody | undefined): body is StreamedBody {
  return body !== undefined && !Buffer.isBuffer(body)
}

export function lengthOf(body: UpstreamBody | undefined): number | undefined {
  return Buffer.isBuffer(body) ? body.length : body?.length
}

/** Chunks of fewer octets are small: a client may send its body in chunks of one octet, each of which takes memory and time. */
const SMALL = 1_024
const MAX_SMALL = 256

/** Joins small chunks that follow each other. `add` is true for the first of them, which has to be followed by a `flush`. */
export function joinSmall(take: (chunk: Buffer) => void): { add: (chunk: Buffer) => boolean; flush: () => void } {
  let small: Buffer[] = []
  const flush = () => {
    if (small.length === 0) return
    const chunks = small
    small = []
    const [only] = chunks
    take(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks))
  }
  const add = (chunk: Buffer): boolean => {
    if (chunk.length < SMALL) {
      const count = small.push(chunk)
      if (count === MAX_SMALL) flush()
      return count === 1
    }
    flush()
    take(chunk)
    return false
  }
  return { add, flush }
}

/** @param abort ends the request to the backend so that it cannot be taken for a complete one */
export function sendBody(target: Writable, body: UpstreamBody | undefined, abort: () => void): void {
  if (!isStreamed(body)) return void target.end(body)
  const { stream, length, isWhole } = body
  let octets = 0
  let isOver = false
  const joined = joinSmall((chunk) => {
    if (!isOver && !target.write(chunk)) stream.pause()
  })
  const onData = (chunk: Buffer) => {
    octets += chunk.length
    if (length !== undefined && octets > length) fail()
    // Not in the next tick: Node has one for each chunk that it parses.
    else if (joined.add(chunk)) setImmediate(joined.flush)
  }
  const onDrain = () => void stream.resume()
  const onEnd = () => {
    if (isOver) return
    if (!isWhole() || (length !== undefined && octets !== length)) return fail()
    joined.flush()
    stop()
    target.end()
  }
  const fail = () => {
    if (isOver) return
    stop()
    abort()
  }
  /** What is left of the body is read and forgotten, so that the connection of the client goes on. */
  const stop = () => {
    isOver = true
    stream.off('data', onData).off('end', onEnd).off('close', fail).off('error', fail)
    target.off('drain', onDrain).off('close', stop)
    stream.resume()
  }
  stream.on('data', onData).on('end', onEnd).on('close', fail).on('error', fail)
  target.on('drain', onDrain).on('close', stop)
  // Reset before it was sent on.
  if (stream.destroyed && !stream.readableEnded) fail()
  else stream.resume()
}
