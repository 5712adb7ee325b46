/**
 * One HTTP/2 connection that counts its streams.
 *
 * node:http2 queues requests above the peer's stream limit silently and without a timeout, so streams are counted here
 * and callers check `hasFreeStream` first. Guarantees: after GOAWAY the session accepts no new request while open streams
 * continue; a peer that sends nothing for 30 s is pinged and dropped after another 15 s; every failure states whether
 * the request was certainly not processed (refused stream, above GOAWAY's last stream, never sent).
 */
import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { Clock } from '../clock.ts'
import { messageOf, TransportError } from '../errors.ts'
import {
  abortedError,
  deadlineError,
  tooLargeError,
  whatOf,
  type Exchange,
  type OpenStream,
  type RawResponse,
} from './transport.ts'

export interface SessionOptions {
  readonly origin: string
  /** Version of the TLS material used by the socket. */
  readonly tlsVersion: number
  readonly clock: Clock
  /** Called when a stream ended or the session closed: the number of free streams may have changed. */
  readonly onChange: () => void
}

/** As in client-go: ReadIdleTimeout and PingTimeout. */
const READ_IDLE_MS = 30_000
const PING_TIMEOUT_MS = 15_000
/** A session without streams for this long is closed. */
const UNUSED_MS = 5 * 60_000
const SETTINGS_TIMEOUT_MS = 10_000
/** With the default of 64 KiB a watch would wait for a round trip every 27 events. */
const CONNECTION_WINDOW_BYTES = 4 * 2 ** 20
const STREAM_WINDOW_BYTES = 2 ** 20

/**
 * Keeps streams in reserve, because a peer may count a closing stream longer than the client does and would then refuse
 * a new one.
 */
function usableStreams(peerMax: number): number {
  return Math.max(1, peerMax - Math.min(10, Math.max(1, Math.floor(peerMax / 10))))
}

export class Session {
  readonly tlsVersion: number
  readonly #http2: ClientHttp2Session
  readonly #socket: Socket
  readonly #clock: Clock
  readonly #onChange: () => void
  #streams = 0
  #maxStreams = 1
  #isClosing = false
  #lastProcessedId = Number.POSITIVE_INFINITY
  #bytesRead = 0
  #lastUsedAt: number
  #cancelWatchdog: () => void = () => undefined

  private constructor(http2: ClientHttp2Session, socket: Socket, options: SessionOptions) {
    this.#http2 = http2
    this.#socket = socket
    this.#clock = options.clock
    this.#onChange = options.onChange
    this.tlsVersion = options.tlsVersion
    this.#lastUsedAt = options.clock.monotonic()
    http2.on('remoteSettings', (settings) => {
      this.#maxStreams = usableStreams(settings.maxConcurrentStreams ?? Number.MAX_SAFE_INTEGER)
      this.#onChange()
    })
    http2.on('goaway', (_code, lastStreamId) => {
      this.#lastProcessedId = lastStreamId
      this.#isClosing = true
      this.#onChange()
    })
    http2.on('error', () => undefined)
    http2.once('close', () => {
      this.#isClosing = true
      this.#cancelWatchdog()
      this.#onChange()
    })
    this.#watch()
  }

