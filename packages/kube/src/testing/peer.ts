/**
 * A scripted API server for network failures: HTTP/2 or HTTP/1.1, TLS or plain, on its own port. The script gets every
 * request and decides byte by byte what is returned: a response, half a frame, a reset, GOAWAY, or nothing.
 *
 * `startRelay` forwards between a client and a server and can stop forwarding (a half-open connection) or close
 * connections.
 */
import { once } from 'node:events'
import { createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http'
import { constants, createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import { connect, createServer as createTcp, type AddressInfo, type Server, type Socket } from 'node:net'
import { createAuthority, type Authority, type CertificatePair } from '../certificates.ts'

export interface PeerExchange {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Counts requests of this peer from 0. */
  readonly index: number
  /** Index of the connection, counted from 0. */
  readonly connection: number
  body(): Promise<string>
  /** A complete response; objects are sent as JSON. */
  reply(status: number, body?: unknown, headers?: Readonly<Record<string, string>>): void
  /** Sends the headers of a stream. */
  start(status?: number, headers?: Readonly<Record<string, string>>): void
  write(data: string | Buffer): void
  /** One watch frame. */
  frame(type: string, object: unknown): void
  end(): void
  /** RST_STREAM (with this code if nothing was sent yet), or a closed connection on HTTP/1.1. */
  reset(code?: number): void
  /** GOAWAY on this connection; streams up to `lastStreamId` (all by default) continue. */
  goaway(lastStreamId?: number): void
  /** Settles when the client cancelled or the exchange ended. */
  readonly closed: Promise<void>
}

export interface Peer {
  readonly url: string
  readonly port: number
  readonly caPem: string
  /** `METHOD path` of every request so far. */
  readonly requests: readonly string[]
  readonly connections: number
  readonly openConnections: number
  /** HTTP/2 PING frames received so far. */
  readonly pings: number
  /** HTTP/2: resolves when clients have received the answers to all frames that they sent before. */
  roundTrip(): Promise<void>
  /** A kubeconfig with the address and CA of this peer, over TLS, and a token. */
  kubeconfig(): string
  /** A client certificate issued by this peer's CA. */
  issueClient(commonName: string): Promise<CertificatePair>
  readonly close: () => Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface PeerOptions {
  /** @default h2 */
  protocol?: 'h2' | 'h1'
  /** Plain http is HTTP/1.1 only. @default true */
  secure?: boolean
  maxConcurrentStreams?: number
  requestClientCertificate?: boolean
  script: (exchange: PeerExchange) => void | Promise<void>
}

let authority: Promise<{ ca: Authority; server: CertificatePair }> | undefined

async function loadIdentity(): Promise<{ ca: Authority; server: CertificatePair }> {
  authority ??= (async () => {
    const ca = await createAuthority({ commonName: 'peer-ca' })
    const names = { dnsNames: ['localhost', 'peer.test'], ipAddresses: ['127.0.0.1'] }
    return { ca, server: await ca.issue({ commonName: 'peer', ...names, usages: 'server' }) }
  })()
  return authority
}

export async function startPeer(options: PeerOptions): Promise<Peer> {
  const { protocol = 'h2', secure = true, script } = options
  const { ca, server: identity } = await loadIdentity()
  const requests: string[] = []
  const sockets = new Set<Socket>()
  const sessions = new Set<ServerHttp2Session>()
  let connections = 0
  let index = 0
  let pings = 0

  const accept = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  }
  const run = (exchange: PeerExchange): void => {
    requests.push(`${exchange.method} ${exchange.path}`)
    Promise.resolve(script(exchange)).catch((error: unknown) => {
      exchange.reply(500, {
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        message: `script: ${String(error)}`,
        code: 500,
      })
    })
  }

  const tls = {
    cert: identity.certPem,
    key: identity.keyPem,
    ca: ca.certPem,
    requestCert: options.requestClientCertificate === true,
    rejectUnauthorized: options.requestClientCertificate === true,
  }
  let server: Server
  if (protocol === 'h2' && secure) {
    const { maxConcurrentStreams } = options
    const h2 = createSecureServer({
      ...tls,
      settings: maxConcurrentStreams === undefined ? {} : { maxConcurrentStreams },
    })
    h2.on('session', (session) => {
      const connection = connections++
      sessions.add(session)
      session.on('error', () => undefined)
      session.on('close', () => sessions.delete(session))
      session.on('ping', () => pings++)
      session.on('stream', (stream, headers) =>
        run(http2Exchange(session, stream, headers as Record<string, string>, index++, connection)),
      )
    })
    server = h2
  } else {
    const ids = new WeakMap<Socket, number>()
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request
      let connection = ids.get(socket)
      if (connection === undefined) ids.set(socket, (connection = connections++))
      run(http1Exchange(request, response, index++, connection))
    }
    server = secure ? createHttps({ ...tls, ALPNProtocols: ['http/1.1'] }, listener) : createPlain(listener)
  }
  server.on('connection', accept)
  server.on('secureConnection', accept)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const close = async () => {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return {
    url: `${secure ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    caPem: ca.certPem,
    requests,
    get pings() {
      return pings
    },
    async roundTrip() {
      const ping = async (session: ServerHttp2Session) => {
        await new Promise<void>((resolve) => void session.ping(() => resolve()))
      }
      // Frames arrive in order: after the first round the peer has what the client sent, after the second the reverse.
      for (const session of sessions) for (const _round of [1, 2]) await ping(session)
    },
    get connections() {
      return connections
    },
    get openConnections() {
      return sockets.size
    },
    kubeconfig: () => kubeconfigOf(port, ca.certPem),
    issueClient: async (commonName) => ca.issue({ commonName, usages: 'client' }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function kubeconfigOf(port: number, caPem: string): string {
  const server = `https://127.0.0.1:${port}`
  const cluster = { server, 'certificate-authority-data': Buffer.from(caPem).toString('base64') }
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    clusters: [{ name: 'a', cluster }],
    users: [{ name: 'a', user: { token: 't' } }],
  })
}

const encode = (body: unknown) => (typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))

