/**
 * The authoritative server: serves zones over UDP and TCP.
 *
 * Flow: listeners (udp.ts, tcp.ts) → answer.ts → zone tables. `swap` replaces a whole zone between two packets; queries never
 * wait and never see a part of each. Guarantees: no recursion; only the zones it was given, and REFUSED for those that are
 * not loaded yet; UPDATE and transfers only signed and as the zone's policy allows. Caveat: without `commit` an UPDATE
 * changes the zone in memory only.
 */
import { randomBytes } from 'node:crypto'
import { createDnsClient } from '../client/client.ts'
import { OPCODE, RCODE, rcodeName, TYPE, typeName } from '../wire/codes.ts'
import { SAFE_UDP_SIZE } from '../wire/edns.ts'
import { DnsError } from '../error.ts'
import { FLAG } from '../wire/message.ts'
import { type Fqdn, fqdn, wireToFqdn } from '../wire/name.ts'
import { signMessage, type TsigKey } from '../wire/tsig.ts'
import { u16 } from '../zone/zone-shard.ts'
import { diffZones, type ZoneDelta } from '../zone/zone-delta.ts'
import type { Zone } from '../zone/zone-table.ts'
import { Answerer, createCounters, OTHER_TYPE, type Peer, type SpecialAnswer } from './answer.ts'
import { CookieJar } from './limits/cookie.ts'
import { ZoneHistory } from './transfer/history.ts'
import { copyHits } from './hits.ts'
import { Notifier } from './transfer/notify.ts'
import type { ZonePolicy } from './policy.ts'
import { type RateLimitOptions, RateLimiter } from './limits/ratelimit.ts'
import type { RegionSource } from './regions/region-source.ts'
import { Request } from './request.ts'
import { authenticate, emptyAnswer, withoutTsig } from './signed.ts'
import { listenTcp, type TcpListener } from './tcp.ts'
import {
  incremental,
  planTransfer,
  soaOnly,
  transferMessages,
  type TransferPlan,
  wholeZone,
} from './transfer/transfer.ts'
import { listenUdp, type UdpListener } from './udp.ts'
import { handleUpdate } from './update.ts'
import { CAN_SHARE_PORT, Workers } from './threads/workers.ts'
import { ZoneIndex } from './zone-index.ts'

export interface ListenAddress {
  readonly address: string
  /** 0 picks a free port, the same for UDP and TCP. */
  readonly port: number
}

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
  readonly commit?: (origin: Fqdn, change: (zone: Zone, serial?: number) => Zone) => Promise<unknown>
  /** A NOTIFY for a zone of this server (RFC 1996). Returns whether it is accepted. @default refused */
  readonly onNotify?: (notice: Notice) => boolean
  /** Failures that belong to no single query: sockets, dynamic RRsets, NOTIFY. */
  readonly onError?: (error: unknown) => void
  /** Milliseconds since 1970. @default Date.now */
  readonly now?: () => number
}

export interface Notice {
  readonly zone: Fqdn
  /** Address of the sender. */
  readonly source: string
  /** Name of the key that signed it. */
  readonly key?: Fqdn
}

export interface DnsServerCounters {
  /** All packets, whatever they ask. */
  readonly queries: number
  /** Questions by type; types without a name of their own count as `other`. Transfers are not among them. */
  readonly questions: Readonly<Record<string, number>>
  readonly answers: Readonly<Record<string, number>>
  readonly truncated: number
  readonly ignored: number
  readonly limited: number
  readonly failures: number
  readonly updates: number
  /** AXFR and IXFR together. */
  readonly transfers: number
  /** IXFR that sent changes only. */
  readonly incrementalTransfers: number
  readonly tcpConnections: number
}

export interface RRsetHits {
  readonly name: Fqdn
  readonly type: string
  readonly hits: number
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
  /** Refuses queries for names of this zone until the next `swap`. */
  suspend(origin: Fqdn): void
  remove(origin: Fqdn): void
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
    transfer: (query) => server.transfer(query),
  }
}

