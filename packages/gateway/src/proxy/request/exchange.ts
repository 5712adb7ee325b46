/** One request and its response, of HTTP/1.1 or HTTP/2: facts for routing, local answers, and headers to pass on. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { RequestVariables, HeaderMap } from './header-variables.ts'
import { hostOf, normalizePath, type RequestFacts } from './request-facts.ts'

export type ProxyRequest = IncomingMessage | Http2ServerRequest
export type ProxyResponse = ServerResponse | Http2ServerResponse

export interface Exchange {
  readonly request: ProxyRequest
  readonly response: ProxyResponse
  readonly facts: RequestFacts
  readonly variables: RequestVariables
  readonly isTls: boolean
  readonly isHttp2: boolean
}

/** More header fields than this are refused, as in Envoy. */
const MAX_HEADER_FIELDS = 100

/** The status to refuse the request with, if it is not acceptable. */
export function readExchange(request: ProxyRequest, response: ProxyResponse, isTls: boolean): Exchange | number {
  const isHttp2 = request.httpVersionMajor === 2
  const { headers, rawHeaders } = request
  if (rawHeaders.length / 2 > MAX_HEADER_FIELDS) return 431
  let target = request.url ?? ''
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
      const value = headers[name]
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
  return { request, response, facts, variables, isTls, isHttp2 }
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

export function writeHead(response: ProxyResponse, status: number, headers: HeaderMap): void {
  // Both classes have the method; their overloads differ in types only.
  ;(response as ServerResponse).writeHead(status, headers as Record<string, string>)
}

/** RFC 9110 §7.6.1. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

export function endToEnd(headers: Readonly<Record<string, string | string[] | undefined>>): HeaderMap {
  const result: HeaderMap = {}
  const listed = headers['connection']
  const named =
    typeof listed === 'string' && listed !== 'keep-alive' && listed !== 'close' ? tokensOf(listed) : undefined
  for (const name in headers) {
    if (HOP_BY_HOP.has(name) || name.charCodeAt(0) === 58 || named?.has(name) === true) continue
    result[name] = headers[name]
  }
  return result
}

function tokensOf(list: string): Set<string> {
  return new Set(list.split(',').map((token) => token.trim().toLowerCase()))
}

/** Headers of the request as the backend gets them. */
export function forwardedHeaders({ request, facts, variables, isTls }: Exchange): HeaderMap {
  const headers = endToEnd(request.headers)
  headers['host'] = facts.authority
  const before = headers['x-forwarded-for']
  headers['x-forwarded-for'] =
    before === undefined ? variables.remoteAddress : `${String(before)},${variables.remoteAddress}`
  headers['x-forwarded-proto'] = isTls ? 'https' : 'http'
  headers['x-request-id'] ??= randomUUID()
  // A client must not choose what only proxies set.
  delete headers['x-envoy-original-path']
  if (request.headers.te === 'trailers') headers['te'] = 'trailers'
  return headers
}

export function hasBody({ request, isHttp2 }: Exchange): boolean {
  if (isHttp2) return !(request as Http2ServerRequest).stream.endAfterHeaders
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
}
