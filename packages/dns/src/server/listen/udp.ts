/**
 * The UDP listener of a server: one socket. Answers are written into buffers that are never reused, because Node keeps a
 * reference to the octets of a send that the kernel does not accept at once.
 */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { type Answerer, MAX_UDP_SIZE, type Peer } from '../answer.ts'
import type { RateLimiter } from '../limits/ratelimit.ts'

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
  /** Other sockets may be bound to the same port (SO_REUSEPORT); needs CAN_SHARE_PORT. @default false */
  readonly isPortShared?: boolean
}

/** One object for all packets: nothing is allocated per question. */
type MutablePeer = { -readonly [Field in keyof Peer]: Peer[Field] }

const SLAB_BYTES = 65_536
/** Octets requested for the socket's buffers, up to the kernel's limit: they hold a burst that arrives during garbage collection. */
const SOCKET_BUFFER_BYTES = 4 << 20

export async function listenUdp(options: UdpOptions): Promise<UdpListener> {
  const { answerer, limiter, now } = options
  const family = isIPv6(options.address) ? 6 : 4
  const socket = createSocket({
    type: `udp${family}`,
    ipv6Only: family === 6,
    ...(options.isPortShared === true && { reusePort: true }),
    // The peer is an IP address: Node's default would call the resolver for each answer.
    lookup: (host, _options, done) => done(null, host, family),
    recvBufferSize: SOCKET_BUFFER_BYTES,
    sendBufferSize: SOCKET_BUFFER_BYTES,
  })
  let slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
  let at = 0
  const peer: MutablePeer = {
    address: '',
    port: 0,
    transport: 'udp',
    maxAnswerRatio: Infinity,
    defer: (answer) => void sendDeferred(socket, answer, peer.address, peer.port, options.onError),
  }
  socket.on('message', (query, source) => {
    if (source.port === 0) return
    if (at + MAX_UDP_SIZE > SLAB_BYTES) {
      slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
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

async function sendDeferred(
  socket: Socket,
  answer: Promise<Uint8Array | undefined>,
  address: string,
  port: number,
  onError: (error: Error) => void,
): Promise<void> {
  try {
    const bytes = await answer
    if (bytes !== undefined) socket.send(bytes, port, address)
  } catch (error) {
    // The socket was closed meanwhile, or the answer failed: it can only be logged.
    onError(error instanceof Error ? error : new Error(String(error)))
  }
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
