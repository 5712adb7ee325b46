/**
 * Requests to backends over HTTP/1.1, HTTP/2 with prior knowledge, or either over TLS. Connections are kept and shared; a
 * connection to an endpoint that is gone closes when it is idle.
 */
import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, constants, type ClientHttp2Session } from 'node:http2'
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https'
import { connect as connectTcp, isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import { checkServerIdentity, connect as connectTls, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import type { Endpoint } from '../../ir/endpoint.ts'
import type { Cluster } from '../../ir/model.ts'
import { joinedForHttp2, type HeaderMap } from '../request/header-variables.ts'
import { isStreamed, lengthOf, sendBody, type UpstreamBody } from './body.ts'

export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  /** With `host`, without hop-by-hop headers and without the length of the body. */
  readonly headers: HeaderMap
  readonly body: UpstreamBody | undefined
}

export interface UpstreamResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readable
  /** After the end of the body. */
  readonly trailers: () => Readonly<Record<string, string | string[] | undefined>>
}

export interface UpstreamCall {
  /** Ends the request; nothing is called afterwards. */
  cancel(): void
}

/** The answer of a backend cannot be passed on. */
export class InvalidAnswer extends Error {}

export interface UpstreamHandlers {
  readonly onResponse: (response: UpstreamResponse) => void
  /** @param isStale the connection was kept from an earlier request and closed before an answer */
  readonly onError: (error: Error, isStale: boolean) => void
}

/**
 * Connections are shared within a cluster only: another one may verify other names, and a kept connection is not verified
 * again.
 */
class ClusterAgent extends HttpsAgent {
  override getName(options: { readonly clusterName?: string } & RequestOptions): string {
    return `${options.clusterName ?? ''} ${super.getName(options)}`
  }
}

const IDLE_CONNECTION_MS = 60_000
const MAX_IDLE_CONNECTIONS_OF_ENDPOINT = 256

