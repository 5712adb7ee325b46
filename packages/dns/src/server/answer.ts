/**
 * Question in, answer out: what a server does with one packet, whatever it came by.
 *
 * Flow: parse in place (request.ts) → refuse what is malformed or not ours → plain questions from prebuilt octets (the fast
 * path: one table look-up and a few copies, nothing allocated) → everything else through resolve.ts and an encoder → other
 * opcodes and signed questions through `special`.
 * Guarantees: never throws; never answers an answer; the question comes back octet by octet, in the case it was asked in;
 * over UDP never more octets than the client takes nor than `maxUdpSize`.
 */
import { addressOctets } from '../address.ts'
import { CLASS, OPCODE, RCODE, TYPE } from '../codes.ts'
import { decodeSubnet, EXTENDED_ERROR, OPTION, SAFE_UDP_SIZE } from '../edns.ts'
import { DnsError } from '../error.ts'
import { MAX_MESSAGE } from '../message.ts'
import { wildcardHash } from '../name-hash.ts'
import { hasCompressedName, writeRdata } from '../rdata/grammar.ts'
import { WireWriter } from '../wire.ts'
import { NODE_FLAG, RECORD_HEAD, SET_HEAD, type Shard, u16, u32 } from '../zone-shard.ts'
import type { Zone } from '../zone-table.ts'
import { type CookieJar, SERVER_COOKIE } from './cookie.ts'
import { type AnswerSet, type QuerySource, resolve, type Resolution } from './resolve.ts'
import { Request, SILENT } from './request.ts'
import type { ZoneIndex } from './zone-index.ts'

export interface Counters {
  queries: number
  /** By rcode, index 0–23. */
  readonly answers: Float64Array
  truncated: number
  /** Packets that deserve no answer. */
  ignored: number
  /** Dynamic record sets that threw. */
  failures: number
}

export interface AnswerOptions {
  readonly zones: ZoneIndex
  readonly counters: Counters
  readonly cookies: CookieJar
  /** Seconds since 1970. */
  readonly now: () => number
  /** @default 1232 */
  readonly maxUdpSize?: number
  /** Answers UPDATE, NOTIFY and signed messages: the whole answer, or undefined for none. */
  readonly special: (request: Request, peer: Peer) => Uint8Array | undefined
  readonly onFailure?: (error: unknown) => void
}

export interface Peer {
  readonly address: string
  readonly port: number
  readonly transport: 'udp' | 'tcp'
}

const OPT_LENGTH = 11
const COOKIE_OPTION = 4 + 8 + SERVER_COOKIE
/** Types that are no data and are asked for by nobody who means well: they have no records by definition. */
const isMeta = (type: number): boolean => type === TYPE.OPT || type === TYPE.TSIG || type === TYPE.TKEY

const COMPRESSED = Uint8Array.from({ length: 65_536 }, (_, type) => (hasCompressedName(type) ? 1 : 0))

export class Answerer {
  readonly request = new Request()
  /** After an answer: which answers of the rate limiter count as the same. */
  kind = 0
  /** After an answer: the client proved its address. */
  hasValidCookie = false
  readonly #zones: ZoneIndex
  readonly #counters: Counters
  readonly #cookies: CookieJar
  readonly #now: () => number
  readonly #maxUdpSize: number
  readonly #special: AnswerOptions['special']
  readonly #onFailure: (error: unknown) => void
  readonly #writer = new WireWriter(MAX_MESSAGE)
  readonly #wild = new Uint8Array(256)
  #out: Buffer = Buffer.alloc(0)
  #start = 0
  #at = 0
  #limit = 0
  #rotor = 0
  #serverCookie: Uint8Array | undefined
  #extendedError = -1