class Server {
  readonly index = new ZoneIndex()
  readonly totals = createCounters()
  readonly limiter: RateLimiter
  readonly answerer: Answerer
  updates = 0
  transfers = 0
  incrementalTransfers = 0
  readonly #options: DnsServerOptions
  /** Shared by the threads. */
  readonly #cookieSecret = randomBytes(16)
  readonly #keys: ReadonlyMap<Fqdn, TsigKey>
  readonly #client = createDnsClient({ tries: 1 })
  readonly #notifier: Notifier
  readonly #request = new Request()
  readonly #histories = new Map<Fqdn, ZoneHistory>()
  readonly #scratch = Buffer.allocUnsafeSlow(65_537)
  workers: Workers | undefined

  constructor(options: DnsServerOptions) {
    this.#options = options
    this.#keys = new Map(options.keys?.map((key) => [key.name, key]))
    this.limiter = new RateLimiter(options.rateLimit)
    this.#notifier = new Notifier(this.#client, this.#keys, (error) => this.report(error))
    const shared = {
      zones: this.index,
      counters: this.totals,
      cookies: new CookieJar(options.cookieSecret ?? this.#cookieSecret),
      now: () => this.seconds(),
      ...(options.maxUdpSize !== undefined && { maxUdpSize: options.maxUdpSize }),
      ...(options.regions !== undefined && { regions: options.regions }),
      onFailure: (error: unknown) => this.report(error),
    }
    const inner = new Answerer({ ...shared, special: () => undefined })
    this.answerer = new Answerer({ ...shared, special: (request, peer) => this.#special(request, peer, inner) })
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
    if (isFollowed) this.#remember(zone.origin, changes)
    if (isNewVersion) this.#notifier.notify(zone.origin, secondaries)
  }

  #remember(origin: Fqdn, deltas: readonly ZoneDelta[]): void {
    const history = this.#histories.get(origin) ?? new ZoneHistory()
    this.#histories.set(origin, history)
    for (const delta of deltas) history.add(delta)
  }

  suspend(origin: Fqdn): void {
    this.index.suspend(origin)
    this.workers?.suspend(origin)
  }

  remove(origin: Fqdn): void {
    this.index.delete(origin)
    this.workers?.remove(origin)
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
    const share = (limit: number | undefined, fallback: number) => Math.max(1, Math.ceil((limit ?? fallback) / count))
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

  /** UPDATE, NOTIFY, and signed queries. */
  #special(request: Request, peer: Peer, inner: Answerer): SpecialAnswer {
    const auth = authenticate(request, this.#keys, this.seconds())
    if (auth.kind === 'refused') return auth.answer
    // Transfers over TCP take another path. IXFR over UDP gets the SOA; the client then uses TCP (RFC 1995 §2).
    if (auth.kind === 'signed' && request.opcode === OPCODE.QUERY && request.type === TYPE.IXFR) {
      const [soa] = this.transfer(request.bytes.subarray(0, request.length), true) ?? []
      return soa
    }
    const key = auth.kind === 'signed' ? auth.key : undefined
    const answer = this.#unsignedAnswer(request, peer, inner, key)
    if (answer === undefined || auth.kind === 'unsigned') return answer
    if (answer instanceof Promise) {
      const previousMac = auth.record.mac.slice()
      return answer.then((bytes) => signMessage(bytes, auth.key, this.seconds(), { previousMac }).bytes)
    }
    const sign = (bytes: Uint8Array) =>
      signMessage(bytes, auth.key, this.seconds(), { previousMac: auth.record.mac }).bytes
    const signed = sign(answer)
    if (peer.transport === 'tcp' || signed.length <= Math.min(request.size, SAFE_UDP_SIZE)) return signed
    const cut = emptyAnswer(request, RCODE.NOERROR)
    cut[2]! |= FLAG.TC >> 8
    return sign(cut)
  }

  #unsignedAnswer(
    request: Request,
    peer: Peer,
    inner: Answerer,
    key: TsigKey | undefined,
  ): Uint8Array | Promise<Uint8Array> | undefined {
    switch (request.opcode) {
      case OPCODE.UPDATE: {
        const rcode = this.#update(request.bytes.subarray(0, request.length), key)
        if (typeof rcode === 'number') return emptyAnswer(request, rcode)
        // The request object is used for the next packet before the rcode is known.
        const answer = emptyAnswer(request, RCODE.NOERROR)
        return rcode.then((known) => {
          answer[3] = known
          return answer
        })
      }
      case OPCODE.NOTIFY:
        return emptyAnswer(request, this.#notifyRcode(request, peer, key))
      default: {
        const query = withoutTsig(request)
        const out = Buffer.allocUnsafe(65_535)
        const length = inner.answer(query, query.length, peer, out, 0)
        return length === 0 ? undefined : out.subarray(0, length)
      }
    }
  }

  #update(bytes: Uint8Array, key: TsigKey | undefined): number | Promise<number> {
    const { commit, onUpdate } = this.#options
    return handleUpdate(
      {
        findZone: (origin) => this.index.get(origin),
        policyOf: (origin) => this.policyOf(origin),
        onError: (error) => this.report(error),
        commit: (origin, change) => {
          const zone = this.index.get(origin)
          if (zone === undefined) return
          const perform = (current: Zone, serial?: number) => {
            const changed = change(current, serial)
            if (changed !== current) this.updates++
            return changed
          }
          if (commit !== undefined) return commit(origin, perform)
          const changed = perform(zone)
          if (changed === zone) return
          onUpdate?.(changed)
          this.swap(changed)
        },
      },
      bytes,
      key,
    )
  }

  /** Without `onNotify` the server is primary for all its zones, and NOTIFY is refused (RFC 1996 §3.10). */
  #notifyRcode(request: Request, peer: Peer, key: TsigKey | undefined): number {
    if (request.questionEnd === 0) return RCODE.FORMERR
    const zone = wireToFqdn(request.name)
    const isKnown =
      this.index.get(zone) !== undefined || this.index.isSuspended(request.name, request.nameLength, undefined)
    if (!isKnown) return RCODE.NOTAUTH
    const notice = { zone, source: peer.address, ...(key !== undefined && { key: key.name }) }
    return this.#options.onNotify?.(notice) === true ? RCODE.NOERROR : RCODE.REFUSED
  }

  /** The messages of a transfer, or its error response; undefined when the query asks for none. `isSoaOnly`: only the SOA. */
  transfer(query: Uint8Array, isSoaOnly = false): Iterable<Buffer> | undefined {
    const request = this.#request
    if (request.parse(query, query.length) !== RCODE.NOERROR || request.opcode !== OPCODE.QUERY) return undefined
    if ((request.type !== TYPE.AXFR && request.type !== TYPE.IXFR) || request.tsigAt === 0) return undefined
    const auth = authenticate(request, this.#keys, this.seconds())
    if (auth.kind === 'refused') return [Buffer.from(auth.answer)]
    if (auth.kind === 'unsigned') return undefined
    const plan = planTransfer(query, ({ questions }) => this.index.get(fqdn(questions[0]!.name)))
    const isAllowed =
      typeof plan !== 'number' && this.policyOf(plan.zone.origin).transferKeys?.includes(auth.key.name) === true
    if (typeof plan === 'number' || !isAllowed) {
      const rcode = typeof plan === 'number' ? plan : RCODE.REFUSED
      return [
        signMessage(emptyAnswer(request, rcode), auth.key, this.seconds(), { previousMac: auth.record.mac }).bytes,
      ]
    }
    const entries = isSoaOnly || plan.isCurrent ? soaOnly(plan.zone) : this.#transferred(plan)
    return transferMessages(plan.zone, plan.message, entries, auth.key, auth.record.mac, () => this.seconds())
  }

  #transferred({ zone, knownSerial }: TransferPlan): ReturnType<typeof wholeZone> {
    this.transfers++
    const history = knownSerial === undefined ? undefined : this.#histories.get(zone.origin)
    const deltas = history?.since(knownSerial!, zone.serial, zone.rrsets)
    if (deltas === undefined) return wholeZone(zone)
    this.incrementalTransfers++
    return incremental(zone, deltas)
  }

  hits(origin: Fqdn): RRsetHits[] {
    const list: RRsetHits[] = []
    for (const shard of this.index.get(origin)?.shards() ?? []) {
      const { hits, data } = shard
      if (hits === undefined) continue
      shard.eachNode((node) => {
        shard.eachSet(node, (set, type) => {
          const count = hits[u16(data, set + 4)]!
          if (count > 0) list.push({ name: wireToFqdn(shard.nameOf(node)), type: typeName(type), hits: count })
        })
      })
    }
    return list
  }

  async close(): Promise<void> {
    await this.workers?.close()
    await this.#notifier.close()
    await this.#client.close()
  }
}

interface Listeners {
  readonly udp: UdpListener
  readonly tcp: TcpListener
}

const isShared = ({ workers = 1 }: DnsServerOptions): boolean => workers > 1 && CAN_SHARE_PORT

/** A port that is free for UDP may be in use for TCP: with port 0 another pair is tried. */
const PORT_TRIES = 20

async function listenBoth(
  server: Server,
  options: DnsServerOptions,
  { address, port }: ListenAddress,
): Promise<Listeners> {
  const onError = (error: Error) => server.report(error)
  for (let attempt = 1; ; attempt++) {
    const udp = await listenUdp({
      address,
      port,
      answerer: server.answerer,
      limiter: server.limiter,
      now: () => server.now(),
      onError,
      isPortShared: isShared(options),
    })
    try {
      const transfer = (query: Buffer) => server.transfer(query)
      const tcp = await listenTcp({
        ...options.tcp,
        address,
        port: udp.port,
        answerer: server.answerer,
        transfer,
        onError,
      })
      return { udp, tcp }
    } catch (error) {
      await udp.close()
      if (port !== 0 || attempt === PORT_TRIES) throw error
    }
  }
}

/** Resolves when every address answers; rejects with NETWORK, and nothing left open, when one cannot be bound. */
export async function createDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const server = new Server(options)
  const listeners: Listeners[] = []
  let closing: Promise<void> | undefined
  const closeAll = async () => {
    await Promise.all(
      listeners.flatMap(({ udp, tcp }) => [...(server.workers === undefined ? [udp.close()] : []), tcp.close()]),
    )
    await server.close()
  }
  const close = async () => (closing ??= closeAll())
  for (const listen of options.listen) {
    try {
      listeners.push(await listenBoth(server, options, listen))
    } catch (cause) {
      await close()
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new DnsError('NETWORK', `cannot listen on ${listen.address} port ${listen.port}: ${why}`, { cause })
    }
  }
  const addresses = listeners.map(({ udp }) => ({ address: udp.address, port: udp.port }))
  if (isShared(options)) {
    try {
      await server.startWorkers(addresses, options.workers ?? 1)
    } catch (cause) {
      await close()
      throw new DnsError('NETWORK', `the workers of the DNS server cannot start: ${String(cause)}`, { cause })
    }
    // From here on the threads answer; this one has other work, and would let its clients wait.
    await Promise.all(listeners.map(async ({ udp }) => udp.close()))
  }
  const sumOf = (field: 'queries' | 'truncated' | 'ignored' | 'limited' | 'failures') =>
    (server.workers?.counters() ?? []).reduce((sum, counters) => sum + counters[field], 0)
  const listed = (field: 'answers' | 'questions', nameOf: (index: number) => string) =>
    Object.fromEntries(
      [...server.totals[field]].flatMap((own, index) => {
        const count = (server.workers?.counters() ?? []).reduce((sum, each) => sum + (each[field][index] ?? 0), own)
        return count === 0 ? [] : [[nameOf(index), count]]
      }),
    )
  return {
    addresses,
    zones: () => server.index.values(),
    findZone: (origin) => server.findZone(origin),
    swap: (zone, deltas) => server.swap(zone, deltas),
    suspend: (origin) => server.suspend(origin),
    remove: (origin) => server.remove(origin),
    counters: () => ({
      queries: server.totals.queries + sumOf('queries'),
      questions: listed('questions', (type) => (type === OTHER_TYPE ? 'other' : typeName(type))),
      answers: listed('answers', rcodeName),
      truncated: server.totals.truncated + sumOf('truncated'),
      ignored: server.totals.ignored + sumOf('ignored'),
      limited: server.limiter.limited + sumOf('limited'),
      failures: server.totals.failures + sumOf('failures'),
      updates: server.updates,
      transfers: server.transfers,
      incrementalTransfers: server.incrementalTransfers,
      tcpConnections: listeners.reduce((sum, { tcp }) => sum + tcp.connections(), 0),
    }),
    hits: (origin) => server.hits(origin),
    close,
  }
}
