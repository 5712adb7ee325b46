/**
 * The HTTP port: HTTP/1.1, and HTTP/2 with prior knowledge (gRPC without TLS), distinguished by the first octets of a connection
 * (RFC 9113 §3.4).
 */
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import type { ConnectionTable } from '@seamark/kube'
import type { ProxyRequest, ProxyResponse } from '../request/exchange.ts'
import { refuseConnect } from '../request/refusal.ts'
import {
  followRequest,
  followSession,
  HTTP2_LIMITS,
  ignoreUpgrade,
  isWebsocket,
  onClientError,
  onContinue,
} from './client-connections.ts'
import { endReading, hasSeveral, readInParts } from './pipelined-requests.ts'

export interface PlainFrontDeps {
  readonly connections: ConnectionTable
  readonly maxHeaderBytes: number
  readonly keepAliveTimeoutMs: number
  readonly onRequest: (request: ProxyRequest, response: ProxyResponse) => void
  readonly onUpgrade: (request: ProxyRequest, socket: Socket, head: Buffer) => void
}

/** Enough of the preface: no method of HTTP/1.1 starts like this. */
const PREFACE = Buffer.from('PRI * HTTP/2')

export function createPlainFront(deps: PlainFrontDeps): Server {
  const { connections, maxHeaderBytes } = deps
  const http1 = createHttpServer(
    { maxHeaderSize: maxHeaderBytes, requireHostHeader: true, noDelay: true },
    (request, response) => {
      followRequest(connections, request.socket, response)
      deps.onRequest(request, response)
    },
  )
  http1.requestTimeout = 0
  http1.keepAliveTimeout = deps.keepAliveTimeoutMs
  // Counted in readExchange: Node would silently drop the fields beyond its limit.
  http1.maxHeadersCount = 0
  http1.on('upgrade', (request, socket: Socket, received: Buffer) => {
    const head = endReading(socket, received)
    if (!isWebsocket(request)) return ignoreUpgrade(request, socket, head, () => http1.emit('connection', socket))
    connections.release(socket)
    deps.onUpgrade(request, socket, head)
  })
  http1.on('connect', (_request, socket: Socket, head: Buffer) => {
    endReading(socket, head)
    refuseConnect(socket)
  })
  http1.on('clientError', onClientError)
  const http2 = createHttp2Server(HTTP2_LIMITS, deps.onRequest)
  http2.on('session', (session) => followSession(connections, session))
  http2.on('sessionError', () => undefined)
  http2.on('checkContinue', onContinue(deps.onRequest))

  return createServer({ noDelay: true }, (socket) => {
    if (!connections.add(socket)) return
    const onError = () => socket.destroy()
    socket.on('error', onError)
    let received: Buffer = Buffer.alloc(0)
    const onReadable = () => {
      const chunk = socket.read() as Buffer | null
      if (chunk === null) return
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      const isStart = startsAlike(received)
      if (isStart && received.length < PREFACE.length) return
      socket.off('readable', onReadable)
      socket.off('error', onError)
      socket.unshift(received)
      if (isStart) return void http2.emit('connection', socket)
      http1.emit('connection', socket)
      if (hasSeveral(received)) readInParts(socket)
    }
    socket.on('readable', onReadable)
  })
}

function startsAlike(received: Buffer): boolean {
  const length = Math.min(received.length, PREFACE.length)
  return received.compare(PREFACE, 0, length, 0, length) === 0
}
