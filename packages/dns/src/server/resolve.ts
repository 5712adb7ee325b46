/**
 * Resolves a query in a zone: the algorithm of RFC 1034 §4.3.2 with wildcards (RFC 4592), DNAME (RFC 6672), delegations with
 * glue, CNAME chains inside the zone, dynamic RRsets, ANY as one RRset (RFC 8482 §4.1). Pure apart from hit counters and
 * dynamic RRsets. The fast path of answer.ts gives the same answers for the common cases; a test compares the two.
 */
import { RCODE, TYPE, typeName } from '../wire/codes.ts'
import { lowerWire, MAX_NAME, nameToText, wireToFqdn } from '../wire/name.ts'
import { createNameScan, type NameScan, scanName, wildcardHash } from '../zone/name-hash.ts'
import type { QueryContext } from '../zone/query-context.ts'
import { findTarget, rdataFromText } from '../wire/rdata/grammar.ts'
import { datasOf, NODE_FLAG, packSet, type PackedSet, type Shard, ttlOf } from '../zone/zone-shard.ts'
import type { Zone } from '../zone/zone-table.ts'
import type { AnswerSet } from './answer-set.ts'

export interface Resolution {
  rcode: number
  isAuthoritative: boolean
  readonly answers: AnswerSet[]
  readonly authorities: AnswerSet[]
  /** Addresses of name servers below a zone cut, without which the referral cannot be followed. */
  readonly glue: AnswerSet[]
  /** The zone's SOA goes into the authority section. */
  isNegative: boolean
}

/** BIND's limit of restarts; a loop ends here too. */
const MAX_CHAIN = 16

interface Place {
  readonly kind: 'node' | 'cut' | 'dname' | 'none'
  readonly shard?: Shard
  readonly node: number
  /** Index of the label where the cut or DNAME is. */
  readonly label: number
}

const NONE: Place = { kind: 'none', node: -1, label: 0 }

export type QuerySource = Omit<QueryContext, 'name' | 'type'>

class Resolver {
  readonly #zone: Zone
  readonly #type: number
  readonly #source: QuerySource
  readonly #regions: () => readonly string[] | undefined
  readonly #scan: NameScan = createNameScan()
  readonly result: Resolution = {
    rcode: RCODE.NOERROR,
    isAuthoritative: true,
    answers: [],
    authorities: [],
    glue: [],
    isNegative: false,
  }

  constructor(zone: Zone, type: number, source: QuerySource, regions: () => readonly string[] | undefined) {
    this.#zone = zone
    this.#type = type
    this.#source = source
    this.#regions = regions
  }

  resolve(question: Uint8Array): Resolution {
    const { result } = this
    let owner: Uint8Array | undefined = question
    for (let step = 0; owner !== undefined && step <= MAX_CHAIN; step++) owner = this.#step(owner)
    return result
  }

