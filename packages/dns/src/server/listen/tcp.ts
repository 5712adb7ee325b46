/**
 * The TCP listener of a server: pipelined queries, transfers, and limits on idle connections.
 *
 * A connection is closed `idleMs` after its last whole message; single octets do not count as activity. Above a limit
 * (connections in total, per source) the connection that has been idle longest is closed, so that a new one is always
 * accepted. While a peer does not read its answers, nothing is read from it, and the idle timeout applies. The answers of
 * a connection in one turn of the event loop are bounded, and so are the connections: UDP and others are not kept waiting.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { isIPv6 } from 'node:net'
import { Deframer, frame } from '../../wire/tcp-frame.ts'
import type { Answerer, Peer } from '../answer.ts'

export interface TcpOptions {
  readonly address: string
  readonly port: number
  readonly answerer: Pick<Answerer, 'answer' | 'isDeferred'>
  /** The messages of a transfer when the query asks for one, else undefined. */
  readonly transfer: (query: Buffer) => Iterable<Buffer> | undefined
  /** @default 10000 */
  readonly idleMs?: number
  /** @default 1000 */
  readonly maxConnections?: number
  /** @default 100 */
  readonly maxPerSource?: number
  readonly onError: (error: Error) => void
}

export interface TcpListener {
  readonly address: string
  readonly port: number
  readonly connections: () => number
  close(): Promise<void>
}

/** Unsent octets at which the server stops reading from a connection. */
const HIGH_WATER = 262_144
/** Updates of a connection that are being stored; no more are read from it meanwhile. */
const MAX_DEFERRED = 100
const SWEEP_MS = 1000

/** Answers, and octets of answers, of a connection before others have their turn. */
const TURN_ANSWERS = 64
const TURN_OCTETS = 65_536
/** Connections that are served in one turn of the event loop; UDP is answered between two turns. */
const TURN_CONNECTIONS = 8

/** Which connections may be served in this turn of the event loop; those that wait have theirs in the order of waiting. */
class Turns {
  #left = TURN_CONNECTIONS
  #isScheduled = false
  readonly #waiting = new Set<() => void>()

  /** False: the connection has to wait. */
  take(): boolean {
    this.#schedule()
    return this.#waiting.size === 0 && this.#left-- > 0
  }

  wait(done: () => void): () => void {
    this.#waiting.add(done)
    this.#schedule()
    return () => this.#waiting.delete(done)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#left = TURN_CONNECTIONS
      for (const done of this.#waiting) {
        if (this.#left-- <= 0) break
        this.#waiting.delete(done)
        done()
      }
      if (this.#waiting.size > 0) this.#schedule()
    })
  }
}

interface Connection {
  readonly socket: Socket
  readonly source: string
  readonly deframer: Deframer
  activeAt: number
  /** The messages received so far are being answered; new ones wait. */
  isBusy: boolean
  /** Answers that are not sent yet because the change is being stored. */
  deferred: number
  onDeferredSent: () => void
}

class Listener {
  readonly #options: TcpOptions
  readonly #idleMs: number
  readonly #turns = new Turns()
  readonly #scratch = Buffer.allocUnsafeSlow(65_537)
  /** In the order of last activity: the first is the next to be closed. */
  readonly #connections = new Set<Connection>()
  readonly #bySource = new Map<string, Set<Connection>>()

  constructor(options: TcpOptions) {
    this.#options = options
    this.#idleMs = options.idleMs ?? 10_000
  }

  get size(): number {
    return this.#connections.size
  }

  accept(socket: Socket): void {
    const source = socket.remoteAddress
    if (source === undefined) {
      socket.destroy()
      return
    }
    const connection: Connection = {
      socket,
      source,
      deframer: new Deframer(),
      activeAt: performance.now(),
      isBusy: false,
      deferred: 0,
      onDeferredSent: () => {},
    }
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#forget(connection))
    socket.on('data', (chunk) => {
      connection.deframer.push(chunk)
      void this.#serve(connection)
    })
    const siblings = this.#bySource.get(source) ?? new Set()
    this.#bySource.set(source, siblings)
    if (siblings.size >= (this.#options.maxPerSource ?? 100)) this.#evict(siblings)
    else if (this.#connections.size >= (this.#options.maxConnections ?? 1000)) this.#evict(this.#connections)
    siblings.add(connection)
    this.#connections.add(connection)
  }

  #evict(among: Set<Connection>): void {
    const [idlest] = among
    if (idlest === undefined) return
    this.#forget(idlest)
    idlest.socket.destroy()
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection)
    const siblings = this.#bySource.get(connection.source)
    siblings?.delete(connection)
    if (siblings?.size === 0) this.#bySource.delete(connection.source)
  }

  #touch(connection: Connection): void {
    connection.activeAt = performance.now()
    const siblings = this.#bySource.get(connection.source)
    if (siblings?.delete(connection) !== true) return
    siblings.add(connection)
    this.#connections.delete(connection)
    this.#connections.add(connection)
  }

