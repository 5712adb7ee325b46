/**
 * Builds the answer to one received packet, over UDP or TCP.
 *
 * Flow: parse in place (request.ts) → refuse malformed queries and names of other zones → common queries from prebuilt octets
 * (the fast path: one table lookup and a few copies, nothing allocated) → all others through resolve.ts and an encoder →
 * other opcodes and signed queries through `special`.
 * Guarantees: never throws; never answers a response; the question is returned octet by octet, in the case it was received in;
 * over UDP never more octets than the client accepts, than `maxUdpSize`, nor than the peer's answer ratio allows.
 */
import { addressOctets } from '../wire/address.ts'
import { CLASS, OPCODE, RCODE, TYPE } from '../wire/codes.ts'
import { decodeSubnet, EXTENDED_ERROR, SAFE_UDP_SIZE } from '../wire/edns.ts'
import { DnsError } from '../error.ts'
import { MAX_MESSAGE } from '../wire/message.ts'
import type { PolicyChooser } from '../zone/answer-policy.ts'
import { wildcardHash } from '../zone/name-hash.ts'
import { hasCompressedName } from '../wire/rdata/grammar.ts'
import { NODE_FLAG, SET_HEAD, type Shard, u16, u32 } from '../zone/zone-shard.ts'
import type { Zone } from '../zone/zone-table.ts'
import { type Counters, OTHER_TYPE } from './counters.ts'
import { type CookieJar, SERVER_COOKIE } from './limits/cookie.ts'
import { type QuerySource, resolve, type Resolution } from './resolve.ts'
import { ResolutionEncoder } from './resolution-encoder.ts'
import { AUTHORITATIVE, OPT_LENGTH, Response, TRUNCATED } from './response.ts'
import { Request, SILENT } from './request.ts'
import type { RegionSource } from './regions/region-source.ts'
import type { ZoneIndex } from './zone-index.ts'

export interface AnswerOptions {
  readonly zones: ZoneIndex
  readonly counters: Counters
  readonly cookies: CookieJar
  /** Seconds since 1970. */
  readonly now: () => number
  /** @default 1232 */
  readonly maxUdpSize?: number
  /** Answers UPDATE, NOTIFY and signed messages: the whole answer, or undefined for none. */
  readonly special: (request: Request, peer: Peer) => SpecialAnswer
  /** Regions of clients, for policies. */
  readonly regions?: RegionSource
  readonly onFailure?: (error: unknown) => void
}

/** A promise when the answer has to wait, for instance until an UPDATE is on disk. */
export type SpecialAnswer = Uint8Array | Promise<Uint8Array | undefined> | undefined

export interface Peer {
  readonly address: string
  readonly port: number
  readonly transport: 'udp' | 'tcp'
  /**
   * Octets of an answer by UDP for each octet of the question while the peer has not proved its address with a cookie.
   * @default Infinity
   */
  readonly maxAnswerRatio?: number
  /** Sends an answer when it is there; `answer` then returns 0 with `isDeferred`. Without it there is no answer. */
  readonly defer?: (answer: Promise<Uint8Array | undefined>) => void
}

/** The largest `maxUdpSize`; udp.ts keeps this much room for an answer. */
export const MAX_UDP_SIZE = 4096
/** Types that never have records in a zone: a query for them is malformed. */
const isMeta = (type: number): boolean => type === TYPE.OPT || type === TYPE.TSIG || type === TYPE.TKEY

const COMPRESSED = Uint8Array.from({ length: 65_536 }, (_, type) => (hasCompressedName(type) ? 1 : 0))

export class Answerer {
  readonly request = new Request()
  /** After an answer: answers of equal kind share a limit of the rate limiter. */
  kind = 0
  /** After an answer: the query had a valid cookie, so its source address is the client's. */
  hasValidCookie = false
  /** After a length of 0: the answer follows through `peer.defer`. */
  isDeferred = false
  readonly #zones: ZoneIndex
  readonly #counters: Counters
  readonly #cookies: CookieJar
  readonly #now: () => number
  readonly #maxUdpSize: number
  readonly #special: AnswerOptions['special']
  readonly #onFailure: (error: unknown) => void
  readonly #regions: RegionSource | undefined
  readonly #response: Response
  readonly #encoder: ResolutionEncoder
  readonly #wild = new Uint8Array(256)
  #rotor = 0

  constructor(options: AnswerOptions) {
    this.#zones = options.zones
    this.#counters = options.counters
    this.#cookies = options.cookies
    this.#now = options.now
    this.#maxUdpSize = Math.min(options.maxUdpSize ?? SAFE_UDP_SIZE, MAX_UDP_SIZE)
    this.#response = new Response(this.request, this.#maxUdpSize)
    this.#encoder = new ResolutionEncoder(this.request, this.#response)
    this.#special = options.special
    this.#regions = options.regions
    this.#onFailure = options.onFailure ?? (() => {})
  }

