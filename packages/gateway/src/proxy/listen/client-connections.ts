/** How requests of clients count in the table of connections, and what clients get whose octets are no request. */
import { constants, type ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ConnectionLimits, ConnectionTable, Peer } from '@seamark/kube'
import type { ProxyRequest, ProxyResponse } from '../request/exchange.ts'
import { refuse, statusOfFault } from '../request/refusal.ts'
import { beginRequest, endRequest } from './pipelined-requests.ts'

/** Of all listeners of a proxy together. A load balancer before it may be one address for all clients. */
export const PROXY_LIMITS = {
  maxConnections: 10_000,
  maxPerAddress: 5_000,
  headersTimeoutMs: 15_000,
  idleTimeoutMs: 60_000,
} as const satisfies ConnectionLimits

/** Of one connection of HTTP/2; its memory in MB. */
export const HTTP2_LIMITS = {
  maxHeaderListPairs: 128,
  maxSessionMemory: 10,
  settings: { maxConcurrentStreams: 100 },
} as const

/** Requests that a client of HTTP/2 takes back within the time, before its connection is closed: each costs more than its reset. */
export const MAX_RESETS = 200
const RESETS_WITHIN_MS = 1_000

/** The answer to the last request of each connection of HTTP/1. */
const current = new WeakMap<object, ProxyResponse>()

/** Answers of each connection of HTTP/1 that have not ended: of requests that a client sent before the answer to an earlier one. */
const unfinished = new WeakMap<object, Set<ProxyResponse>>()

/** A request of HTTP/1. */
export function followRequest(connections: ConnectionTable, peer: Socket, response: ProxyResponse): void {
  connections.begin(peer)
  beginRequest(peer, response.req.headers['transfer-encoding'] !== undefined)
  current.set(peer, response)
  const answers = unfinished.get(peer) ?? new Set()
  if (!unfinished.has(peer)) {
    unfinished.set(peer, answers)
    peer.once('close', () => {
      for (const each of answers) closeQueued(each)
    })
  }
  answers.add(response)
  response.once('close', () => {
    answers.delete(response)
    endRequest(peer)
    connections.end(peer)
  })
}

/** Node tells only the answer whose turn it is that the connection has closed. */
function closeQueued(response: ProxyResponse): void {
  if (response.socket !== null) return
  response.destroy()
  response.emit('close')
}

/**
 * An upgrade to another protocol than WebSocket is an offer that a server may ignore (RFC 9110 §7.8): clients that offer h2c or
 * TLS with their first request expect an answer of HTTP/1. Node has ended its part by then, and gets the request again.
 *
 * @param serve serves a connection from its first octet
 */
export function ignoreUpgrade(request: ProxyRequest, socket: Duplex, head: Buffer, serve: () => void): void {
  // The answer to an earlier request would come out of order.
  if ((unfinished.get(socket)?.size ?? 0) > 0) return refuse(socket, 403)
  const { method, url, httpVersion, rawHeaders } = request
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    const lower = name.toLowerCase()
    if (lower === 'upgrade' || lower === 'http2-settings') continue
    const tokens = value.split(',').filter((token) => !/^\s*(?:upgrade|http2-settings)\s*$/i.test(token))
    text += `${name}: ${lower === 'connection' ? tokens.join(',') : value}\r\n`
  }
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]))
  serve()
}

export function isWebsocket({ headers }: ProxyRequest): boolean {
  return headers['upgrade']?.toLowerCase() === 'websocket'
}

/** All streams of a connection of HTTP/2. */
export function followSession(connections: ConnectionTable, session: ServerHttp2Session): void {
  const { remoteAddress, remotePort, localPort } = session.socket
  const peer: Peer = { remoteAddress, remotePort, localPort }
  connections.endGracefully(peer, () => session.close())
  let resets = 0
  let countedFrom = performance.now()
  const countReset = () => {
    const now = performance.now()
    if (now - countedFrom > RESETS_WITHIN_MS) [resets, countedFrom] = [0, now]
    if (++resets <= MAX_RESETS || session.destroyed) return
    // Those that the same packet has are announced nevertheless.
    session.removeAllListeners('stream')
    session.destroy()
  }
  session.on('stream', (stream) => {
    connections.begin(peer)
    const isReset = () => stream.rstCode === constants.NGHTTP2_CANCEL
    const wasReset = isReset()
    stream.once('close', () => {
      connections.end(peer)
      if (!wasReset && isReset()) countReset()
    })
    if (wasReset) countReset()
  })
}

/** `Expect: 100-continue`. Node's own answer to it over HTTP/2 throws where the client has already reset the stream. */
export function onContinue(
  onRequest: (request: ProxyRequest, response: ProxyResponse) => void,
): (request: ProxyRequest, response: ProxyResponse) => void {
  return (request, response) => {
    try {
      response.writeContinue()
    } catch {
      return void response.destroy()
    }
    onRequest(request, response)
  }
}

/** Answers octets that are no request, or no body of the current one; once that one has an answer, the connection is closed. */
export function onClientError(error: Error, socket: Duplex): void {
  const answering = current.get(socket)
  if (answering?.headersSent !== true) return refuse(socket, statusOfFault(error))
  if (!answering.writableFinished) return void socket.destroy()
  // A second answer to one request would be taken for the one to the next request.
  if (answering.req.complete) refuse(socket, statusOfFault(error))
  else socket.end(() => socket.destroy())
}
