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

/** @param abort ends the request to the backend so that it cannot be taken for a complete one */
export function sendBody(target: Writable, body: UpstreamBody | undefined, abort: () => void): void {
  if (!isStreamed(body)) return void target.end(body)
  const { stream, length, isWhole } = body
  let octets = 0
  let isOver = false
  const onData = (chunk: Buffer) => {
    octets += chunk.length
    if (length !== undefined && octets > length) fail()
    else if (!target.write(chunk)) stream.pause()
  }
  const onDrain = () => void stream.resume()
  const onEnd = () => {
    if (isOver) return
    if (!isWhole() || (length !== undefined && octets !== length)) return fail()
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