  /**
   * Writes the answer to `query` into `out` at `start` and returns its length, 0 for none. `out` must have room for 65 535
   * octets over TCP, and for `maxUdpSize` over UDP.
   */
  answer(query: Uint8Array, length: number, peer: Peer, out: Buffer, start: number): number {
    const { request } = this
    const counters = this.#counters
    counters.queries++
    this.#response.begin(out, start)
    this.hasValidCookie = false
    this.isDeferred = false
    const status = request.parse(query, length)
    if (status === SILENT) {
      counters.ignored++
      return 0
    }
    this.kind = status
    if (request.cookieLength > 0) this.#checkCookie(peer)
    this.#response.limit = start + (peer.transport === 'tcp' ? MAX_MESSAGE : this.#udpLimit(peer))
    // The layout of an unknown opcode is unknown: its sections are not parsed (RFC 8906 §8.1.5).
    if (request.opcode !== OPCODE.QUERY && request.opcode !== OPCODE.UPDATE && request.opcode !== OPCODE.NOTIFY)
      return this.#refuse(RCODE.NOTIMP)
    if (status !== RCODE.NOERROR) return this.#refuse(status)
    if (request.opcode !== OPCODE.QUERY || request.tsigAt > 0) return this.#specialAnswer(peer)
    counters.questions[request.type < counters.questions.length ? request.type : OTHER_TYPE]!++
    return this.#query(peer)
  }

  /** A truncated answer without records, for a source over its limit. */
  truncated(query: Uint8Array, length: number, peer: Peer, out: Buffer, start: number): number {
    const { request } = this
    this.#response.begin(out, start)
    if (request.parse(query, length) !== RCODE.NOERROR || request.opcode !== OPCODE.QUERY) return 0
    this.#response.limit = start + 512
    if (request.cookieLength > 0) this.#checkCookie(peer)
    return this.#finish(RCODE.NOERROR, TRUNCATED, 0, 0, 0)
  }

  /** Does the query have a valid cookie? For a source over its limit; cheap when there is no cookie. */
  hasCookie(query: Uint8Array, length: number, peer: Peer): boolean {
    if (length < 12 + 5 + OPT_LENGTH + 4 + 8 + SERVER_COOKIE) return false
    if (this.request.parse(query, length) !== RCODE.NOERROR || this.request.cookieLength === 0) return false
    this.#checkCookie(peer)
    return this.hasValidCookie
  }

  /** Octets that an answer by UDP may have. */
  #udpLimit(peer: Peer): number {
    const { request } = this
    const limit = Math.min(request.size, this.#maxUdpSize)
    if (this.hasValidCookie || peer.maxAnswerRatio === undefined) return limit
    const allowed = request.length * peer.maxAnswerRatio
    return allowed < limit ? Math.floor(allowed) : limit
  }

