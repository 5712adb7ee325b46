/**
 * The interface between client and network: one request and its response, or a stream of bytes. HTTP/2 (http2.ts) is
 * the normal case; HTTP/1.1 (http1.ts) serves plain http and servers without HTTP/2.
 *
 * Lanes separate traffic: a watch never uses the stream of a write, and a lease renewal is never queued behind other
 * requests.
 */
import type { Readable } from 'node:stream'
import { TransportError } from '../errors.ts'
import type { StopSignal } from '../stop-signal.ts'

export type Lane = 'request' | 'watch' | 'lease'

export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

export interface Exchange {
  readonly method: string
  /** Path with query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Buffer | undefined
  readonly lane: Lane
  readonly signal?: StopSignal | undefined
  /** Time for the whole exchange; for `open` until the headers arrive. */
  readonly deadlineMs: number
  /** A longer body is an error, and the rest of it is not read. */
  readonly maxBodyBytes: number
}

export interface OpenStream {
  readonly status: number
  readonly headers: RawResponse['headers']
  /** Ended by the server only if `end` and `close` occurred without `error`: node:http2 also ends a reset stream. */
  readonly body: Readable
  readonly cancel: () => void
}

export interface TransportStats {
  readonly sessions: number
  readonly streams: number
}

export interface Transport {
  send(exchange: Exchange): Promise<RawResponse>
  open(exchange: Exchange): Promise<OpenStream>
  /** Open requests fail with CLOSED; resolves when every connection is closed. */
  close(): Promise<void>
  readonly stats: TransportStats
}

export function whatOf({ method, path }: Exchange): string {
  const query = path.indexOf('?')
  return `${method} ${query < 0 ? path : path.slice(0, query)}`
}

export function deadlineError(exchange: Exchange): TransportError {
  return new TransportError('DEADLINE', `${whatOf(exchange)}: no answer within ${Math.round(exchange.deadlineMs)} ms`)
}

/** @param unprocessed nothing was sent */
export function abortedError(exchange: Exchange, unprocessed = false): TransportError {
  const message = `${whatOf(exchange)}: aborted by the caller`
  return new TransportError('ABORTED', message, { cause: exchange.signal?.reason, unprocessed })
}

export function tooLargeError(exchange: Exchange): TransportError {
  return new TransportError(
    'BODY_TOO_LARGE',
    `${whatOf(exchange)}: the answer is longer than ${exchange.maxBodyBytes} bytes`,
  )
}
