/**
 * The connections of a listener, and their limits. Beneath every listener that others may reach: probes, metrics, webhooks,
 * xDS, proxies.
 *
 * A connection is idle unless it has a request. Guarantees:
 *
 * - One that is idle is closed within its time: `headersTimeoutMs` from its first octet, or of the next request, to the end
 *   of the header, TLS handshake included; `idleTimeoutMs` between requests. Single octets do not count as activity. A
 *   check each second closes what would be late at the next one.
 * - Beyond the number for an address, or for all, those that are idle longest are closed, first the ones that never had a
 *   request. What is closed has had a turn to be read: a request that has arrived is served, also in the middle of a flood.
 * - An address has a share of what others leave free, so that a few of them do not use up everything. While all of its
 *   connections have requests or are tunnels, the one that has made no progress for longest is closed for a new one, if that
 *   is `stalledMs`; else the new one is refused.
 * - An address with few connections always gets another one: when all are taken, the address with most loses the one that has
 *   made no progress for longest. Progress are octets in either direction.
 *
 * A listener has a table of its own: a flood of one listener takes nothing from another.
 */
import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { isIPv6, type Socket } from 'node:net'

export interface ConnectionLimits {
  readonly maxConnections: number
  /**
   * Of one IPv4 address, or of one IPv6 network of 64 bits, which is what one client has, while others have no requests; in
   * general the same share of what they leave.
   */
  readonly maxPerAddress: number
  readonly headersTimeoutMs: number
  readonly idleTimeoutMs: number
  /** A request or a tunnel without progress for so long makes room for a new connection of its address. @default 10 s */
  readonly stalledMs?: number
}

/** A TCP socket, the TLS socket on it, or what else has its addresses. */
export interface Peer {
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
  readonly localPort?: number | undefined
  readonly bytesWritten?: number
}

/** Longest first. */
class IdleConnections {
  /** Never had a request. */
  readonly silent = new Set<Connection>()
  readonly kept = new Set<Connection>()

  get size(): number {
    return this.silent.size + this.kept.size
  }

  add(connection: Connection): void {
    ;(connection.hasServed ? this.kept : this.silent).add(connection)
  }

  delete(connection: Connection): void {
    this.silent.delete(connection)
    this.kept.delete(connection)
  }

  get first(): Connection | undefined {
    for (const connection of this.silent) return connection
    for (const connection of this.kept) return connection
    return undefined
  }
}

interface Source {
  readonly name: string
  connections: number
  readonly idle: IdleConnections
  /** With requests, and tunnels; the one without progress for longest first. */
  readonly busy: Set<Connection>
}

interface Connection {
  readonly socket: Socket
  readonly key: string
  readonly source: Source
  requests: number
  /** What the octets of responses are written to. */
  writer: Peer
  /** Read and written when it was looked at last. */
  octets: number
  progressedAt: number
  hasServed: boolean
  /** When it is closed unless a request arrives. */
  deadline: number
  /** What it had received when its last request ended; undefined while the next octet begins nothing new. */
  receivedAtEnd: number | undefined
  /** HTTP/2: tells the client before the connection is closed. */
  endGracefully: (() => void) | undefined
}

const CHECK_MS = 1_000
const STALLED_MS = 10_000
/** Of all connections: with requests, and tunnels. */
const MOST_BUSY = 15 / 16
/** Of the number for an address: what one has in any case. */
const LEAST_SHARE = 1 / 16
/** Connections beyond a limit until they have been read once; more than a system accepts in one turn. */
const MAX_BEYOND = 1_024

