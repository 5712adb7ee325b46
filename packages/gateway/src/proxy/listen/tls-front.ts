/**
 * The HTTPS port: reads the server name of each connection, then passes the connection on unread (passthrough) or terminates
 * TLS with the certificate and the limits of that host. A name that no host serves is closed without showing a certificate.
 *
 * A host's certificate and limits are looked up when a connection arrives: a new configuration affects new connections only.
 */
import { createSecureServer, Http2ServerRequest, type Http2SecureServer } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, createServer as createTlsServer, type SecureContext, type TLSSocket } from 'node:tls'
import type { Certificate, TlsTermination, VirtualHost } from '../../ir/model.ts'
import type { ConnectionTable } from '@seamark/kube'
import { answer, type ProxyRequest, type ProxyResponse } from '../request/exchange.ts'
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
import { endReading } from './pipelined-requests.ts'
import type { RequestTurns } from './request-turns.ts'
import { MAX_HELLO_BYTES, readClientHello } from './client-hello.ts'

export interface TlsFrontDeps {
  readonly findHost: (serverName: string) => VirtualHost | undefined
  readonly findCertificate: (name: string) => Certificate | undefined
  readonly onRequest: (request: ProxyRequest, response: ProxyResponse) => void
  readonly onUpgrade: (request: ProxyRequest, socket: TLSSocket, head: Buffer) => void
  /** The connection as received, with its first octets still to be read; or what is inside a terminated one. */
  readonly onTunnel: (socket: Socket, host: VirtualHost) => void
  readonly connections: ConnectionTable
  readonly turns: RequestTurns
  readonly limits: { readonly maxHeaderBytes: number }
}

const MAX_CONTEXTS = 10_000
/** Of a handshake with a key of RSA, which begins after its turn. */
const HANDSHAKE_MS = 1