  constructor(options: AnswerOptions) {
    this.#zones = options.zones
    this.#counters = options.counters
    this.#cookies = options.cookies
    this.#now = options.now
    this.#maxUdpSize = options.maxUdpSize ?? SAFE_UDP_SIZE
    this.#special = options.special
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
    this.#out = out
    this.#start = start
    this.#at = start
    this.#serverCookie = undefined
    this.#extendedError = -1
    this.hasValidCookie = false
    const status = request.parse(query, length)
    if (status === SILENT) {
      counters.ignored++
      return 0
    }
    this.kind = status
    this.#limit = start + (peer.transport === 'tcp' ? MAX_MESSAGE : Math.min(request.size, this.#maxUdpSize))
    if (request.cookieLength > 0) this.#checkCookie(peer)
    // An opcode we do not know has a layout we do not know: its sections are not looked at (RFC 8906 §8.1.5).
    if (request.opcode !== OPCODE.QUERY && request.opcode !== OPCODE.UPDATE && request.opcode !== OPCODE.NOTIFY)
      return this.#refuse(RCODE.NOTIMP)
    if (status !== RCODE.NOERROR) return this.#refuse(status)
    if (request.opcode !== OPCODE.QUERY || request.tsigAt > 0) return this.#specialAnswer(peer)
    return this.#query(peer)
  }

  /** A truncated answer without data to the question that `answer` saw last, or to an unseen one. */
  truncated(query: Uint8Array, length: number, peer: Peer, out: Buffer, start: number): number {
    const { request } = this
    this.#out = out
    this.#start = this.#at = start
    this.#serverCookie = undefined
    this.#extendedError = -1
    if (request.parse(query, length) !== RCODE.NOERROR || request.opcode !== OPCODE.QUERY) return 0
    this.#limit = start + 512
    if (request.cookieLength > 0) this.#checkCookie(peer)
    this.#counters.truncated++
    return this.#finish(RCODE.NOERROR, 0x02, 0, 0, 0)
  }

  /** Does the question carry a valid cookie? For a source that is over its limit; cheap when there is none. */
  hasCookie(query: Uint8Array, length: number, peer: Peer): boolean {
    if (length < 12 + 5 + OPT_LENGTH + 4 + 8 + SERVER_COOKIE) return false
    if (this.request.parse(query, length) !== RCODE.NOERROR || this.request.cookieLength === 0) return false
    this.#checkCookie(peer)
    return this.hasValidCookie
  }

