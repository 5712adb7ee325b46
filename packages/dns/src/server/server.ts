/**
 * The authoritative server: serves zones over UDP and TCP.
 *
 * Flow: listeners.ts (udp.ts, tcp.ts) → answer.ts → zone tables; UPDATE, NOTIFY and signed queries → special-requests.ts;
 * transfers over TCP → transfer/transfers.ts. `swap` replaces a whole zone between two packets; queries never wait and never
 * see a part of each.
 * Guarantees: no recursion; only the zones it was given, and REFUSED for those that are not loaded yet; UPDATE and transfers
 * only signed and as the zone's policy allows. Caveat: without `commit` an UPDATE changes the zone in memory only.
 */
import { randomBytes } from 'node:crypto'
import { createDnsClient } from '../client/client.ts'
import { DnsError } from '../error.ts'
import type { Fqdn } from '../wire/name.ts'
import type { TsigKey } from '../wire/tsig.ts'
import { diffZones, type ZoneDelta } from '../zone/zone-delta.ts'
import type { Zone } from '../zone/zone-table.ts'
import { Answerer, type Peer } from './answer.ts'
import { type CounterTotals, createCounters, sumCounters } from './counters.ts'
import { CookieJar } from './limits/cookie.ts'
import { copyHits, listHits, type RRsetHits } from './hits.ts'
import { type ListenAddress, Listeners } from './listen/listeners.ts'
import { Notifier } from './transfer/notify.ts'
import type { ZonePolicy } from './policy.ts'
import { type RateLimitOptions, RateLimiter } from './limits/ratelimit.ts'
import type { RegionSource } from './regions/region-source.ts'
import { type Notice, SpecialRequests, type ZoneEdit } from './special-requests.ts'
import { Transfers } from './transfer/transfers.ts'
import { CAN_SHARE_PORT, Workers } from './threads/workers.ts'
import { ZoneIndex } from './zone-index.ts'

export interface DnsServerOptions {
  readonly zones?: Iterable<Zone>
  readonly listen: readonly ListenAddress[]
  readonly keys?: readonly TsigKey[]
  /** By origin. A zone without a policy cannot be updated or transferred. */
  readonly policies?: ReadonlyMap<Fqdn, ZonePolicy>
  /** For zones that `policies` does not name. */
  readonly defaultPolicy?: ZonePolicy
  readonly rateLimit?: RateLimitOptions
  readonly tcp?: { readonly idleMs?: number; readonly maxConnections?: number; readonly maxPerSource?: number }
  /** Regions of clients, for answers that depend on them (zone/answer-policy.ts). */
  readonly regions?: RegionSource
  /**
   * Threads that answer UDP on the same port, where Node can share it (CAN_SHARE_PORT); rate limits are divided by their
   * number, and `hits` counts only what this thread answers. @default 1: this thread
   */
  readonly workers?: number
  /** 16 octets shared by replicas that answer on one address. @default random */
  readonly cookieSecret?: Uint8Array
  /** Most octets of a UDP answer. @default 1232 */
  readonly maxUdpSize?: number
  /** Origins of zones that are not loaded yet: queries for their names are refused until `swap`. */
  readonly suspended?: Iterable<Fqdn>
  /** After an UPDATE changed a zone, before it is answered. */
  readonly onUpdate?: (zone: Zone) => void
  /**
   * Performs the change of an UPDATE, which is answered when the promise settles; it has to `swap` the zone when the change
   * is durable. @default the zone in memory is replaced at once
   */
  readonly commit?: (origin: Fqdn, change: ZoneEdit) => Promise<unknown>
  /** A NOTIFY for a zone of this server (RFC 1996). Returns whether it is accepted. @default refused */
  readonly onNotify?: (notice: Notice) => boolean
  /** Failures that belong to no single query: sockets, dynamic RRsets, NOTIFY. */
  readonly onError?: (error: unknown) => void
  /** Milliseconds since 1970. @default Date.now */
  readonly now?: () => number
}

export interface DnsServerCounters extends CounterTotals {
  readonly updates: number
  /** AXFR and IXFR together. */
  readonly transfers: number
  /** IXFR that sent changes only. */
  readonly incrementalTransfers: number
  readonly tcpConnections: number
}

export interface DnsServer {
  readonly addresses: readonly ListenAddress[]
  zones(): IterableIterator<Zone>
  findZone(origin: Fqdn): Zone | undefined
  /**
   * Serves this zone from the next packet on, instead of the one with the same origin. `deltas` lead from the version served
   * before, or from an older one, to this version, for IXFR. @default computed, where the zone may be transferred
   */
  swap(zone: Zone, deltas?: readonly ZoneDelta[]): void
  /** A key that was not known at the start. */
  addKey(key: TsigKey): void
  /** Refuses queries for names of this zone until the next `swap`. */
  suspend(origin: Fqdn): void
  remove(origin: Fqdn): void
  /** Another limit of answers of one kind per second and prefix. */
  setResponsesPerSecond(count: number): void
  counters(): DnsServerCounters
  /** Queries answered from each RRset since the zone is served; RRsets without queries are left out. */
  hits(origin: Fqdn): RRsetHits[]
  /** Settles when all sockets are closed. */
  close(): Promise<void>
}

