/**
 * The listener: HTTP/1.1 in the clear, or TLS with HTTP/2 and HTTP/1.1 by ALPN, calling one request handler.
 *
 * HTTP/2 streams are served by the core API: the compatibility layer costs a third of the time of a small request.
 * Flow: head → authentication and authorization (`Admit`) → body → response. The body of a rejected request is
 * discarded.
 * Invariants: incomplete heads and bodies time out; a disconnected client stops its watch; `close` ends every stream,
 * rejects new ones and settles when the sockets are closed.
 */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http'
import {
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo, Server as NetServer, Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { promisify } from 'node:util'
import { constants as zlibConstants, gzip } from 'node:zlib'
import type { Admit, ApiResponse, RequestHead, WatchSink } from '../exchange/exchange.ts'
import { identityOf } from '../auth/peer-identity.ts'
import { BODY_TIMEOUT_MS, BodyBudget, emptyBody, readBody } from './request-body.ts'

/** Smaller responses are not compressed. */
const GZIP_FROM_BYTES = 128 * 1024
/** Time for the TLS handshake of a connection. */
export const HANDSHAKE_TIMEOUT_MS = 10_000
/** Time for the head of a request. */
export const HEAD_TIMEOUT_MS = 30_000
/** Time that a connection without requests stays open. */
export const IDLE_TIMEOUT_MS = 90_000
/** Requests and watches at a time on an HTTP/2 connection. */
export const MAX_STREAMS = 1000
/**
 * MB of responses that wait to be sent on an HTTP/2 connection, until further requests are refused. Node's own 10 are less than
 * the initial events of one watch of ten thousand objects: a client that starts several watches would have to repeat them.
 */
const MAX_SESSION_MB = 1024
/** Interval at which HTTP/1.1 connections are checked against their timeouts. */
const CHECK_INTERVAL_MS = 5000

export interface TlsOptions {
  readonly cert: string
  readonly key: string
  /** Authority of client certificates. */
  readonly ca: string
}

export interface ListenOptions {
  /** @default 127.0.0.1 */
  readonly host?: string
  /** @default 0: a free one */
  readonly port?: number
  readonly tls?: TlsOptions
  /** @default HEAD_TIMEOUT_MS */
  readonly headTimeoutMs?: number
  /** @default BODY_TIMEOUT_MS */
  readonly bodyTimeoutMs?: number
  /** @default IDLE_TIMEOUT_MS */
  readonly idleTimeoutMs?: number
}

/** Context of a listener for serving requests. */
interface Context {
  readonly admit: Admit
  readonly budget: BodyBudget
  readonly bodyTimeoutMs: number
  readonly idleTimeoutMs: number
}

export interface Listener {
  readonly host: string
  readonly port: number
  readonly url: string
  close(): Promise<void>
}

export async function listen(admit: Admit, options: ListenOptions): Promise<Listener> {
  const sockets = new Set<Socket>()
  const { headTimeoutMs = HEAD_TIMEOUT_MS, bodyTimeoutMs = BODY_TIMEOUT_MS, idleTimeoutMs = IDLE_TIMEOUT_MS } = options
  const context: Context = { admit, budget: new BodyBudget(), bodyTimeoutMs, idleTimeoutMs }
  const http1 = createHttpServer(
    {
      keepAliveTimeout: idleTimeoutMs,
      headersTimeout: headTimeoutMs,
      // The rest of a rejected body is read and discarded until then.
      requestTimeout: headTimeoutMs + bodyTimeoutMs,
      connectionsCheckingInterval: Math.min(CHECK_INTERVAL_MS, headTimeoutMs),
    },
    (request, response) => void serveHttp1(context, request, response),
  )
  const sessions = new Set<ServerHttp2Session>()
  const server: NetServer = options.tls === undefined ? http1 : createTlsListener(context, http1, sessions, options.tls)
  server.on('connection', (socket: Socket) => {
    socket.setNoDelay(true)
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  })
  const host = options.host ?? '127.0.0.1'
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, host, () => {
      server.off('error', reject)
      // Node starts its timeout checks on this event, which a server behind TLS would never emit.
      if (server !== http1) http1.emit('listening')
      resolve()
    })
  })
  const { port } = server.address() as AddressInfo
  const name = host.includes(':') ? `[${host}]` : host
  return {
    host,
    port,
    url: `${options.tls === undefined ? 'http' : 'https'}://${name}:${port}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const session of sessions) session.close()
      http1.closeIdleConnections()
      if (server !== http1) http1.close()
      const hard = setTimeout(() => destroyAll(sockets), 200)
      await closed
      clearTimeout(hard)
    },
  }
}

function destroyAll(sockets: Iterable<Socket>): void {
  for (const socket of sockets) socket.destroy()
}

function createTlsListener(
  context: Context,
  http1: HttpServer,
  sessions: Set<ServerHttp2Session>,
  tls: TlsOptions,
): NetServer {
  const http2: Http2Server = createHttp2Server({
    maxSessionMemory: MAX_SESSION_MB,
    settings: { maxConcurrentStreams: MAX_STREAMS, initialWindowSize: 1024 * 1024 },
  })
  http2.on('session', (session) => {
    sessions.add(session)
    // The default window of a connection would stall many concurrent lists.
    session.setLocalWindowSize(8 * 1024 * 1024)
    session.on('close', () => sessions.delete(session))
    session.on('error', () => session.destroy())
    closeWhenIdle(session, context.idleTimeoutMs)
  })
  http2.on('stream', (stream, headers) => void serveHttp2(context, stream, headers))
  const server = createTlsServer({
    ...tls,
    ALPNProtocols: ['h2', 'http/1.1'],
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy())
    if (socket.alpnProtocol === 'h2') http2.emit('connection', socket)
    else http1.emit('connection', socket)
  })
  server.on('tlsClientError', () => undefined)
  return server
}

/**
 * Closes a session without streams, also one whose first head is incomplete. A session with an idle watch stays open.
 */
function closeWhenIdle(session: ServerHttp2Session, idleTimeoutMs: number): void {
  let open = 0
  session.on('stream', (stream: ServerHttp2Stream) => {
    open += 1
    stream.once('close', () => (open -= 1))
  })
  session.setTimeout(idleTimeoutMs, () => {
    if (open === 0) session.destroy()
  })
}

function readTarget(target: string): { path: string; query: URLSearchParams } {
  const mark = target.indexOf('?')
  return mark < 0
    ? { path: target, query: new URLSearchParams() }
    : { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) }
}

function flatten(headers: IncomingHttpHeaders | IncomingMessage['headers']): Record<string, string | undefined> {
  const flat: Record<string, string | undefined> = Object.create(null) as Record<string, string | undefined>
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    flat[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return flat
}

const compress = promisify(gzip)

/** One buffer, compressed when it is large and the client accepts gzip. */
async function wholeBody(
  response: Extract<ApiResponse, { kind: 'whole' }>,
  accepted: string | undefined,
): Promise<{ body: Buffer; headers: Record<string, string | string[]> }> {
  const body = response.body.length === 1 ? (response.body[0] as Buffer) : Buffer.concat(response.body)
  if (body.length < GZIP_FROM_BYTES || accepted === undefined || !/\bgzip\b/.test(accepted))
    return { body, headers: { ...response.headers } }
  const packed = await compress(body, { level: zlibConstants.Z_BEST_SPEED })
  return { body: packed, headers: { ...response.headers, 'content-encoding': 'gzip', vary: 'Accept-Encoding' } }
}

const noStore = { 'cache-control': 'no-cache, private' }

async function serveHttp2(context: Context, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
  stream.on('error', () => undefined)
  try {
    const method = headers[':method'] ?? 'GET'
    const flat = flatten(headers)
    const { session } = stream
    const identity = session === undefined ? undefined : identityOf(session, () => session.socket)
    const head = {
      method,
      ...readTarget(headers[':path'] ?? '/'),
      headers: flat,
      ...(identity !== undefined && { identity }),
    }
    const hasBody = !stream.endAfterHeaders
    const response = await answer(context, head, stream, session ?? stream, hasBody)
    if (stream.destroyed) return
    if (response.kind === 'stream') {
      stream.respond({ ':status': response.status, ...noStore, ...response.headers })
      const stop = response.start(sinkOf(stream, () => stream.close(constants.NGHTTP2_INTERNAL_ERROR)))
      stream.on('close', stop)
      if (stream.destroyed) stop()
      return
    }
    const whole = await wholeBody(response, flat['accept-encoding'])
    if (stream.destroyed) return
    const isBodyless = method === 'HEAD' || response.status === 304
    stream.respond(
      { ':status': response.status, ...noStore, ...whole.headers, 'content-length': whole.body.length },
      { endStream: isBodyless },
    )
    if (!isBodyless) stream.end(whole.body)
    // A rejected body: the client need not send the rest (RFC 9113 §8.1).
    if (hasBody && !stream.readableEnded) stream.resume().close(constants.NGHTTP2_NO_ERROR)
  } catch {
    // A fault rule drops the response, or the client disconnected.
    stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  }
}

async function serveHttp1(context: Context, request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.on('error', () => undefined)
  try {
    const method = request.method ?? 'GET'
    const flat = flatten(request.headers)
    const { socket } = request
    const identity = identityOf(socket, () => socket)
    const head = {
      method,
      ...readTarget(request.url ?? '/'),
      headers: flat,
      ...(identity !== undefined && { identity }),
    }
    const result = await answer(context, head, request, socket, true)
    if (response.destroyed) return
    if (result.kind === 'stream') {
      response.writeHead(result.status, { ...noStore, ...result.headers })
      response.flushHeaders()
      const stop = result.start(sinkOf(response, () => response.destroy()))
      // Not the request's `close`: that comes when its body has been read.
      response.on('close', stop)
      if (response.destroyed) stop()
      return
    }
    const whole = await wholeBody(result, flat['accept-encoding'])
    // The rest of a rejected body is discarded, so that the client receives the response before it has sent everything.
    request.resume()
    response.writeHead(result.status, { ...noStore, ...whole.headers, 'content-length': whole.body.length })
    response.end(method === 'HEAD' || result.status === 304 ? undefined : whole.body)
  } catch {
    response.destroy()
  }
}

/** Admits the request by its head, then reads its body and responds. */
async function answer(
  context: Context,
  head: RequestHead,
  stream: NodeJS.ReadableStream,
  connection: object,
  hasBody: boolean,
): Promise<ApiResponse> {
  const admitted = context.admit(head)
  if (typeof admitted !== 'function') return admitted
  const received = hasBody
    ? await readBody({
        stream,
        contentLength: head.headers['content-length'],
        connection,
        budget: context.budget,
        timeoutMs: context.bodyTimeoutMs,
      })
    : emptyBody()
  if ('kind' in received) return received
  try {
    return await admitted(received.body)
  } finally {
    received.release()
  }
}

function sinkOf(stream: ServerHttp2Stream | ServerResponse, abort: () => void): WatchSink {
  return {
    write: (chunk) => void stream.write(chunk),
    get bufferedBytes() {
      return stream.writableLength
    },
    end: () => void stream.end(),
    abort,
  }
}
