/**
 * The contract between the client and the wire: one request and its answer, or a stream of bytes. HTTP/2 (http2.ts) is
 * the normal case; HTTP/1.1 (http1.ts) serves plain http and servers that negotiate nothing better.
 *
 * Lanes keep traffic apart: a watch never takes the stream of a write, and a lease renewal waits behind nothing.
 */
import type { Readable } from 'node:stream'
import type { RawResponse } from '../client/client.ts'
import { TransportError } from '../errors.ts'
import type { StopSignal } from '../controller/stop-signal.ts'

export type Lane = 'request' | 'watch' | 'lease'

export interface Exchange {
  readonly method: string
  /** Path with query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Buffer | undefined
  readonly lane: Lane
  readonly signal?: StopSignal | undefined
  /** Time left for the whole exchange; for `open` until the headers are there. */
  readonly deadlineMs: number
  /** A longer body is an error, and no more of it is read. */
  readonly maxBodyBytes: number
}

export interface OpenStream {
  readonly status: number
  readonly headers: RawResponse['headers']
  /** Was ended by the server only when `end` and `close` came without `error`: node:http2 ends a reset stream too. */
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
  /** Open requests fail with CLOSED; resolves when every connection is gone. */
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

export function abortedError(exchange: Exchange): TransportError {
  return new TransportError('ABORTED', `${whatOf(exchange)}: aborted by the caller`, { cause: exchange.signal?.reason })
}

export function tooLargeError(exchange: Exchange): TransportError {
  return new TransportError(
    'BODY_TOO_LARGE',
    `${whatOf(exchange)}: the answer is longer than ${exchange.maxBodyBytes} bytes`,
  )
}
