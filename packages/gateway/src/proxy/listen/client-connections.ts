/** How requests of clients count in the table of connections, and what clients get whose octets are no request. */
import type { ServerHttp2Session } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { ConnectionLimits, ConnectionTable, Peer } from '@seamark/kube'
import type { ProxyRequest, ProxyResponse } from '../request/exchange.ts'
import { refuse, statusOfFault } from '../request/refusal.ts'

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

/** The answer to the last request of each connection of HTTP/1. */
const current = new WeakMap<object, ProxyResponse>()

/** Answers of each connection of HTTP/1 that have not ended: of requests that a client sent before the answer to an earlier one. */
const unfinished = new WeakMap<object, Set<ProxyResponse>>()

/** A request of HTTP/1. */
export function followRequest(connections: ConnectionTable, peer: Peer & Duplex, response: ProxyResponse): void {
  connections.begin(peer)
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
    connections.end(peer)
  })
}

/** Node tells only the answer whose turn it is that the connection has closed. */
function closeQueued(response: ProxyResponse): void {
  if (response.socket !== null) return
  response.destroy()
  response.emit('close')
}

/** All streams of a connection of HTTP/2. */
export function followSession(connections: ConnectionTable, session: ServerHttp2Session): void {
  const { remoteAddress, remotePort, localPort } = session.socket
  const peer: Peer = { remoteAddress, remotePort, localPort }
  connections.endGracefully(peer, () => session.close())
  session.on('stream', (stream) => {
    connections.begin(peer)
    stream.once('close', () => connections.end(peer))
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
