/**
 * The sockets: HTTP/1.1 in the clear, or TLS with HTTP/2 and HTTP/1.1 by ALPN, calling one request handler.
 *
 * HTTP/2 streams are served by the core API: the compatibility layer costs a third of the time of a small request.
 * Invariants: a body above `bodyLimit` is refused and never held; a client that goes away stops its watch; `close` ends
 * every stream, refuses new ones and settles when the sockets are gone.
 */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http'
import {
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
import type { ApiRequest, ApiResponse, WatchSink } from './exchange.ts'
import { statusResponse } from './exchange.ts'
import { identityOf } from '../auth/peer-identity.ts'
import { requestTooLarge } from './status.ts'

/** The limit of a real server for a request body. */
export const bodyLimit = 3 * 1024 * 1024
/** Smaller answers are sent as they are. */
const gzipFrom = 128 * 1024

export type Answer = (request: ApiRequest) => Promise<ApiResponse>

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
}

export interface Listener {
  readonly host: string
  readonly port: number
  readonly url: string
  close(): Promise<void>
}

export async function listen(answer: Answer, options: ListenOptions): Promise<Listener> {
  const sockets = new Set<Socket>()
  const http1 = createHttpServer(
    { keepAliveTimeout: 90_000 },
    (request, response) => void serveHttp1(answer, request, response),
  )
  const sessions = new Set<ServerHttp2Session>()
  const server: NetServer = options.tls === undefined ? http1 : createTlsListener(answer, http1, sessions, options.tls)
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
  answer: Answer,
  http1: HttpServer,
  sessions: Set<ServerHttp2Session>,
  tls: TlsOptions,
): NetServer {
  const http2: Http2Server = createHttp2Server({
    settings: { maxConcurrentStreams: 1000, initialWindowSize: 1024 * 1024 },
  })
  http2.on('session', (session) => {
    sessions.add(session)
    // The default window of a connection would stall many lists on it.
    session.setLocalWindowSize(8 * 1024 * 1024)
    session.on('close', () => sessions.delete(session))
    session.on('error', () => session.destroy())
  })
  http2.on('stream', (stream, headers) => void serveHttp2(answer, stream, headers))
  const server = createTlsServer({
    ...tls,
    ALPNProtocols: ['h2', 'http/1.1'],
    requestCert: true,
    rejectUnauthorized: false,
  })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy())
    if (socket.alpnProtocol === 'h2') http2.emit('connection', socket)
    else http1.emit('connection', socket)
  })
  server.on('tlsClientError', () => undefined)
  return server
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

/** The body, or undefined when it is too large. */
async function readBody(stream: NodeJS.ReadableStream): Promise<Buffer | undefined> {
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= bodyLimit) chunks.push(chunk)
      else {
        chunks.length = 0
        resolve(undefined)
      }
    })
    let isWhole = false
    stream.on('end', () => {
      isWhole = true
      resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
    })
    stream.on('error', reject)
    // An error costs a stack trace: only for a client that really went away.
    stream.on('close', () => (isWhole ? undefined : reject(new Error('the client went away'))))
  })
}

const compress = promisify(gzip)

/** One buffer, compressed when it is large and the client can read it. */
async function wholeBody(
  response: Extract<ApiResponse, { kind: 'whole' }>,
  accepted: string | undefined,
): Promise<{ body: Buffer; headers: Record<string, string | string[]> }> {
  const body = response.body.length === 1 ? (response.body[0] as Buffer) : Buffer.concat(response.body)
  if (body.length < gzipFrom || accepted === undefined || !/\bgzip\b/.test(accepted))
    return { body, headers: { ...response.headers } }
  const packed = await compress(body, { level: zlibConstants.Z_BEST_SPEED })
  return { body: packed, headers: { ...response.headers, 'content-encoding': 'gzip', vary: 'Accept-Encoding' } }
}

const noStore = { 'cache-control': 'no-cache, private' }

async function serveHttp2(answer: Answer, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
  stream.on('error', () => undefined)
  try {
    const method = headers[':method'] ?? 'GET'
    const { path, query } = readTarget(headers[':path'] ?? '/')
    const hasBody = !stream.endAfterHeaders
    const body = hasBody ? await readBody(stream) : Buffer.alloc(0)
    const flat = flatten(headers)
    const { session } = stream
    const identity = session === undefined ? undefined : identityOf(session, () => session.socket)
    const response =
      body === undefined
        ? statusResponse(requestTooLarge(bodyLimit).status)
        : await answer({ method, path, query, headers: flat, body, ...(identity === undefined ? {} : { identity }) })
    if (stream.destroyed) return
    if (response.kind === 'stream') {
      stream.respond({ ':status': response.status, ...noStore, ...response.headers })
      const stop = response.start(sinkOf(stream, () => stream.close(2)))
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
  } catch {
    // INTERNAL_ERROR: a lost answer, or a client that went away.
    stream.close(2)
  }
}

async function serveHttp1(answer: Answer, request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.on('error', () => undefined)
  try {
    const { path, query } = readTarget(request.url ?? '/')
    const method = request.method ?? 'GET'
    const flat = flatten(request.headers)
    const body = await readBody(request)
    const identity = identityOf(request.socket, () => request.socket)
    const result =
      body === undefined
        ? statusResponse(requestTooLarge(bodyLimit).status)
        : await answer({ method, path, query, headers: flat, body, ...(identity === undefined ? {} : { identity }) })
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
    response.writeHead(result.status, { ...noStore, ...whole.headers, 'content-length': whole.body.length })
    response.end(method === 'HEAD' || result.status === 304 ? undefined : whole.body)
  } catch {
    response.destroy()
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