  /**
   * Takes ownership of a connected socket and waits for the peer's SETTINGS: before them its stream limit is not known.
   */
  static async open(socket: Socket, options: SessionOptions): Promise<Session> {
    const http2 = connect(options.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES, maxFrameSize: 64 * 1024 },
    })
    const session = new Session(http2, socket, options)
    await new Promise<void>((resolve, reject) => {
      const fail = (why: string, cause?: unknown) => {
        cancel()
        http2.destroy()
        reject(new TransportError('CONNECT', `${options.origin}: ${why}`, { cause, unprocessed: true }))
      }
      const cancel = options.clock.after(SETTINGS_TIMEOUT_MS, () => fail('no HTTP/2 SETTINGS from the peer'))
      http2.once('remoteSettings', () => {
        cancel()
        resolve()
      })
      http2.once('error', (error) => fail(messageOf(error), error))
      http2.once('close', () => fail('closed before HTTP/2 SETTINGS'))
    })
    http2.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
    return session
  }

  get streams(): number {
    return this.#streams
  }

  get isUsable(): boolean {
    return !this.#isClosing && !this.#http2.closed && !this.#http2.destroyed
  }

  get hasFreeStream(): boolean {
    return this.#streams < this.#maxStreams && this.isUsable
  }

  get isDestroyed(): boolean {
    return this.#http2.destroyed
  }

  /** Accepts no new requests; closes when the open streams have ended. */
  retire(): void {
    this.#isClosing = true
    if (!this.#http2.closed) this.#http2.close()
  }

  async destroy(): Promise<void> {
    this.#isClosing = true
    if (this.#socket.destroyed && this.#http2.destroyed) return
    await new Promise<void>((resolve) => {
      this.#socket.once('close', () => resolve())
      this.#http2.destroy()
      if (this.#socket.destroyed) resolve()
    })
  }

  send(exchange: Exchange): Promise<RawResponse> {
    return new Promise<RawResponse>((resolve, reject) => {
      const stream: ResponseStream = this.#start(exchange)
      const pending = new PendingResponse(stream, exchange, this.#clock, (failure, cause) => {
        this.#end()
        if (failure !== undefined) reject(failure)
        else if (pending.isComplete) resolve(pending.response)
        else reject(this.#lost(exchange, stream, cause))
      })
      stream[PENDING_RESPONSE] = pending
      stream.on('response', onResponse)
      stream.on('data', onData)
      stream.on('error', onError)
      stream.on('close', onClose)
      stream.end(exchange.body)
    })
  }

  async open(exchange: Exchange): Promise<OpenStream> {
    const stream = this.#start(exchange)
    return new Promise<OpenStream>((resolve, reject) => {
      const cancel = () => stream.close(constants.NGHTTP2_CANCEL)
      let failure: TransportError | undefined
      let cause: Error | undefined
      const release = guard(exchange, this.#clock, (error) => {
        failure = error
        cancel()
      })
      stream.once('response', (headers) => {
        release()
        exchange.signal?.addEventListener('abort', cancel, { once: true })
        resolve({ status: headers[':status'] ?? 0, headers, body: stream, cancel })
      })
      stream.on('error', (error: Error) => (cause = error))
      stream.once('close', () => {
        release()
        exchange.signal?.removeEventListener('abort', cancel)
        this.#end()
        reject(failure ?? this.#lost(exchange, stream, cause))
      })
      stream.end(exchange.body)
    })
  }

  #start(exchange: Exchange): ClientHttp2Stream {
    this.#streams++
    this.#lastUsedAt = this.#clock.monotonic()
    try {
      const headers = { ':method': exchange.method, ':path': exchange.path, ...exchange.headers } as OutgoingHttpHeaders
      return this.#http2.request(headers, { endStream: exchange.body === undefined })
    } catch (cause) {
      this.#end()
      // Node 20 throws on a session that received GOAWAY; nothing was sent.
      const error = new TransportError('REFUSED', `${whatOf(exchange)}: the connection is closing`, {
        cause,
        unprocessed: true,
      })
      throw error
    }
  }

  #end(): void {
    this.#streams--
    this.#onChange()
  }

  #lost(exchange: Exchange, stream: ClientHttp2Stream, cause: Error | undefined): TransportError {
    const { id, rstCode } = stream
    // RFC 9113 §8.7: a refused stream, and one above GOAWAY's last stream, was not processed.
    const isUnsent = id === undefined || id > this.#lastProcessedId || rstCode === constants.NGHTTP2_REFUSED_STREAM
    const why = cause === undefined ? `stream closed with code ${rstCode}` : messageOf(cause)
    return new TransportError(isUnsent ? 'REFUSED' : 'RESET', `${whatOf(exchange)}: ${why}`, {
      cause,
      unprocessed: isUnsent,
    })
  }

  #watch(): void {
    this.#cancelWatchdog = this.#clock.after(READ_IDLE_MS, () => {
      if (this.#http2.destroyed) return
      if (this.#streams === 0 && this.#clock.monotonic() - this.#lastUsedAt > UNUSED_MS) {
        this.retire()
        return
      }
      const { bytesRead } = this.#socket
      if (bytesRead !== this.#bytesRead) {
        this.#bytesRead = bytesRead
        this.#watch()
        return
      }
      this.#ping()
    })
  }

  #ping(): void {
    const drop = () => this.#http2.destroy(new Error(`no answer to a ping within ${PING_TIMEOUT_MS} ms`))
    this.#cancelWatchdog = this.#clock.after(PING_TIMEOUT_MS, drop)
    const wasSent = this.#http2.ping((error) => {
      if (error !== null) return
      this.#cancelWatchdog()
      this.#bytesRead = this.#socket.bytesRead
      this.#watch()
    })
    if (!wasSent) drop()
  }
}