  /**
   * Answers the messages received so far, in order. The socket is corked exactly once throughout, except while `#pause`
   * waits: pipelined answers leave in one write, and nothing stays behind when the loop ends.
   */
  async #serve(connection: Connection): Promise<void> {
    if (connection.isBusy) return
    connection.isBusy = true
    const { socket, deframer } = connection
    const peer: Peer = {
      address: connection.source,
      port: socket.remotePort ?? 0,
      transport: 'tcp',
      defer: (answer) => void this.#sendDeferred(connection, answer),
    }
    const untilTurn = (_connection: Connection, done: () => void) => this.#turns.wait(done)
    let isRejected = false
    let answers = 0
    let octets = 0
    socket.cork()
    if (!this.#turns.take()) await this.#pause(connection, untilTurn)
    for (let query = deframer.next(); query !== undefined && !socket.destroyed; query = deframer.next()) {
      this.#touch(connection)
      const transfer = this.#options.transfer(query)
      if (transfer !== undefined) {
        await this.#transfer(connection, transfer)
        continue
      }
      const length = this.#options.answerer.answer(query, query.length, peer, this.#scratch, 2)
      if (length === 0 && this.#options.answerer.isDeferred) {
        if (connection.deferred >= MAX_DEFERRED) await this.#pause(connection, untilDeferredSent)
        if (socket.writableLength >= HIGH_WATER) await this.#pause(connection, untilDrained)
        continue
      }
      isRejected = length === 0
      if (isRejected) break
      this.#scratch.writeUInt16BE(length, 0)
      socket.write(Buffer.from(this.#scratch.subarray(0, length + 2)))
      octets += length
      if (socket.writableLength >= HIGH_WATER) await this.#pause(connection, untilDrained)
      if (++answers < TURN_ANSWERS && octets < TURN_OCTETS) continue
      await this.#pause(connection, untilTurn)
      answers = 0
      octets = 0
    }
    socket.uncork()
    // A message that gets no answer closes the connection, after the answers before it are sent.
    if (isRejected) socket.destroySoon()
    else connection.isBusy = false
  }

  /** Answers may leave in another order than the queries came in (RFC 7766 §7). */
  async #sendDeferred(connection: Connection, answer: Promise<Uint8Array | undefined>): Promise<void> {
    connection.deferred++
    const bytes = await answer.catch((error: unknown) => {
      this.#options.onError(error instanceof Error ? error : new Error(String(error)))
      return undefined
    })
    const { socket } = connection
    connection.deferred--
    if (!socket.destroyed) {
      if (bytes === undefined) socket.destroySoon()
      else socket.write(frame(Buffer.from(bytes)))
      this.#touch(connection)
    }
    connection.onDeferredSent()
  }

  /** Encodes messages only as fast as the peer reads them, and none for a peer that is gone. */
  async #transfer(connection: Connection, messages: Iterable<Buffer>): Promise<void> {
    const { socket } = connection
    for (const message of messages) {
      if (socket.destroyed) return
      socket.write(frame(message))
      if (socket.writableLength >= HIGH_WATER) await this.#pause(connection, untilDrained)
    }
  }

  /**
   * Sends what is queued and reads no more until the condition holds or the connection is closed; the sweep closes one whose
   * peer does not read. Other connections and UDP get their turn of the event loop also when it holds at once.
   */
  async #pause(connection: Connection, until: (connection: Connection, done: () => void) => () => void): Promise<void> {
    const { socket } = connection
    socket.pause()
    socket.uncork()
    await new Promise<void>((resolve) => {
      const done = () => {
        unsubscribe()
        socket.off('close', done)
        setImmediate(resolve)
      }
      const unsubscribe = until(connection, done)
      socket.on('close', done)
      if (socket.destroyed) done()
    })
    this.#touch(connection)
    socket.resume()
    socket.cork()
  }

  sweep(): void {
    const limit = performance.now() - this.#idleMs
    for (const connection of this.#connections) {
      if (connection.activeAt > limit) return
      this.#forget(connection)
      connection.socket.destroy()
    }
  }

  destroyAll(): void {
    for (const { socket } of this.#connections) socket.destroy()
  }
}

/** The kernel has taken what was queued. */
function untilDrained({ socket }: Connection, done: () => void): () => void {
  socket.on('drain', done)
  return () => socket.off('drain', done)
}

function untilDeferredSent(connection: Connection, done: () => void): () => void {
  connection.onDeferredSent = done
  return () => (connection.onDeferredSent = () => {})
}

export async function listenTcp(options: TcpOptions): Promise<TcpListener> {
  const listener = new Listener(options)
  const server = createServer({ allowHalfOpen: false }, (socket) => listener.accept(socket))
  await listen(server, options)
  server.on('error', options.onError)
  const sweep = setInterval(() => listener.sweep(), SWEEP_MS)
  sweep.unref()
  const bound = server.address() as { address: string; port: number }
  return {
    address: bound.address,
    port: bound.port,
    connections: () => listener.size,
    async close() {
      clearInterval(sweep)
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        listener.destroyAll()
      })
    },
  }
}

async function listen(server: Server, { address, port }: TcpOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: address, port, ipv6Only: isIPv6(address), backlog: 1024 }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}