  #checkCookie(peer: Peer): void {
    const { request } = this
    const cookie = request.bytes.subarray(request.cookieAt, request.cookieAt + request.cookieLength)
    const address = addressOctets(peer.address)
    const now = this.#now()
    this.hasValidCookie = this.#cookies.isValid(cookie, address, now)
    this.#response.serverCookie = this.#cookies.serverCookie(cookie, this.hasValidCookie, address, now)
  }

  #specialAnswer(peer: Peer): number {
    const answer = this.#special(this.request, peer)
    if (answer === undefined) return 0
    if (answer instanceof Promise) {
      this.isDeferred = peer.defer !== undefined
      peer.defer?.(answer.then((bytes) => this.#countDeferred(bytes)))
      return 0
    }
    this.#counters.answers[answer[3]! & 15]!++
    this.#response.out.set(answer, this.#response.start)
    return answer.length
  }

  #countDeferred(answer: Uint8Array | undefined): Uint8Array | undefined {
    if (answer !== undefined) this.#counters.answers[answer[3]! & 15]!++
    return answer
  }

  #refuse(rcode: number): number {
    this.kind = rcode
    return this.#finish(rcode, 0, 0, 0, 0)
  }

  #finish(rcode: number, bits: number, answers: number, authorities: number, additionals: number): number {
    this.#counters.answers[rcode]!++
    if ((bits & TRUNCATED) !== 0) this.#counters.truncated++
    return this.#response.finish(rcode, bits, answers, authorities, additionals)
  }

  #query(peer: Peer): number {
    const { request } = this
    if (request.ednsVersion > 0) return this.#refuse(RCODE.BADVERS)
    if (request.questionEnd === 0) return this.#finish(RCODE.NOERROR, 0, 0, 0, 0)
    if (isMeta(request.type)) return this.#refuse(RCODE.FORMERR)
    if (request.type === TYPE.MAILA || request.type === TYPE.MAILB) return this.#refuse(RCODE.NOTIMP)
    if (request.class !== CLASS.IN) return this.#refuse(request.class === CLASS.ANY ? RCODE.FORMERR : RCODE.REFUSED)
    const { name, nameLength, scan } = request
    let zone = this.#zones.find(name, nameLength, scan)
    if (this.#zones.hasSuspended && this.#zones.isSuspended(name, nameLength, zone)) {
      this.#response.extendedError = EXTENDED_ERROR.NOT_READY
      return this.#refuse(RCODE.REFUSED)
    }
    if (zone === undefined) {
      this.#response.extendedError = EXTENDED_ERROR.NOT_AUTHORITATIVE
      return this.#refuse(RCODE.REFUSED)
    }
    // Transfers are accepted only signed and over TCP (transfer.ts).
    if (request.type === TYPE.AXFR || request.type === TYPE.IXFR) {
      return this.#refuse(zone.originWire.length === nameLength ? RCODE.REFUSED : RCODE.NOTAUTH)
    }
    if (request.type === TYPE.DS && zone.originWire.length === nameLength)
      zone = this.#zones.find(name, nameLength, scan, 1) ?? zone
    let length = 0
    try {
      if (zone.cuts === 0 || !this.#isBelowCut(zone)) length = this.#fast(zone, peer)
    } catch (error) {
      // A client subnet that is none: only policies read it.
      if (!(error instanceof DnsError)) throw error
      return this.#refuse(RCODE.FORMERR)
    }
    return length > 0 ? length : this.#slow(zone, peer)
  }

  /** Is there a delegation or a DNAME between the apex and the name? */
  #isBelowCut(zone: Zone): boolean {
    const { name, nameLength, scan } = this.request
    const apex = nameLength - zone.originWire.length
    for (let label = scan.labels; label >= 0; label--) {
      const start = scan.offsets[label]!
      if (start > apex) continue
      const hash = scan.hashes[label]!
      const shard = zone.shardOf(hash)
      const node = shard.find(hash, name, start, nameLength)
      if (node === -1) return false
      const flags = shard.data[node + 14]!
      if ((flags & NODE_FLAG.DNAME) !== 0 || (start !== apex && (flags & NODE_FLAG.NS) !== 0)) return true
    }
    return false
  }

  /** 0 when the query is not one of the common cases. */
  #fast(zone: Zone, peer: Peer): number {
    const { name, nameLength, scan } = this.request
    const hash = scan.hashes[0]!
    const shard = zone.shardOf(hash)
    const node = shard.find(hash, name, 0, nameLength)
    return node === -1 ? this.#fastMissing(zone, peer) : this.#fastNode(zone, shard, node, peer)
  }

  /** The node may be the wildcard of the name: the owner of the RRset is a pointer to the question in both cases. */
  #fastNode(zone: Zone, shard: Shard, node: number, peer: Peer): number {
    const { scan, type } = this.request
    const set = shard.findSet(node, type)
    this.kind = scan.hashes[0]! + type
    if (set === -1) {
      const isPlain = type !== TYPE.ANY && (shard.data[node + 14]! & NODE_FLAG.CNAME) === 0
      return isPlain ? this.#negative(zone, RCODE.NOERROR) : 0
    }
    if (COMPRESSED[type] === 1 || u16(shard.data, set + 2) === 0) return 0
    if ((shard.data[node + 14]! & NODE_FLAG.POLICY) !== 0) {
      const chooser = shard.chooserOf(node, set)
      if (chooser !== undefined) return this.#copyChosen(shard, set, chooser, peer)
    }
    return this.#copySet(shard, set)
  }

  /** One record of the set, or all of it in an order; 0 for what resolve.ts has to do. */
  #copyChosen(shard: Shard, set: number, chooser: PolicyChooser, peer: Peer): number {
    const { data } = shard
    const recordLength = u16(data, set + 6)
    if (recordLength === 0 || chooser.mode !== 'weighted') return 0
    const record = chooser.chooseOne(chooser.hasRegions ? this.#regionsOf(peer) : undefined)
    shard.count(set)
    const response = this.#response
    response.question()
    if (!response.hasRoom(recordLength)) return this.#finish(RCODE.NOERROR, AUTHORITATIVE | TRUNCATED, 0, 0, 0)
    const from = set + SET_HEAD + record * recordLength
    response.copy(data, from, from + recordLength)
    return this.#finish(RCODE.NOERROR, AUTHORITATIVE, 1, 0, 0)
  }

  /**
   * The regions of the client by its subnet (RFC 7871), else of the resolver. The answer then contains for which part of the
   * subnet it holds (§7.2.1).
   */
  #regionsOf(peer: Peer): readonly string[] | undefined {
    const { bytes, subnetAt, subnetLength } = this.request
    const regions = this.#regions
    if (regions === undefined) return undefined
    if (subnetLength === 0) return regions.locate(peer.address).regions
    const subnet = decodeSubnet(bytes.subarray(subnetAt, subnetAt + subnetLength))
    const { address, sourcePrefix } = subnet
    const location = regions.locate(address)
    this.#response.subnetScope = Math.min(sourcePrefix, location.prefix)
    return sourcePrefix === 0 ? regions.locate(peer.address).regions : location.regions
  }

  #fastMissing(zone: Zone, peer: Peer): number {
    const { name, nameLength, scan } = this.request
    if (zone.wildcards > 0) {
      let label = 1
      for (; ; label++) {
        const shard = zone.shardOf(scan.hashes[label]!)
        if (shard.find(scan.hashes[label]!, name, scan.offsets[label]!, nameLength) !== -1) break
      }
      const start = scan.offsets[label]!
      const wild = this.#wild
      wild[0] = 1
      wild[1] = 0x2a
      for (let i = start; i < nameLength; i++) wild[2 + i - start] = name[i]!
      const hash = wildcardHash(scan, label)
      const shard = zone.shardOf(hash)
      const node = shard.find(hash, wild, 0, nameLength - start + 2)
      if (node !== -1) return this.#fastNode(zone, shard, node, peer)
    }
    this.kind = zone.soa.serial + RCODE.NXDOMAIN
    return this.#negative(zone, RCODE.NXDOMAIN)
  }

  #copySet(shard: Shard, set: number): number {
    const { data } = shard
    const records = u16(data, set + 2)
    const length = u32(data, set + 8)
    shard.count(set)
    const response = this.#response
    response.question()
    if (!response.hasRoom(length)) return this.#finish(RCODE.NOERROR, AUTHORITATIVE | TRUNCATED, 0, 0, 0)
    const from = set + SET_HEAD
    // Records of equal length are rotated by one from answer to answer, so that no address is always first.
    const turn = records > 1 ? (this.#rotor++ % records) * u16(data, set + 6) : 0
    response.copy(data, from + turn, from + length)
    if (turn > 0) response.copy(data, from, from + turn)
    return this.#finish(RCODE.NOERROR, AUTHORITATIVE, records, 0, 0)
  }

  #negative(zone: Zone, rcode: number): number {
    const { negative, pointers } = zone.soa
    const apex = 12 + this.request.nameLength - zone.originWire.length
    // The SOA's names are pointers into the question: only when it has the case of the zone.
    if (!this.#isLowerFrom(apex)) return 0
    const response = this.#response
    response.question()
    if (!response.hasRoom(negative.length)) return this.#finish(rcode, AUTHORITATIVE | TRUNCATED, 0, 0, 0)
    const start = response.at
    response.copy(negative, 0, negative.length)
    for (let i = 0; i < pointers.length; i++) {
      const at = start + pointers[i]!
      response.out[at] = 0xc0 | (apex >> 8)
      response.out[at + 1] = apex
    }
    return this.#finish(rcode, AUTHORITATIVE, 0, 1, 0)
  }

  #isLowerFrom(at: number): boolean {
    const { bytes, name, nameLength } = this.request
    for (; at < 12 + nameLength; at++) if (bytes[at] !== name[at - 12]) return false
    return true
  }

  #slow(zone: Zone, peer: Peer): number {
    const { request } = this
    let result: Resolution
    try {
      const question = request.bytes.slice(12, 12 + request.nameLength)
      result = resolve(zone, question, request.type, this.#source(peer), () => this.#regionsOf(peer))
    } catch (error) {
      if (error instanceof DnsError && error.code === 'MALFORMED') return this.#refuse(RCODE.FORMERR)
      this.#counters.failures++
      this.#onFailure(error)
      return this.#refuse(RCODE.SERVFAIL)
    }
    this.kind =
      result.rcode === RCODE.NXDOMAIN ? zone.soa.serial + RCODE.NXDOMAIN : request.scan.hashes[0]! + request.type
    return this.#encode(zone, result)
  }

  #source(peer: Peer): QuerySource {
    const { bytes, subnetAt, subnetLength } = this.request
    const source = { source: peer.address, transport: peer.transport }
    return subnetLength === 0
      ? source
      : { ...source, subnet: decodeSubnet(bytes.subarray(subnetAt, subnetAt + subnetLength)) }
  }

  #encode(zone: Zone, result: Resolution): number {
    this.#rotor++
    const { isTruncated, counts } = this.#encoder.encode(zone, result, this.#rotor)
    const bits = (result.isAuthoritative ? AUTHORITATIVE : 0) | (isTruncated ? TRUNCATED : 0)
    return this.#finish(result.rcode, bits, counts[0], counts[1], counts[2])
  }
}
