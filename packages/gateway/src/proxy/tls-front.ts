/**
 * The HTTPS port: reads the server name of each connection, then passes the connection on unread (passthrough) or terminates
 * TLS with the certificate and the limits of that host. A name that no host serves is closed without showing a certificate.
 *
 * A host's certificate and limits are looked up when a connection arrives: a new configuration affects new connections only.
 */
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import type { Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import type { Certificate, TlsTermination, VirtualHost } from '../ir/model.ts'
import { MAX_HELLO_BYTES, readClientHello } from './client-hello.ts'
import type { ProxyRequest, ProxyResponse } from './exchange.ts'

export interface TlsFrontDeps {
  readonly findHost: (serverName: string) => VirtualHost | undefined
  readonly findCertificate: (name: string) => Certificate | undefined
  readonly onRequest: (request: ProxyRequest, response: ProxyResponse) => void
  readonly onUpgrade: (request: ProxyRequest, socket: TLSSocket, head: Buffer) => void
  /** The connection as received, with its first octets still to be read. */
  readonly onTunnel: (socket: Socket, host: VirtualHost) => void
  readonly limits: {
    readonly maxHeaderBytes: number
    readonly helloTimeoutMs: number
    readonly headersTimeoutMs: number
  }
}

export interface TlsFront {
  readonly server: Server
  readonly secureServers: () => Iterable<Http2SecureServer>
}

const MAX_CONTEXTS = 10_000

export function createTlsFront(deps: TlsFrontDeps): TlsFront {
  const { limits } = deps
  /** By TLS settings: all hosts with the same ones share a server, which never listens itself. */
  const servers = new Map<string, Http2SecureServer>()
  const contexts = new Map<string, SecureContext>()

  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    socket.setTimeout(limits.helloTimeoutMs, () => socket.destroy())
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
      socket.setTimeout(0)
      socket.removeAllListeners('timeout')
      socket.unshift(received)
      if (host.tls === undefined) deps.onTunnel(socket, host)
      else serverFor(host.tls).emit('connection', socket)
    }
    socket.on('readable', onReadable)
  })

  function serverFor(tls: TlsTermination): Http2SecureServer {
    const { minVersion, maxVersion, clientValidation } = tls
    const key = JSON.stringify([minVersion, maxVersion, clientValidation])
    let found = servers.get(key)
    if (found === undefined) servers.set(key, (found = newServer(tls)))
    return found
  }

  function newServer({ minVersion, maxVersion, clientValidation }: TlsTermination): Http2SecureServer {
    // Options of HTTP/1.1 connections; the types of Node lack them here.
    const http1Options = { maxHeaderSize: limits.maxHeaderBytes, requireHostHeader: true }
    const secure = createSecureServer({
      ...http1Options,
      allowHTTP1: true,
      minVersion: `TLSv${minVersion}`,
      maxVersion: `TLSv${maxVersion}`,
      requestCert: clientValidation !== undefined,
      rejectUnauthorized: clientValidation !== undefined && clientValidation.ca !== '' && !clientValidation.isOptional,
      maxHeaderListPairs: 128,
      maxSessionMemory: 10,
      SNICallback: (serverName, done) => {
        const host = deps.findHost(serverName.toLowerCase())
        const context = host?.tls === undefined ? undefined : contextOf(host.tls)
        if (context === undefined) done(new Error('no host with this name'))
        else done(null, context)
      },
    })
    secure.on('secureConnection', (socket: TLSSocket) => {
      const hasForged = clientValidation?.isOptional === true && clientValidation.ca !== '' && !isAcceptable(socket)
      if (hasForged) socket.destroy()
    })
    const http1 = secure as Http2SecureServer & { headersTimeout: number; requestTimeout: number }
    http1.headersTimeout = limits.headersTimeoutMs
    http1.requestTimeout = 0
    secure.on('request', deps.onRequest)
    secure.on('upgrade', deps.onUpgrade as never)
    secure.on('connect', (_request: unknown, socket: Socket) => socket.destroy())
    secure.on('sessionError', () => undefined)
    secure.on('tlsClientError', (_error, socket) => socket.destroy())
    secure.on('clientError', (_error, socket) => socket.destroy())
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

  return { server, secureServers: () => servers.values() }
}

/** No certificate, or one that the CA signed. */
function isAcceptable(socket: TLSSocket): boolean {
  return socket.authorized || Object.keys(socket.getPeerCertificate()).length === 0
}