export function createTlsFront(deps: TlsFrontDeps): Server {
  const { limits, connections } = deps
  /** By TLS settings: all hosts with the same ones share a server, which never listens itself. */
  const servers = new Map<string, Http2SecureServer>()
  const tunnels = new Map<string, Server>()
  const contexts = new Map<string, SecureContext>()

  const front = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    // The time of a header begins here, and includes the handshake.
    if (!connections.add(socket)) return
    let received: Buffer = Buffer.alloc(0)
    const onReadable = () => {
      const chunk = socket.read() as Buffer | null
      if (chunk === null) return
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
      const hello = readClientHello(received)
      if (hello.kind === 'incomplete' && received.length < MAX_HELLO_BYTES * 2) return
      socket.off('readable', onReadable)
      const host =
        hello.kind === 'hello' && hello.serverName !== undefined ? deps.findHost(hello.serverName) : undefined
      if (host === undefined || (host.tls === undefined && host.tcp === undefined)) return void socket.destroy()
      socket.unshift(received)
      if (host.tls === undefined) {
        connections.release(socket)
        deps.onTunnel(socket, host)
        return
      }
      const server = host.tcp === undefined ? serverFor(host.tls) : tunnelFor(host.tls)
      deps.turns.run(socket, () => void server.emit('connection', socket), HANDSHAKE_MS)
    }
    socket.on('readable', onReadable)
  })

  function serverFor(tls: TlsTermination): Http2SecureServer {
    const key = settingsKey(tls)
    let found = servers.get(key)
    if (found === undefined) servers.set(key, (found = newServer(tls)))
    return found
  }

  /** Terminates TLS and passes on what is inside, whatever its protocol. */
  function tunnelFor(tls: TlsTermination): Server {
    const key = settingsKey(tls)
    let found = tunnels.get(key)
    if (found !== undefined) return found
    found = createTlsServer(tlsOptionsOf(tls), (socket) => {
      socket.on('error', () => socket.destroy())
      const host = isClientRefused(tls, socket) ? undefined : deps.findHost((socket.servername || '').toLowerCase())
      if (host?.tcp === undefined) return void socket.destroy()
      connections.release(socket)
      deps.onTunnel(socket, host)
    })
    found.on('tlsClientError', (_error: Error, socket: TLSSocket) => socket.destroy())
    tunnels.set(key, found)
    return found
  }

  function tlsOptionsOf({ minVersion, maxVersion, clientValidation }: TlsTermination) {
    return {
      minVersion: `TLSv${minVersion}`,
      maxVersion: `TLSv${maxVersion}`,
      requestCert: clientValidation !== undefined,
      rejectUnauthorized: clientValidation !== undefined && clientValidation.ca !== '' && !clientValidation.isOptional,
      SNICallback: (serverName: string, done: (error: Error | null, context?: SecureContext) => void) => {
        const host = deps.findHost(serverName.toLowerCase())
        const context = host?.tls === undefined ? undefined : contextOf(host.tls)
        if (context === undefined) done(new Error('no host with this name'))
        else done(null, context)
      },
    } as const
  }

  function newServer(tls: TlsTermination): Http2SecureServer {
    // Options of HTTP/1.1 connections; the types of Node lack them here.
    const http1Options = { maxHeaderSize: limits.maxHeaderBytes, requireHostHeader: true }
    const secure = createSecureServer({
      ...http1Options,
      ...tlsOptionsOf(tls),
      allowHTTP1: true,
      ...HTTP2_LIMITS,
    })
    secure.on('secureConnection', (socket: TLSSocket) => {
      if (isClientRefused(tls, socket)) socket.destroy()
    })
    secure.on('session', (session) => followSession(connections, session))
    const onRequest = (request: ProxyRequest, response: ProxyResponse): void => {
      if (!(request instanceof Http2ServerRequest)) followRequest(connections, request.socket, response)
      deps.onRequest(request, response)
    }
    secure.on('request', onRequest)
    secure.on('checkContinue', onContinue(onRequest))
    secure.on('upgrade', (request: ProxyRequest, socket: TLSSocket, received: Buffer) => {
      const head = endReading(socket, received)
      if (!isWebsocket(request))
        return ignoreUpgrade(request, socket, head, () => secure.emit('secureConnection', socket))
      connections.release(socket)
      deps.onUpgrade(request, socket, head)
    })
    // HTTP/2 hands out a response, HTTP/1 the connection.
    secure.on('connect', (_request: unknown, target: ProxyResponse | Socket) => {
      if ('writeHead' in target) return answer(target, 405)
      endReading(target, Buffer.alloc(0))
      refuseConnect(target)
    })
    secure.on('sessionError', () => undefined)
    secure.on('tlsClientError', (_error, socket) => socket.destroy())
    secure.on('clientError', onClientError)
    return secure
  }

  function contextOf({ certificate, clientValidation }: TlsTermination): SecureContext | undefined {
    const key = `${certificate} ${clientValidation?.ca ?? ''}`
    let context = contexts.get(key)
    if (context !== undefined) return context
    const found = deps.findCertificate(certificate)
    if (found === undefined) return undefined
    if (contexts.size >= MAX_CONTEXTS) contexts.clear()
    const ca = clientValidation?.ca ?? ''
    context = createSecureContext({ cert: found.chain, key: found.key, ...(ca !== '' && { ca }) })
    contexts.set(key, context)
    return context
  }

  return front
}

function settingsKey({ minVersion, maxVersion, clientValidation }: TlsTermination): string {
  return JSON.stringify([minVersion, maxVersion, clientValidation])
}

/**
 * What OpenSSL does not decide: a certificate that is optional but not signed by the CA, or one that is required and, without a
 * CA, only has to be there.
 */
function isClientRefused({ clientValidation }: TlsTermination, socket: TLSSocket): boolean {
  if (clientValidation === undefined) return false
  const hasCertificate = Object.keys(socket.getPeerCertificate()).length > 0
  if (clientValidation.ca === '') return !clientValidation.isOptional && !hasCertificate
  return clientValidation.isOptional && hasCertificate && !socket.authorized
}