  #checkCookie(peer: Peer): void {
    const { request } = this
    const cookie = request.bytes.subarray(request.cookieAt, request.cookieAt + request.cookieLength)
    const address = addressOctets(peer.address)
    const now = this.#now()
    this.hasValidCookie = this.#cookies.isValid(cookie, address, now)
    this.#serverCookie = this.#cookies.serverCookie(cookie, this.hasValidCookie, address, now)
  }

  #specialAnswer(peer: Peer): number {
    const answer = this.#special(this.request, peer)
    if (answer === undefined) return 0
    this.#counters.answers[answer[3]! & 15]!++
    this.#out.set(answer, this.#start)
    return answer.length
  }

  #refuse(rcode: number): number {
    this.kind = rcode
    return this.#finish(rcode, 0, 0, 0, 0)
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
    if (zone === undefined) {
      this.#extendedError = EXTENDED_ERROR.NOT_AUTHORITATIVE
      return this.#refuse(RCODE.REFUSED)
    }
    // Transfers come signed and by TCP (transfer.ts); everybody else is refused.
    if (request.type === TYPE.AXFR || request.type === TYPE.IXFR) {
      return this.#refuse(zone.originWire.length === nameLength ? RCODE.REFUSED : RCODE.NOTAUTH)
    }
    if (request.type === TYPE.DS && zone.originWire.length === nameLength)
      zone = this.#zones.find(name, nameLength, scan, 1) ?? zone
    const length = zone.cuts > 0 && this.#isBelowCut(zone) ? 0 : this.#fast(zone)
    return length > 0 ? length : this.#slow(zone, peer)
  }

  /** Is there a delegation or a DNAME on the way from the apex to the name? */
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

  /** 0 when the question is not a plain one. */
  #fast(zone: Zone): number {
    const { name, nameLength, scan, type } = this.request
    const hash = scan.hashes[0]!
    const shard = zone.shardOf(hash)
    const node = shard.find(hash, name, 0, nameLength)
    if (node === -1) return this.#fastMissing(zone)
    const set = shard.findSet(node, type)
    if (set === -1) {
      if (type === TYPE.ANY || (shard.data[node + 14]! & NODE_FLAG.CNAME) !== 0) return 0
      this.kind = hash
      return this.#negative(zone, RCODE.NOERROR)
    }
    if (COMPRESSED[type] === 1 || u16(shard.data, set + 2) === 0) return 0
    this.kind = hash + type
    return this.#copySet(shard, set)
  }

  #fastMissing(zone: Zone): number {
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
      if (zone.shardOf(hash).find(hash, wild, 0, nameLength - start + 2) !== -1) return 0
    }
    this.kind = zone.soa.serial + RCODE.NXDOMAIN
    return this.#negative(zone, RCODE.NXDOMAIN)
  }

  /** Header and question; the counts are filled in by `#finish`. */
  #head(): void {
    const { bytes, questionEnd } = this.request
    const out = this.#out
    let at = this.#start + 12
    for (let i = 12; i < questionEnd; i++) out[at++] = bytes[i]!
    this.#at = at
  }

  #copySet(shard: Shard, set: number): number {
    const { data } = shard
    const records = u16(data, set + 2)
    const length = u32(data, set + 8)
    shard.count(set)
    this.#head()
    if (this.#at + length + this.#optLength() > this.#limit) {
      this.#counters.truncated++
      return this.#finish(RCODE.NOERROR, 0x06, 0, 0, 0)
    }
    const from = set + SET_HEAD
    // Records of equal length go round by one from answer to answer, so that no address is always first.
    const turn = records > 1 ? (this.#rotor++ % records) * u16(data, set + 6) : 0
    this.#copy(data, from + turn, from + length)
    if (turn > 0) this.#copy(data, from, from + turn)
    return this.#finish(RCODE.NOERROR, 0x04, records, 0, 0)
  }

  #copy(data: Uint8Array, from: number, to: number): void {
    const out = this.#out
    if (to - from > 128) {
      out.set(data.subarray(from, to), this.#at)
      this.#at += to - from
      return
    }
    let at = this.#at
    while (from < to) out[at++] = data[from++]!
    this.#at = at
  }

  #negative(zone: Zone, rcode: number): number {
    const { negative, pointers } = zone.soa
    const apex = 12 + this.request.nameLength - zone.originWire.length
    // The SOA's names point into the question: only where that is in the case of the zone.
    if (!this.#isLowerFrom(apex)) return 0
    this.#head()
    const start = this.#at
    if (start + negative.length + this.#optLength() > this.#limit) {
      this.#counters.truncated++
      return this.#finish(rcode, 0x06, 0, 0, 0)
    }
    this.#copy(negative, 0, negative.length)
    for (const pointer of pointers) {
      this.#out[start + pointer] = 0xc0 | (apex >> 8)
      this.#out[start + pointer + 1] = apex
    }
    return this.#finish(rcode, 0x04, 0, 1, 0)
  }

  #isLowerFrom(at: number): boolean {
    const { bytes, name, nameLength } = this.request
    for (; at < 12 + nameLength; at++) if (bytes[at] !== name[at - 12]) return false
    return true
  }

  #optLength(): number {
    if (!this.request.hasEdns) return 0
    return OPT_LENGTH + (this.#serverCookie === undefined ? 0 : COOKIE_OPTION) + (this.#extendedError === -1 ? 0 : 6)
  }

  /** Appends OPT, fills in the header. `bits` are AA (4) and TC (2) of the third octet. */
  #finish(rcode: number, bits: number, answers: number, authorities: number, additionals: number): number {
    const { request } = this
    const { bytes } = request
    const out = this.#out
    const start = this.#start
    if (this.#at === start) this.#head()
    this.#counters.answers[rcode]!++
    if (request.hasEdns) this.#opt(rcode)
    out[start] = bytes[0]!
    out[start + 1] = bytes[1]!
    // QR, the opcode and RD as asked (RFC 8906 §8.1.1 wants no unassigned bit back); RA stays clear: no recursion.
    out[start + 2] = 0x80 | (bytes[2]! & 0x79) | bits
    out[start + 3] = rcode & 15
    out[start + 4] = 0
    out[start + 5] = request.questionEnd > 0 ? 1 : 0
    out[start + 6] = answers >> 8
    out[start + 7] = answers
    out[start + 8] = authorities >> 8
    out[start + 9] = authorities
    const extra = additionals + (request.hasEdns ? 1 : 0)
    out[start + 10] = extra >> 8
    out[start + 11] = extra
    return this.#at - start
  }

  #opt(rcode: number): void {
    const { bytes, cookieAt, isDo } = this.request
    const out = this.#out
    let at = this.#at
    out[at] = 0
    out[at + 1] = 0
    out[at + 2] = TYPE.OPT
    out[at + 3] = this.#maxUdpSize >> 8
    out[at + 4] = this.#maxUdpSize
    out[at + 5] = rcode >> 4
    out[at + 6] = 0
    out[at + 7] = isDo ? 0x80 : 0
    out[at + 8] = 0
    const length = this.#optLength() - OPT_LENGTH
    out[at + 9] = length >> 8
    out[at + 10] = length
    at += OPT_LENGTH
    if (this.#serverCookie !== undefined) {
      out[at] = 0
      out[at + 1] = OPTION.COOKIE
      out[at + 2] = 0
      out[at + 3] = 8 + SERVER_COOKIE
      for (let i = 0; i < 8; i++) out[at + 4 + i] = bytes[cookieAt + i]!
      out.set(this.#serverCookie, at + 12)
      at += COOKIE_OPTION
    }
    if (this.#extendedError !== -1) {
      out[at] = 0
      out[at + 1] = OPTION.EXTENDED_ERROR
      out[at + 2] = 0
      out[at + 3] = 2
      out[at + 4] = 0
      out[at + 5] = this.#extendedError
      at += 6
    }
    this.#at = at
  }

  #slow(zone: Zone, peer: Peer): number {
    const { request } = this
    let result: Resolution
    try {
      const question = request.bytes.slice(12, 12 + request.nameLength)
      result = resolve(zone, question, request.type, this.#source(peer))
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
    const writer = this.#writer
    const room = this.#limit - this.#start - this.#optLength()
    writer.reset()
    writer.at = 12
    writer.name(this.request.bytes, 12)
    writer.put(this.request.bytes, this.request.questionEnd - 4, this.request.questionEnd)
    const soa: AnswerSet[] = result.isNegative ? [negativeSoa(zone)] : []
    const counts = [0, 0, 0]
    this.#rotor++
    let isCut = false
    for (const [section, sets] of [result.answers, [...result.authorities, ...soa], result.glue].entries()) {
      for (const set of sets) {
        const before = writer.at
        writeSet(set, writer, this.#rotor)
        if (writer.at > room) {
          writer.rewind(before)
          isCut = true
          break
        }
        counts[section]! += set.set.records
      }
      if (isCut) break
    }
    if (isCut) this.#counters.truncated++
    this.#out.set(writer.bytes.subarray(12, writer.at), this.#start + 12)
    this.#at = this.#start + writer.at
    return this.#finish(
      result.rcode,
      (result.isAuthoritative ? 4 : 0) | (isCut ? 2 : 0),
      counts[0]!,
      counts[1]!,
      counts[2]!,
    )
  }
}

function negativeSoa(zone: Zone): AnswerSet {
  const { soa, originWire } = zone
  const set = zone.findPacked(originWire, TYPE.SOA)!
  const body = set.body.slice()
  new DataView(body.buffer).setUint32(6, soa.negativeTtl)
  return { owner: originWire, set: { ...set, body } }
}

/** Writes the records of a set with names compressed; those of equal length start at the `turn`th. */
export function writeSet({ owner, set }: AnswerSet, out: WireWriter, turn = 0): void {
  const { body, type, records, recordLength } = set
  let at = records > 1 ? (turn % records) * recordLength : 0
  for (let i = 0; i < records; i++) {
    const end = at + RECORD_HEAD + ((body[at + 10]! << 8) | body[at + 11]!)
    out.name(owner)
    out.put(body, at + 2, at + 10)
    const length = out.at
    out.u16(0)
    writeRdata(type, body, out, at + RECORD_HEAD, end)
    out.closeLength(length)
    at = end === body.length ? 0 : end
  }
}