/** Enforces deadline and abort; returns the function that cancels both. */
function guard(exchange: Exchange, clock: Clock, stop: (error: TransportError) => void): () => void {
  const { signal } = exchange
  const onAbort = () => stop(abortedError(exchange))
  const cancel = clock.after(exchange.deadlineMs, () => stop(deadlineError(exchange)))
  if (signal === undefined) return cancel
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return () => {
    cancel()
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * The response to one request while it arrives. V8 frees a stream, whose handle is a native object, only in a full
 * garbage collection; therefore the stream gets shared listeners and only this object, and drops it on close. Otherwise
 * the data of request and response would be retained with the stream, and fill the heap at thousands of requests a
 * second.
 */
class PendingResponse {
  readonly #stream: ClientHttp2Stream
  readonly #exchange: Exchange
  readonly #release: () => void
  readonly #settle: (failure: TransportError | undefined, cause: Error | undefined) => void
  #status = 0
  #headers: RawResponse['headers'] = NO_HEADERS
  #first: Buffer | undefined
  #chunks: Buffer[] | undefined
  #bytes = 0
  #failure: TransportError | undefined
  #cause: Error | undefined

  constructor(
    stream: ClientHttp2Stream,
    exchange: Exchange,
    clock: Clock,
    settle: (failure: TransportError | undefined, cause: Error | undefined) => void,
  ) {
    this.#stream = stream
    this.#exchange = exchange
    this.#settle = settle
    this.#release = guard(exchange, clock, (error) => this.#stop(error))
  }

  /** The server ended the stream without an error. */
  get isComplete(): boolean {
    const { readableEnded, rstCode } = this.#stream
    return this.#status !== 0 && readableEnded && rstCode === 0 && this.#cause === undefined
  }

  get response(): RawResponse {
    const body = this.#chunks === undefined ? (this.#first ?? NO_BYTES) : Buffer.concat(this.#chunks, this.#bytes)
    return { status: this.#status, headers: this.#headers, body }
  }

  begin(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void {
    this.#status = headers[':status'] ?? 0
    this.#headers = headers
  }

  take(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > this.#exchange.maxBodyBytes) this.#stop(tooLargeError(this.#exchange))
    else if (this.#first === undefined) this.#first = chunk
    else (this.#chunks ??= [this.#first]).push(chunk)
  }

  fail(error: Error): void {
    this.#cause = error
  }

  close(): void {
    this.#release()
    this.#settle(this.#failure, this.#cause)
  }

  #stop(error: TransportError): void {
    this.#failure ??= error
    this.#stream.close(constants.NGHTTP2_CANCEL)
  }
}

const NO_HEADERS: RawResponse['headers'] = {}
const NO_BYTES = Buffer.alloc(0)

const PENDING_RESPONSE = Symbol('answer')

type ResponseStream = ClientHttp2Stream & { [PENDING_RESPONSE]?: PendingResponse | undefined }

function onResponse(this: ResponseStream, headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void {
  this[PENDING_RESPONSE]?.begin(headers)
}

function onData(this: ResponseStream, chunk: Buffer): void {
  this[PENDING_RESPONSE]?.take(chunk)
}

/** An error after `close` is ignored. */
function onError(this: ResponseStream, error: Error): void {
  this[PENDING_RESPONSE]?.fail(error)
}

function onClose(this: ResponseStream): void {
  const pending = this[PENDING_RESPONSE]
  this[PENDING_RESPONSE] = undefined
  pending?.close()
}
