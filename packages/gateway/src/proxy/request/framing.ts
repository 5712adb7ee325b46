/**
 * How the body of a request is delimited. It is decided once, from the request as it arrived; every copy that is sent on is
 * framed by it, whatever the method: a backend that sees another end of the body than the proxy takes what follows for the
 * next request on the connection (RFC 9112 §11.2).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { Http2ServerRequest } from 'node:http2'
import type { ProxyRequest } from './exchange.ts'

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly octets: number }
  /** Until the end of the stream. */
  | { readonly kind: 'chunked' }

const NONE: Framing = { kind: 'none' }
const CHUNKED: Framing = { kind: 'chunked' }

/** The status to refuse the request with, if its framing is not clear. */
export function readFraming(request: ProxyRequest): Framing | number {
  const { headers } = request
  if (request instanceof Http2ServerRequest) {
    if (request.stream.endAfterHeaders) return NONE
    return readLength(headers) ?? CHUNKED
  }
  const coding = headers['transfer-encoding']
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked') return 501
    // RFC 9112 §6.1: HTTP/1.0 has no codings, and a message with both is faulty.
    return request.httpVersionMinor === 0 || headers['content-length'] !== undefined ? 400 : CHUNKED
  }
  return readLength(headers) ?? NONE
}

function readLength({ 'content-length': text }: IncomingHttpHeaders): Framing | 400 | undefined {
  if (text === undefined) return undefined
  const octets = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(octets)) return 400
  return octets === 0 ? NONE : { kind: 'length', octets }
}