const NO_POLICY: ZonePolicy = {}

/** The server without sockets: for tests of the answer path. */
export interface Dispatcher {
  /** Writes the answer to the start of `out`, which has 65 537 octets; 0 for none. */
  answer(query: Buffer, peer: Peer, out: Buffer): number
  /** The messages of a transfer when the query asks for one. */
  transfer(query: Buffer): Iterable<Buffer> | undefined
}

export function createDispatcher(options: DnsServerOptions): Dispatcher {
  const server = new Server(options)
  return {
    answer: (query, peer, out) => server.answerer.answer(query, query.length, peer, out, 0),
    transfer: (query) => server.transfers.answer(query),
  }
}

class Server {
  readonly index = new ZoneIndex()
  readonly totals = createCounters()
  readonly limiter: RateLimiter
  readonly answerer: Answerer
  readonly transfers: Transfers
  readonly special: SpecialRequests
  readonly #options: DnsServerOptions
  /** Shared by the threads. */
  readonly #cookieSecret = randomBytes(16)
  readonly #keys: Map<Fqdn, TsigKey>
  readonly #client = createDnsClient({ tries: 1 })
  readonly #notifier: Notifier
  readonly #scratch = Buffer.allocUnsafeSlow(65_537)
  workers: Workers | undefined

  constructor(options: DnsServerOptions) {
    this.#options = options
    this.#keys = new Map(options.keys?.map((key) => [key.name, key]))
    this.limiter = new RateLimiter(options.rateLimit)
    this.#notifier = new Notifier(this.#client, this.#keys, (error) => this.report(error))
    this.transfers = new Transfers({
      keys: this.#keys,
      findZone: (origin) => this.index.get(origin),
      policyOf: (origin) => this.policyOf(origin),
      now: () => this.seconds(),
    })
    const shared = {
      zones: this.index,
      counters: this.totals,
      cookies: new CookieJar(options.cookieSecret ?? this.#cookieSecret),
      now: () => this.seconds(),
      ...(options.maxUdpSize !== undefined && { maxUdpSize: options.maxUdpSize }),
      ...(options.regions !== undefined && { regions: options.regions }),
      onFailure: (error: unknown) => this.report(error),
    }
    this.special = new SpecialRequests({
      keys: this.#keys,
      zones: this.index,
      policyOf: (origin) => this.policyOf(origin),
      transfers: this.transfers,
      unsigned: new Answerer({ ...shared, special: () => undefined }),
      now: () => this.seconds(),
      commit: (origin, change) => this.#commit(origin, change),
      onError: (error) => this.report(error),
      ...(options.onNotify !== undefined && { onNotify: options.onNotify }),
    })
    this.answerer = new Answerer({ ...shared, special: (request, peer) => this.special.answer(request, peer) })
    for (const origin of options.suspended ?? []) this.index.suspend(origin)
    for (const zone of options.zones ?? []) this.index.set(zone)
  }

  now(): number {
    return (this.#options.now ?? Date.now)()
  }

  seconds(): number {
    return Math.floor(this.now() / 1000)
  }

  report(error: unknown): void {
    this.#options.onError?.(error)
  }

  policyOf(origin: Fqdn): ZonePolicy {
    return this.#options.policies?.get(origin) ?? this.#options.defaultPolicy ?? NO_POLICY
  }

  findZone(origin: Fqdn): Zone | undefined {
    return this.index.get(origin)
  }

  swap(zone: Zone, deltas?: readonly ZoneDelta[]): void {
    const before = this.index.set(zone)
    if (before === zone) return
    if (before !== undefined) copyHits(before, zone)
    const isNewVersion = before?.serial !== zone.serial
    const { secondaries = [], transferKeys = [] } = this.policyOf(zone.origin)
    const isFollowed = transferKeys.length > 0 && isNewVersion
    const changes =
      deltas ?? (before !== undefined && (isFollowed || this.workers !== undefined) ? [diffZones(before, zone)] : [])
    // Without a version before, or with RRsets that are functions, workers get the whole zone.
    this.workers?.swap(zone, before === undefined || !isNewVersion ? undefined : changes)
    if (isFollowed) this.transfers.addChanges(zone.origin, changes)
    if (isNewVersion) this.#notifier.notify(zone.origin, secondaries)
  }

  /** Performs the change of an UPDATE. */
  #commit(origin: Fqdn, change: ZoneEdit): Promise<unknown> | void {
    const { commit, onUpdate } = this.#options
    if (commit !== undefined) return commit(origin, change)
    const zone = this.index.get(origin)
    const changed = zone === undefined ? undefined : change(zone)
    if (changed === undefined || changed === zone) return
    onUpdate?.(changed)
    this.swap(changed)
  }

  addKey(key: TsigKey): void {
    this.#keys.set(key.name, key)
  }

  suspend(origin: Fqdn): void {
    this.index.suspend(origin)
    this.workers?.suspend(origin)
  }

  remove(origin: Fqdn): void {
    this.index.delete(origin)
    this.transfers.forget(origin)
    this.workers?.remove(origin)
  }

  setResponsesPerSecond(count: number): void {
    this.limiter.setResponsesPerSecond(count)
    this.workers?.setResponsesPerSecond(shareOf(count, this.#options.workers ?? 1))
  }

  /** A packet that a worker received and does not answer itself. */
  async answerForWorker(query: Uint8Array, address: string, port: number): Promise<Uint8Array | undefined> {
    let deferred: Promise<Uint8Array | undefined> | undefined
    const defer = (answer: Promise<Uint8Array | undefined>) => void (deferred = answer)
    const peer: Peer = { address, port, transport: 'udp', defer }
    const length = this.answerer.answer(query, query.length, peer, this.#scratch, 0)
    if (deferred !== undefined) return deferred
    return length === 0 ? undefined : this.#scratch.slice(0, length)
  }

  async startWorkers(addresses: readonly ListenAddress[], count: number): Promise<void> {
    const { cookieSecret, maxUdpSize, regions, rateLimit } = this.#options
    const share = (limit: number | undefined, fallback: number) => shareOf(limit ?? fallback, count)
    this.workers = await Workers.start({
      count,
      settings: {
        addresses,
        cookieSecret: cookieSecret ?? this.#cookieSecret,
        rateLimit: {
          ...rateLimit,
          responsesPerSecond: share(rateLimit?.responsesPerSecond, 20),
          allPerSecond: share(rateLimit?.allPerSecond, 1000),
        },
        ...(maxUdpSize !== undefined && { maxUdpSize }),
        ...(regions !== undefined && { regions: regions.toMessage() }),
      },
      zones: () => this.index.values(),
      suspended: () => this.index.suspended(),
      answer: async (query, address, port) => this.answerForWorker(query, address, port),
      onError: (error) => this.report(error),
    })
  }

  async close(): Promise<void> {
    await this.workers?.close()
    await this.#notifier.close()
    await this.#client.close()
  }
}

/** Of one of the threads. */
function shareOf(limit: number, threads: number): number {
  return Math.max(1, Math.ceil(limit / threads))
}

const isShared = ({ workers = 1 }: DnsServerOptions): boolean => workers > 1 && CAN_SHARE_PORT

/** Resolves when every address answers; rejects with NETWORK, and nothing left open, when one cannot be bound. */
export async function createDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const server = new Server(options)
  const listeners = await Listeners.listen(options.listen, {
    ...options.tcp,
    answerer: server.answerer,
    limiter: server.limiter,
    transfer: (query) => server.transfers.answer(query),
    now: () => server.now(),
    onError: (error) => server.report(error),
    isPortShared: isShared(options),
  }).catch(async (error: unknown) => {
    await server.close()
    throw error
  })
  let closing: Promise<void> | undefined
  const closeAll = async () => {
    await listeners.close()
    await server.close()
  }
  const close = async () => (closing ??= closeAll())
  const { addresses } = listeners
  if (isShared(options)) {
    try {
      await server.startWorkers(addresses, options.workers ?? 1)
    } catch (cause) {
      await close()
      throw new DnsError('NETWORK', `the workers of the DNS server cannot start: ${String(cause)}`, { cause })
    }
    // From here on the threads answer; this one has other work, and would let its clients wait.
    await listeners.closeUdp()
  }
  return {
    addresses,
    zones: () => server.index.values(),
    findZone: (origin) => server.findZone(origin),
    addKey: (key) => server.addKey(key),
    swap: (zone, deltas) => server.swap(zone, deltas),
    suspend: (origin) => server.suspend(origin),
    remove: (origin) => server.remove(origin),
    setResponsesPerSecond: (count) => server.setResponsesPerSecond(count),
    counters: () => ({
      ...sumCounters([{ ...server.totals, limited: server.limiter.limited }, ...(server.workers?.counters() ?? [])]),
      updates: server.special.updates,
      transfers: server.transfers.count,
      incrementalTransfers: server.transfers.incrementalCount,
      tcpConnections: listeners.connections,
    }),
    hits: (origin) => {
      const zone = server.findZone(origin)
      return zone === undefined ? [] : listHits(zone)
    },
    close,
  }
}
