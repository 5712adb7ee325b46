/**
 * The UDP side of a server: one socket, answers written into slabs that are never reused, since a send that the kernel cannot
 * take at once keeps a reference to its octets.
 */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { type Answerer, MAX_UDP_SIZE, type Peer } from './answer.ts'
import type { RateLimiter } from './ratelimit.ts'

export interface UdpListener {
  readonly address: string
  readonly port: number
  close(): Promise<void>
}

export interface UdpOptions {
  readonly address: string
  readonly port: number
  readonly answerer: Answerer
  readonly limiter: RateLimiter
  /** Milliseconds. */
  readonly now: () => number
  readonly onError: (error: Error) => void
}

/** One object for all packets: nothing is allocated per question. */
type MutablePeer = { -readonly [Field in keyof Peer]: Peer[Field] }

const SLAB = 65_536
/** Asked of the kernel, which grants what its limit allows: room for a burst while JavaScript collects garbage. */
const BUFFER = 4 << 20

export async function listenUdp(options: UdpOptions): Promise<UdpListener> {
  const { answerer, limiter, now } = options
  const family = isIPv6(options.address) ? 6 : 4
  const socket = createSocket({
    type: `udp${family}`,
    ipv6Only: family === 6,
    // Peers come as addresses: no resolver must be asked, which Node's default would do for each answer.
    lookup: (host, _options, done) => done(null, host, family),
    recvBufferSize: BUFFER,
    sendBufferSize: BUFFER,
  })
  let slab = Buffer.allocUnsafeSlow(SLAB)
  let at = 0
  const peer: MutablePeer = { address: '', port: 0, transport: 'udp', maxAnswerRatio: Infinity }
  socket.on('message', (query, source) => {
    if (source.port === 0) return
    if (at + MAX_UDP_SIZE > SLAB) {
      slab = Buffer.allocUnsafeSlow(SLAB)
      at = 0
    }
    peer.address = source.address
    peer.port = source.port
    const length = answerLimited(answerer, limiter, query, peer, slab, at, now())
    if (length === 0) return
    // A view of our own is cheaper than the one Node makes of buffer, offset and length.
    socket.send(slab.subarray(at, at + length), source.port, source.address)
    at += length
  })
  await bind(socket, options)
  socket.on('error', options.onError)
  const { address, port } = socket.address()
  return {
    address,
    port,
    close: async () => new Promise((resolve) => socket.close(() => resolve())),
  }
}

/** The answer's length after rate limiting; 0 for none. */
function answerLimited(
  answerer: Answerer,
  limiter: RateLimiter,
  query: Buffer,
  peer: MutablePeer,
  slab: Buffer,
  at: number,
  now: number,
): number {
  const prefix = limiter.prefixOf(peer.address, now)
  peer.maxAnswerRatio = prefix.isExempt ? Infinity : limiter.maxAnswerRatio
  if (prefix.isExempt) return answerer.answer(query, query.length, peer, slab, at)
  let verdict = limiter.admit(prefix, query.length, now)
  if (verdict === 'answer' || answerer.hasCookie(query, query.length, peer)) {
    const length = answerer.answer(query, query.length, peer, slab, at)
    if (length === 0 || answerer.hasValidCookie) return length
    verdict = limiter.confirm(prefix, answerer.kind, query.length, length, now)
    if (verdict === 'answer') return length
  }
  return verdict === 'drop' ? 0 : answerer.truncated(query, query.length, peer, slab, at)
}

async function bind(socket: Socket, { address, port }: UdpOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.bind({ address, port, exclusive: true }, () => {
      socket.off('error', reject)
      resolve()
    })
  })
}
