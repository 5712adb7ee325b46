/** One request and its response, of HTTP/1.1 or HTTP/2: facts for routing, local answers, and headers to pass on. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { HOP_BY_HOP, isEdgeField } from '../../ir/field-names.ts'
import { readFraming, type Framing } from './framing.ts'
import { joinedForHttp2, type RequestVariables, type HeaderMap } from './header-variables.ts'
import { hostOf, normalizePath, type RequestFacts } from './request-facts.ts'

export type ProxyRequest = IncomingMessage | Http2ServerRequest
export type ProxyResponse = ServerResponse | Http2ServerResponse

export interface Exchange {
  readonly request: ProxyRequest
  readonly response: ProxyResponse
  readonly facts: RequestFacts
  readonly variables: RequestVariables
  readonly framing: Framing
  /** Of the target and the header fields. */
  readonly headerBytes: number
  readonly isTls: boolean
  readonly isHttp2: boolean
}

/** More header fields than this are refused, as in Envoy. */
const MAX_HEADER_FIELDS = 100

/** The status to refuse the request with, if it is not acceptable. */
export function readExchange(
  request: ProxyRequest,
  response: ProxyResponse,
  isTls: boolean,
  headerBytes: number,
): Exchange | number {
  // Not by the version: a client of HTTP/1 writes any version into its request.
  const isHttp2 = request instanceof Http2ServerRequest
  if (!isHttp2 && !isHttp1(request)) return 505
  const { headers, rawHeaders } = request
  if (rawHeaders.length / 2 > MAX_HEADER_FIELDS) return 431
  const framing = readFraming(request)
  if (typeof framing === 'number') return framing
  let target = request.url ?? ''
  // RFC 9112 §3.2: a target has no fragment. Some backends cut it off, others do not.
  if (target.includes('#')) return 400
  let authority = (isHttp2 ? headers[':authority'] : undefined) ?? headers.host
  if (typeof authority !== 'string' || hasTwoHosts(rawHeaders)) return 400
  if (!target.startsWith('/')) {
    // RFC 9112 §3.2.2: the host of an absolute target counts, not the Host header.
    const absolute = /^https?:\/\/([^/?#]+)(.*)$/i.exec(target)
    if (absolute === null) return 400
    authority = absolute[1] ?? ''
    const rest = absolute[2] ?? ''
    target = rest.startsWith('/') ? rest : `/${rest}`
  }
  const normalized = normalizePath(target)
  const lower = authority.toLowerCase()
  const host = hostOf(lower)
  if (normalized === undefined || host === undefined) return 400
  const facts: RequestFacts = {
    method: request.method ?? 'GET',
    authority: lower,
    host,
    path: normalized.path,
    search: normalized.search,
    header(name) {
      // Not that of a request with an absolute target, or of HTTP/2: what is routed and passed on is the authority.
      if (name === 'host') return lower
      const value = Object.hasOwn(headers, name) ? headers[name] : undefined
      return Array.isArray(value) ? value.join(',') : value
    },
  }
  const { socket } = request
  const variables: RequestVariables = {
    facts,
    remoteAddress: plainAddress(socket.remoteAddress),
    remotePort: socket.remotePort ?? 0,
    localAddress: plainAddress(socket.localAddress),
    localPort: socket.localPort ?? 0,
    protocol: isHttp2 ? 'HTTP/2' : `HTTP/${request.httpVersion}`,
  }
  return { request, response, facts, variables, framing, headerBytes, isTls, isHttp2 }
}

function isHttp1({ httpVersionMajor, httpVersionMinor }: ProxyRequest): boolean {
  return httpVersionMajor === 1 && (httpVersionMinor === 0 || httpVersionMinor === 1)
}

function plainAddress(address: string | undefined): string {
  return address === undefined ? '' : address.startsWith('::ffff:') ? address.slice(7) : address
}

function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name !== undefined && name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count > 1
}

/** An identity of the connection of the client. */
export function connectionOf(request: ProxyRequest): object {
  return (request instanceof Http2ServerRequest ? request.stream.session : request.socket) ?? request
}

/** Whether nobody waits for the answer any more. */
export function isGone(request: ProxyRequest): boolean {
  if (!(request instanceof Http2ServerRequest)) return request.socket.destroyed
  return request.stream.destroyed || request.stream.closed
}

/** The name that a TLS client asked for; undefined without TLS. */
export function serverNameOf(request: ProxyRequest): string | undefined {
  const { servername } = request.socket as Partial<TLSSocket>
  return typeof servername === 'string' ? servername.toLowerCase() : undefined
}

export function answer(response: ProxyResponse, status: number, body = '', headers: HeaderMap = {}): void {
  if (response.headersSent || response.writableEnded) {
    response.destroy()
    return
  }
  const isEmpty = body === ''
  const all = {
    ...(isEmpty
      ? { 'content-length': '0' }
      : { 'content-type': 'text/plain', 'content-length': Buffer.byteLength(body) }),
    ...headers,
  }
  writeHead(response, status, all)
  if (isEmpty) response.end()
  else response.end(body)
}

/** Throws if a field or the status cannot be sent. */
export function writeHead(response: ProxyResponse, status: number, headers: HeaderMap): void {
  if (response instanceof Http2ServerResponse) {
    const fields = joinedForHttp2(headers)
    delete fields['connection']
    response.writeHead(status, fields as Record<string, string>)
  } else response.writeHead(status, headers as Record<string, string>)
}

/**
 * What cannot be answered as it should be: 502, or the end of the stream if an answer has begun. For faults of what is
 * handled, which must not end more than its own exchange.
 */
function answerFault(response: ProxyResponse): void {
  try {
    answer(response, 502, 'the request or its answer cannot be passed on')
  } catch {
    response.destroy()
  }
}

/** A callback of an exchange: what it throws ends the exchange and not the process. @param end frees what the exchange holds */
export function guarded<A extends unknown[]>(
  response: ProxyResponse,
  run: (...args: A) => void,
  end?: () => void,
): (...args: A) => void {
  return (...args) => {
    try {
      run(...args)
    } catch {
      end?.()
      answerFault(response)
    }
  }
}

/** Fields without which a message would have another end or another destination: `Connection` cannot remove them. */
const NEVER_NAMED: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding'])

/** Without the fields of the connection. Those that frame the message stay, but for Transfer-Encoding. */
export function endToEnd(headers: Readonly<Record<string, string | string[] | undefined>>): HeaderMap {
  const result: HeaderMap = {}
  const listed = headers['connection']
  const named =
    typeof listed === 'string' && listed !== 'keep-alive' && listed !== 'close' ? tokensOf(listed) : undefined
  for (const name in headers) {
    if (HOP_BY_HOP.has(name) || name.charCodeAt(0) === 58) continue
    if (named?.has(name) === true && !NEVER_NAMED.has(name)) continue
    result[name] = headers[name]
  }
  return result
}

function tokensOf(list: string): Set<string> {
  return new Set(list.split(',').map((token) => token.trim().toLowerCase()))
}

/**
 * Headers of the request as the backend gets them, by Envoy's rules for the edge. Without the length of the body, which
 * whoever sends it writes.
 */
export function forwardedHeaders({ request, facts, variables, isTls }: Exchange): HeaderMap {
  const headers = endToEnd(request.headers)
  for (const name in headers) if (isEdgeField(name)) delete headers[name]
  delete headers['content-length']
  // It was answered when the request arrived.
  delete headers['expect']
  headers['host'] = facts.authority
  const before = headers['x-forwarded-for']
  headers['x-forwarded-for'] =
    before === undefined ? variables.remoteAddress : `${String(before)},${variables.remoteAddress}`
  headers['x-forwarded-proto'] = isTls ? 'https' : 'http'
  headers['x-request-id'] ??= randomUUID()
  if (request.headers.te === 'trailers') headers['te'] = 'trailers'
  return headers
}