  /** Answers one name of the chain; returns the next one. */
  #step(owner: Uint8Array): Uint8Array | undefined {
    const name = lowerWire(owner)
    const place = this.#locate(name)
    switch (place.kind) {
      case 'none':
        this.result.rcode = RCODE.NXDOMAIN
        this.result.isNegative = true
        return undefined
      case 'cut':
        this.#refer(name.subarray(this.#scan.offsets[place.label]), place)
        return undefined
      case 'dname':
        return this.#substitute(owner, place)
      case 'node':
        return this.#answerNode(owner, place.shard!, place.node)
    }
  }

  #find(name: Uint8Array, label: number): Place {
    const hash = this.#scan.hashes[label]!
    const shard = this.#zone.shardOf(hash)
    return { kind: 'node', shard, node: shard.find(hash, name, this.#scan.offsets[label]!, name.length), label }
  }

  /** Walks from the apex down to the first cut or DNAME; the last existing name is the closest encloser. */
  #locate(name: Uint8Array): Place {
    const scan = this.#scan
    scanName(name, name.length, scan)
    const apex = scan.offsets.subarray(0, scan.labels + 1).indexOf(name.length - this.#zone.originWire.length)
    for (let label = apex; label >= 0; label--) {
      const place = this.#find(name, label)
      if (place.node === -1) return this.#wildcard(name, label + 1)
      const flags = place.shard!.data[place.node + 14]!
      const isCut = label !== apex && (flags & NODE_FLAG.NS) !== 0
      // DS at a cut belongs to the parent side (RFC 4035 §3.1.4.1).
      if (isCut && !(label === 0 && this.#type === TYPE.DS)) return { ...place, kind: 'cut' }
      if (label > 0 && (flags & NODE_FLAG.DNAME) !== 0) return { ...place, kind: 'dname' }
      if (label === 0) return place
    }
    return NONE
  }

  #wildcard(name: Uint8Array, encloser: number): Place {
    if (this.#zone.wildcards === 0) return NONE
    const suffix = name.subarray(this.#scan.offsets[encloser])
    const wild = Buffer.concat([Uint8Array.of(1, 0x2a), suffix])
    const hash = wildcardHash(this.#scan, encloser)
    const shard = this.#zone.shardOf(hash)
    const node = shard.find(hash, wild, 0, wild.length)
    return node === -1 ? NONE : { kind: 'node', shard, node, label: 0 }
  }

  #answerNode(owner: Uint8Array, shard: Shard, node: number): Uint8Array | undefined {
    const { result } = this
    const type = this.#type === TYPE.ANY ? this.#anyType(shard, node) : this.#type
    const direct = this.#take(owner, shard, node, type)
    if (direct !== undefined) {
      result.answers.push(direct)
      return undefined
    }
    const alias = this.#take(owner, shard, node, TYPE.CNAME)
    if (alias === undefined) {
      result.isNegative = true
      return undefined
    }
    result.answers.push(alias)
    return this.#follow(datasOf(alias.set)[0]!)
  }

  /** The target when it is in this zone and not yet in the chain: a loop is answered once around. */
  #follow(data: Uint8Array): Uint8Array | undefined {
    const target = findTarget(TYPE.CNAME, data)!
    const lower = lowerWire(target)
    if (!isInZone(lower, this.#zone.originWire)) return undefined
    const text = wireToFqdn(target)
    const isKnown = this.result.answers.some(({ owner, set }) => set.type === TYPE.CNAME && wireToFqdn(owner) === text)
    return isKnown ? undefined : target
  }

  /** RFC 8482 §4.1: one RRset instead of all, that of the lowest type, as Knot does; A is lowest. */
  #anyType(shard: Shard, node: number): number {
    let lowest = 0
    shard.eachSet(node, (_, type) => (lowest = lowest === 0 ? type : Math.min(lowest, type)))
    return lowest
  }

  /** The RRset for the answer, counted. A dynamic RRset is computed now, and is absent when it has no values. */
  #take(owner: Uint8Array, shard: Shard, node: number, type: number): AnswerSet | undefined {
    const offset = shard.findSet(node, type)
    if (offset === -1) return undefined
    shard.count(offset)
    const set = shard.unpack(offset)
    if (set.dynamic === undefined) return { owner, set: this.#chosen(shard, node, offset, set) }
    const values = set.dynamic.answer({ ...this.#source, name: nameToText(owner), type: typeName(type) })
    if (values.length === 0) return undefined
    const datas = values.map((value) => rdataFromText(type, value))
    return { owner, set: packSet(type, set.dynamic.ttl, datas) }
  }

  /** The records that a policy of the name chooses, or all. */
  #chosen(shard: Shard, node: number, offset: number, set: PackedSet): PackedSet {
    if ((shard.data[node + 14]! & NODE_FLAG.POLICY) === 0) return set
    const chooser = shard.chooserOf(node, offset)
    if (chooser === undefined) return set
    const datas = datasOf(set)
    const chosen = chooser.choose(chooser.hasRegions ? this.#regions() : undefined)
    return packSet(
      set.type,
      ttlOf(set.body),
      chosen.map((index) => datas[index]!),
    )
  }

  /** RFC 6672 §3.2: the DNAME, and the CNAME synthesised from it for this name. */
  #substitute(owner: Uint8Array, place: Place): Uint8Array | undefined {
    const { result } = this
    const cut = this.#scan.offsets[place.label]!
    const dname = this.#take(owner.subarray(cut), place.shard!, place.node, TYPE.DNAME)
    if (dname === undefined) {
      result.isNegative = true
      return undefined
    }
    result.answers.push(dname)
    const target = findTarget(TYPE.DNAME, datasOf(dname.set)[0]!)!
    if (cut + target.length > MAX_NAME) {
      result.rcode = RCODE.YXDOMAIN
      return undefined
    }
    const data = Buffer.concat([owner.subarray(0, cut), target])
    result.answers.push({ owner, set: packSet(TYPE.CNAME, ttlOf(dname.set.body), [data]) })
    const next = this.#follow(data)
    return this.#type === TYPE.CNAME || this.#type === TYPE.ANY ? undefined : next
  }

  #refer(cut: Uint8Array, place: Place): void {
    const { result } = this
    result.isAuthoritative = result.answers.length > 0
    const servers = this.#take(cut, place.shard!, place.node, TYPE.NS)
    if (servers === undefined) return
    result.authorities.push(servers)
    for (const data of datasOf(servers.set)) {
      const target = findTarget(TYPE.NS, data)!
      const name = lowerWire(target)
      if (!isInZone(name, this.#zone.originWire)) continue
      for (const type of [TYPE.A, TYPE.AAAA]) {
        const set = this.#zone.findPacked(name, type)
        if (set !== undefined && set.records > 0) result.glue.push({ owner: target, set })
      }
    }
  }
}

/** Both in lower case. */
function isInZone(name: Uint8Array, origin: Uint8Array): boolean {
  let at = 0
  while (name.length - at > origin.length) at += name[at]! + 1
  if (name.length - at !== origin.length) return false
  for (let i = 0; i < origin.length; i++) if (name[at + i] !== origin[i]) return false
  return true
}

/**
 * Resolves `question` (wire form, case as received) in the zone that contains it. `regions` is called when a policy needs
 * those of the client. Throws what a dynamic RRset throws.
 */
export function resolve(
  zone: Zone,
  question: Uint8Array,
  type: number,
  source: QuerySource,
  regions: () => readonly string[] | undefined = () => undefined,
): Resolution {
  return new Resolver(zone, type, source, regions).resolve(question)
}