export class ConnectionTable {
  readonly #limits: ConnectionLimits
  readonly #checkMs: number
  readonly #byKey = new Map<string, Connection>()
  readonly #bySocket = new WeakMap<Peer, Connection>()
  readonly #sources = new Map<string, Source>()
  readonly #idle = new IdleConnections()
  /** With more connections than they may have. */
  readonly #crowded = new Set<Source>()
  /** The one with most requests and tunnels, and how many those were. */
  #largest: { readonly source: Source; readonly found: number } | undefined
  #isTrimming = false
  /** Have been told. */
  readonly #ending = new Set<Connection>()
  readonly #timer: NodeJS.Timeout

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
    this.#checkMs = Math.min(CHECK_MS, limits.headersTimeoutMs / 4)
    this.#timer = setInterval(() => this.#closeOverdue(), this.#checkMs)
    this.#timer.unref()
  }

  get size(): number {
    return this.#byKey.size
  }

  /** A new connection; false: there was no room, and it is closed. */
  add(socket: Socket): boolean {
    const { remoteAddress } = socket
    if (remoteAddress === undefined) return refuse(socket)
    const key = keyOf(socket)
    const former = this.#byKey.get(key)
    // The port of a connection whose end has not been reported yet.
    if (former !== undefined) this.#forget(former)
    const name = networkOf(remoteAddress)
    const source = this.#sources.get(name) ?? { name, connections: 0, idle: new IdleConnections(), busy: new Set() }
    const { maxConnections } = this.#limits
    const most = this.#mostOf(source)
    if (source.busy.size >= most && !this.#evictStalled(source)) return refuse(socket)
    if (this.#busy >= this.#mostBusy && !this.#evictLargest(source)) return refuse(socket)
    if (source.connections >= most) this.#crowded.add(source)
    if (this.#crowded.has(source) || this.#byKey.size >= maxConnections) this.#trimLater()
    if (source.connections >= most + MAX_BEYOND || this.#byKey.size >= maxConnections + MAX_BEYOND) this.#trim()
    const connection: Connection = {
      socket,
      key,
      source,
      requests: 0,
      writer: socket,
      octets: 0,
      progressedAt: 0,
      hasServed: false,
      deadline: 0,
      receivedAtEnd: undefined,
      endGracefully: undefined,
    }
    this.#sources.set(name, source)
    source.connections++
    this.#byKey.set(key, connection)
    this.#bySocket.set(socket, connection)
    this.#rest(connection, this.#limits.headersTimeoutMs)
    socket.once('close', () => this.#forget(connection))
    return true
  }

  /** A request has arrived. Each call needs one of `end`. */
  begin(peer: Peer): void {
    const connection = this.#find(peer)
    if (connection === undefined) return
    connection.hasServed = true
    if (connection.requests++ > 0 || this.#byKey.get(connection.key) !== connection) return
    this.#idle.delete(connection)
    const { idle, busy } = connection.source
    idle.delete(connection)
    if (peer.bytesWritten !== undefined) connection.writer = peer
    connection.progressedAt = performance.now()
    busy.add(connection)
    if (this.#busy > this.#mostBusy) this.#evictLargest(connection.source)
  }

  /** A response has ended. */
  end(peer: Peer): void {
    const connection = this.#find(peer)
    if (connection === undefined || --connection.requests > 0 || this.#byKey.get(connection.key) !== connection) return
    connection.source.busy.delete(connection)
    if (connection.endGracefully === undefined) connection.receivedAtEnd = connection.socket.bytesRead
    this.#rest(connection, this.#limits.idleTimeoutMs)
  }

  /** The connection is no longer one of requests: a tunnel. It counts until it is closed. */
  release(peer: Peer): void {
    this.begin(peer)
  }

  /** @param end announces the end, and closes the connection if its client goes along */
  endGracefully(peer: Peer, end: () => void): void {
    const connection = this.#find(peer)
    if (connection !== undefined) connection.endGracefully = end
  }

  /** Tells the clients that can be told without an answer; the end of their requests closes the connections. */
  announceEnd(): void {
    for (const connection of this.#byKey.values()) connection.endGracefully?.()
  }

  /** Closes what has no request; what has one ends with it. */
  closeIdle(): void {
    for (const connection of [...this.#idle.silent, ...this.#idle.kept]) this.#close(connection)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #find(peer: Peer): Connection | undefined {
    const known = this.#bySocket.get(peer)
    if (known !== undefined) return known
    const found = this.#byKey.get(keyOf(peer))
    if (found !== undefined) this.#bySocket.set(peer, found)
    return found
  }

  /** After the next turn of the event loop, in which what has arrived is read. */
  #trimLater(): void {
    if (this.#isTrimming) return
    this.#isTrimming = true
    setImmediate(() =>
      setImmediate(() => {
        this.#isTrimming = false
        this.#trim()
      }),
    )
  }

  #trim(): void {
    const { maxConnections } = this.#limits
    for (const source of this.#crowded)
      while (source.connections > this.#mostOf(source) && this.#evict(source.idle.first));
    this.#crowded.clear()
    while (this.#byKey.size > maxConnections && this.#evict(this.#idle.first));
  }

  /** Leaves room for connections whose first request is on its way. */
  get #mostBusy(): number {
    return Math.max(1, Math.floor(this.#limits.maxConnections * MOST_BUSY))
  }

  /** With requests, and tunnels. */
  get #busy(): number {
    return this.#byKey.size - this.#idle.size
  }

  /** Connections that the source may have now. */
  #mostOf(source: Source): number {
    const { maxPerAddress, maxConnections } = this.#limits
    const free = maxConnections - (this.#busy - source.busy.size)
    return Math.max(
      1,
      Math.floor(maxPerAddress * LEAST_SHARE),
      Math.floor((Math.max(0, free) * maxPerAddress) / maxConnections),
    )
  }

  #evictStalled({ busy }: Source): boolean {
    const [first] = busy
    const { stalledMs = STALLED_MS } = this.#limits
    return first !== undefined && first.progressedAt + stalledMs < performance.now() && this.#evict(first)
  }

  /** Closes a connection of the source that has most, for one that has less. */
  #evictLargest({ busy }: Source): boolean {
    if (this.#largest === undefined || this.#largest.source.busy.size * 2 < this.#largest.found) this.#findLargest()
    if (busy.size + 1 >= (this.#largest?.source.busy.size ?? 0)) this.#findLargest()
    const largest = this.#largest?.source
    if (largest === undefined || busy.size + 1 >= largest.busy.size) return false
    const [first] = largest.busy
    return this.#evict(first)
  }

  #findLargest(): void {
    let largest: Source | undefined
    for (const source of this.#sources.values()) if (source.busy.size > (largest?.busy.size ?? 0)) largest = source
    this.#largest = largest === undefined ? undefined : { source: largest, found: largest.busy.size }
  }

  #evict(connection: Connection | undefined): boolean {
    if (connection === undefined) return false
    this.#forget(connection)
    connection.socket.destroy()
    return true
  }

  #rest(connection: Connection, timeoutMs: number): void {
    connection.deadline = performance.now() + timeoutMs
    this.#idle.add(connection)
    connection.source.idle.add(connection)
  }

  #forget(connection: Connection): void {
    const { key, source } = connection
    if (this.#byKey.get(key) !== connection) return
    this.#byKey.delete(key)
    this.#idle.delete(connection)
    this.#ending.delete(connection)
    source.idle.delete(connection)
    source.busy.delete(connection)
    source.connections--
    if (source.connections === 0) this.#sources.delete(source.name)
  }

  #close(connection: Connection): void {
    if (connection.endGracefully === undefined || this.#ending.has(connection)) return void connection.socket.destroy()
    this.#ending.add(connection)
    connection.endGracefully()
  }

  /** What has made progress comes last. */
  #followProgress(now: number): void {
    for (const { busy } of this.#sources.values()) {
      const active: Connection[] = []
      for (const connection of busy) {
        const octets = connection.socket.bytesRead + (connection.writer.bytesWritten ?? 0)
        if (octets === connection.octets) continue
        connection.octets = octets
        connection.progressedAt = now
        active.push(connection)
      }
      for (const connection of active) {
        busy.delete(connection)
        busy.add(connection)
      }
    }
  }

  #closeOverdue(): void {
    const now = performance.now()
    this.#followProgress(now)
    const latest = now + this.#checkMs
    for (const connection of [...this.#idle.silent, ...this.#idle.kept]) {
      if (connection.receivedAtEnd !== undefined && connection.socket.bytesRead !== connection.receivedAtEnd) {
        // The header of the next request has begun.
        connection.receivedAtEnd = undefined
        connection.deadline = Math.min(connection.deadline, now + this.#limits.headersTimeoutMs)
      }
      if (connection.deadline < latest) this.#close(connection)
    }
  }
}

/** For a server that hands out requests itself, and listens. */
export function limitConnections(server: HttpServer | HttpsServer, limits: ConnectionLimits): ConnectionTable {
  const table = new ConnectionTable(limits)
  server.on('connection', (socket) => void table.add(socket))
  server.prependListener('request', ({ socket }, response) => {
    table.begin(socket)
    response.once('close', () => table.end(socket))
  })
  server.once('close', () => table.close())
  return table
}

function refuse(socket: Socket): false {
  socket.destroy()
  return false
}

function keyOf({ remoteAddress = '', remotePort = 0, localPort = 0 }: Peer): string {
  return `${remoteAddress} ${remotePort} ${localPort}`
}

/** What one client has: an IPv4 address, or an IPv6 network of 64 bits. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  if (address.startsWith('::ffff:')) return address.slice(7)
  const [head = '', tail] = address.split('::')
  const [first, last] = [head, tail ?? ''].map((part) => (part === '' ? [] : part.split(':')))
  const zeros = tail === undefined ? 0 : 8 - (first?.length ?? 0) - (last?.length ?? 0)
  const groups = [...(first ?? []), ...Array.from({ length: zeros }, () => '0'), ...(last ?? [])]
  return groups.slice(0, 4).join(':')
}