export class Upstreams {
  readonly #lookup: LookupFunction
  readonly #http = new HttpAgent({
    keepAlive: true,
    maxFreeSockets: MAX_IDLE_CONNECTIONS_OF_ENDPOINT,
    scheduling: 'lifo',
  })
  readonly #https = new ClusterAgent({
    keepAlive: true,
    maxFreeSockets: MAX_IDLE_CONNECTIONS_OF_ENDPOINT,
    scheduling: 'lifo',
  })
  readonly #sessions = new Map<string, ClientHttp2Session>()

  constructor(lookup: LookupFunction) {
    this.#lookup = lookup
  }

  /** Never throws, and calls no handler before it returns. */
  send(cluster: Cluster, endpoint: Endpoint, call: UpstreamRequest, handlers: UpstreamHandlers): UpstreamCall {
    try {
      switch (cluster.protocol) {
        case 'http1':
        case 'tls':
          return this.#sendHttp1(cluster, endpoint, call, handlers)
        case 'h2':
        case 'h2c':
          return this.#sendHttp2(cluster, endpoint, call, handlers)
      }
    } catch (error) {
      // A request that cannot be written as it is, or a session that ended just now.
      const timer = setImmediate(() => handlers.onError(error as Error, false))
      return { cancel: () => clearImmediate(timer) }
    }
  }

  close(): void {
    this.#http.destroy()
    this.#https.destroy()
    for (const session of this.#sessions.values()) session.destroy()
    this.#sessions.clear()
  }

  #sendHttp1(
    cluster: Cluster,
    { host, port }: Endpoint,
    { method, path, headers, body }: UpstreamRequest,
    { onResponse, onError }: UpstreamHandlers,
  ): UpstreamCall {
    const options = {
      host,
      port,
      method,
      path,
      headers: { ...headers, ...framingFields(body) },
      setHost: false,
      lookup: this.#lookup,
    }
    const secure = () => ({ ...options, ...tlsOptions(cluster, host), clusterName: cluster.name, agent: this.#https })
    const request: ClientRequest =
      cluster.protocol === 'tls' ? httpsRequest(secure()) : httpRequest({ ...options, agent: this.#http })
    let isDone = false
    const fail = (error: Error) => {
      if (isDone) return
      isDone = true
      onError(error, request.reusedSocket)
    }
    request.on('socket', (socket) => {
      if (!socket.connecting) return
      socket.setTimeout(cluster.connectTimeoutMs)
      // A timer may fire first after this process itself stood still: the connection may be open, with its event waiting.
      const onTimeout = () =>
        void setImmediate(() => {
          if (!isReady) request.destroy(new Error(`no connection within ${cluster.connectTimeoutMs} ms`))
        })
      let isReady = false
      socket.once('timeout', onTimeout)
      const ready = cluster.protocol === 'tls' ? 'secureConnect' : 'connect'
      socket.once(ready, () => {
        isReady = true
        socket.setTimeout(0)
        socket.off('timeout', onTimeout)
      })
    })
    request.on('error', fail)
    // Nobody asked for another protocol. Without a listener it would count as a lost connection.
    request.on('upgrade', (_message, socket) => {
      socket.destroy()
      fail(new InvalidAnswer('the backend changed the protocol'))
    })
    request.on('response', (message: IncomingMessage) => {
      message.on('error', () => undefined)
      if (isDone) return void message.destroy()
      const { statusCode = 0, headers: received } = message
      const fault = faultOf(statusCode, received['transfer-encoding'])
      if (fault !== undefined) {
        fail(new InvalidAnswer(fault))
        return void request.destroy()
      }
      isDone = true
      // An answer before the end of the request: the backend may still wait for the rest of the body.
      message.once('end', () => {
        if (!request.writableFinished) request.destroy()
      })
      onResponse({ status: statusCode, headers: received, body: message, trailers: () => message.trailers })
    })
    sendBody(request, body, () => request.destroy())
    return {
      cancel() {
        isDone = true
        request.destroy()
      },
    }
  }

  #sendHttp2(
    cluster: Cluster,
    endpoint: Endpoint,
    { method, path, headers, body }: UpstreamRequest,
    { onResponse, onError }: UpstreamHandlers,
  ): UpstreamCall {
    const { host, ...rest } = headers
    const { session, isNew } = this.#session(cluster, endpoint)
    const length = lengthOf(body)
    const stream = session.request(
      {
        ...joinedForHttp2(rest),
        ...(length !== undefined && { 'content-length': length }),
        ':method': method,
        ':path': path,
        ':authority': String(host),
        ':scheme': cluster.protocol === 'h2' ? 'https' : 'http',
      },
      // Node ends what it sends before it resets a stream: a body that is not complete must not end by itself.
      { endStream: body === undefined, waitForTrailers: isStreamed(body) },
    )
    // Not close(): Node 24 sends what ends the body before the reset, and the backend takes it for a complete one.
    const reset = () => void stream.destroy(new Error('the request was given up'))
    stream.on('wantTrailers', () => {
      if (!stream.closed) stream.sendTrailers({})
    })
    let isDone = false
    let trailers: Record<string, string | string[] | undefined> = {}
    stream.on('trailers', (received) => (trailers = withoutPseudo(received)))
    stream.on('error', (error: Error) => {
      if (isDone) return
      isDone = true
      onError(error, !isNew)
    })
    stream.on('response', (received) => {
      if (isDone) return
      isDone = true
      const status = Number(received[':status'])
      const fault = faultOf(status, undefined)
      if (fault !== undefined) {
        stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
        return onError(new InvalidAnswer(fault), false)
      }
      stream.once('end', () => {
        if (!stream.writableFinished) reset()
      })
      onResponse({ status, headers: withoutPseudo(received), body: stream, trailers: () => trailers })
    })
    stream.on('close', () => {
      if (isDone) return
      isDone = true
      onError(new Error('the stream closed without a response'), !isNew)
    })
    if (body !== undefined) sendBody(stream, body, reset)
    return {
      cancel() {
        isDone = true
        reset()
      },
    }
  }

  #session(cluster: Cluster, { host, port }: Endpoint): { session: ClientHttp2Session; isNew: boolean } {
    const key = `${cluster.name} ${host}:${port}`
    const existing = this.#sessions.get(key)
    if (existing !== undefined && !existing.closed && !existing.destroyed) return { session: existing, isNew: false }
    const isTls = cluster.protocol === 'h2'
    const address = { host, port, lookup: this.#lookup }
    const session = connectHttp2(isTls ? 'https://backend' : 'http://backend', {
      settings: { enablePush: false },
      // Not by a URL, in which a name such as `127.1` is an address: that would not be looked up, nor checked.
      createConnection: () =>
        isTls ? connectTls({ ...address, ...tlsOptions(cluster, host), ALPNProtocols: ['h2'] }) : connectTcp(address),
    })
    this.#sessions.set(key, session)
    const forget = () => {
      if (this.#sessions.get(key) === session) this.#sessions.delete(key)
    }
    // Errors reach the streams; without a listener they would end the process.
    session.on('error', forget)
    session.on('goaway', forget)
    session.on('close', forget)
    const connecting = setTimeout(() => session.destroy(new Error('connect timeout')), cluster.connectTimeoutMs)
    connecting.unref()
    session.once('connect', () => clearTimeout(connecting))
    session.once('close', () => clearTimeout(connecting))
    session.setTimeout(IDLE_CONNECTION_MS, () => {
      forget()
      session.close()
    })
    session.unref()
    return { session, isNew: true }
  }
}

/** Always written: Node leaves both out for methods that usually have no body. */
function framingFields(body: UpstreamBody | undefined): HeaderMap {
  if (body === undefined) return {}
  const length = lengthOf(body)
  return length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': length }
}

/** Why the beginning of an answer cannot be passed on. */
export function faultOf(status: number, coding: string | undefined): string | undefined {
  // The final statuses of RFC 9110 §15. 101 would end the HTTP of a connection that goes on.
  if (!(status >= 200 && status <= 599)) return `the backend answered with status ${status}`
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return 'the backend used an unknown transfer coding'
  return undefined
}

export function tlsOptions({ tls }: Cluster, host: string): ConnectionOptions {
  const { sni, validation } = tls ?? {}
  const servername = sni ?? (isIP(host) === 0 ? host : '')
  if (validation === undefined) return { rejectUnauthorized: false, servername }
  return {
    rejectUnauthorized: true,
    ca: validation.ca,
    servername,
    checkServerIdentity: (_name: string, certificate: PeerCertificate) => {
      const faults = validation.subjectNames.map((name) => subjectFault(name, certificate))
      return faults.includes(undefined) ? undefined : (faults[0] ?? new Error('the policy names no subject'))
    },
  }
}

/** URIs, such as SPIFFE identities, are compared as they are; Node knows names and addresses only. */
function subjectFault(name: string, certificate: PeerCertificate): Error | undefined {
  if (!name.includes('://')) return checkServerIdentity(name, certificate)
  const names = (certificate.subjectaltname ?? '').split(', ')
  return names.includes(`URI:${name}`) ? undefined : new Error(`the certificate of the backend is not for ${name}`)
}

function withoutPseudo(
  headers: Record<string, string | string[] | number | undefined>,
): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name, value]) => !name.startsWith(':') && value !== undefined)
      .map(([name, value]) => [name, Array.isArray(value) ? value : String(value)]),
  )
}