function http2Exchange(
  session: ServerHttp2Session,
  stream: ServerHttp2Stream,
  headers: Record<string, string>,
  index: number,
  connection: number,
): PeerExchange {
  stream.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => stream.once('close', () => resolve()))
  const start = (status = 200, extra: Readonly<Record<string, string>> = {}) => {
    if (!stream.headersSent && !stream.destroyed)
      stream.respond({ ':status': status, 'content-type': 'application/json', ...extra })
  }
  const write = (data: string | Buffer) => {
    start()
    if (!stream.destroyed) stream.write(data)
  }
  const path = headers[':path'] ?? '/'
  return {
    method: headers[':method'] ?? '',
    path,
    url: new URL(path, 'https://peer'),
    headers,
    index,
    connection,
    closed,
    body: async () => text(stream),
    reply(status, body, extra) {
      start(status, extra)
      if (!stream.destroyed) stream.end(body === undefined ? undefined : encode(body))
    },
    start,
    write,
    frame: (type, object) => write(`${JSON.stringify({ type, object })}\n`),
    end: () => stream.end(),
    reset(code) {
      // `close` would end the stream properly first if headers were sent.
      if (code === undefined || stream.headersSent) stream.destroy(new Error('scripted reset'))
      else stream.close(code)
    },
    goaway: (lastStreamId) => session.goaway(constants.NGHTTP2_NO_ERROR, lastStreamId ?? 2 ** 31 - 1),
  }
}

function http1Exchange(
  request: IncomingMessage,
  response: ServerResponse,
  index: number,
  connection: number,
): PeerExchange {
  const closed = new Promise<void>((resolve) => response.once('close', () => resolve()))
  const start = (status = 200, extra: Readonly<Record<string, string>> = {}) => {
    if (!response.headersSent) response.writeHead(status, { 'content-type': 'application/json', ...extra })
  }
  const write = (data: string | Buffer) => {
    start()
    response.write(data)
  }
  const path = request.url ?? '/'
  return {
    method: request.method ?? '',
    path,
    url: new URL(path, 'http://peer'),
    headers: request.headers,
    index,
    connection,
    closed,
    body: async () => text(request),
    reply(status, body, extra) {
      start(status, extra)
      response.end(body === undefined ? undefined : encode(body))
    },
    start,
    write,
    frame: (type, object) => write(`${JSON.stringify({ type, object })}\n`),
    end: () => response.end(),
    reset: () => request.socket.destroy(),
    goaway: () => response.setHeader('connection', 'close'),
  }
}

async function text(stream: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

export interface Relay {
  readonly port: number
  /** Stops forwarding in both directions, without closing connections. */
  freeze(): void
  /** Forwards new connections again; frozen ones stay frozen. */
  thaw(): void
  /** Closes every connection at once. */
  cut(): void
  readonly close: () => Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export async function startRelay(targetPort: number): Promise<Relay> {
  const sockets = new Set<Socket>()
  let isFrozen = false
  const server = createTcp((near) => {
    const far = connect(targetPort, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => undefined)
      from.on('data', (chunk) => {
        if (!isFrozen && !to.destroyed) to.write(chunk)
      })
      from.once('close', () => {
        sockets.delete(from)
        if (!isFrozen) to.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const close = async () => {
    isFrozen = false
    cut()
    if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return {
    port: (server.address() as AddressInfo).port,
    freeze: () => (isFrozen = true),
    thaw: () => (isFrozen = false),
    cut,
    close,
    [Symbol.asyncDispose]: close,
  }
}
