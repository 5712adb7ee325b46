/**
 * Changes to a zone under construction: a small overlay of unpacked nodes over an immutable zone. `finish` packs only the
 * shards that hold touched names and shares all others with the zone it started from.
 */
import { TYPE, typeName } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { wireToFqdn } from '../wire/name.ts'
import { hashName } from './name-hash.ts'
import { nextSerial, serialOf, withSerial } from './soa.ts'
import { findConflict, isWildcardWire, type ZoneCounts, type ZoneParts } from './zone-parts.ts'
import {
  datasOf,
  packSet,
  packShard,
  type PackedSet,
  type Shard,
  type ShardContent,
  ttlOf,
  u32,
  type ZoneNode,
} from './zone-shard.ts'

/** Names a shard may hold before it splits. */
const CAPACITY = 256
/** Names that still share this many hash bits stay together: only equal hashes get that far. */
const MAX_DEPTH = 24

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const keyOf = (name: Uint8Array): string => Buffer.from(name.buffer, name.byteOffset, name.length).toString('latin1')

export class ZoneEdit {
  readonly #zone: ZoneParts
  /** Changed names; a node without RRsets and children does not exist. */
  readonly #nodes = new Map<string, ZoneNode>()
  #isDirty = false

  constructor(zone: ZoneParts) {
    this.#zone = zone
  }

  get isDirty(): boolean {
    return this.#isDirty
  }

  /** `name` in lower-case wire form. Undefined when the name does not exist; an empty non-terminal exists. */
  findNode(name: Uint8Array): ZoneNode | undefined {
    const touched = this.#nodes.get(keyOf(name))
    if (touched !== undefined) return this.#exists(touched) ? touched : undefined
    const hash = hashName(name)
    const shard = this.#zone.directory[hash >>> this.#zone.shift]!
    const node = shard.find(hash, name, 0, name.length)
    return node === -1 ? undefined : shard.unpackNode(node)
  }

  #exists(node: ZoneNode): boolean {
    return node.sets.size > 0 || node.children > 0 || this.#isApex(node.name)
  }

  #isApex(name: Uint8Array): boolean {
    return name.length === this.#zone.originWire.length
  }

  /** The node to change; missing ancestors are created. */
  #touch(name: Uint8Array): ZoneNode {
    const key = keyOf(name)
    const known = this.#nodes.get(key)
    if (known !== undefined && this.#exists(known)) return known
    const found = this.findNode(name)
    const node = found ?? known ?? { name: name.slice(), hash: hashName(name), children: 0, sets: new Map() }
    this.#nodes.set(key, node)
    if (found === undefined) this.#touch(name.subarray(name[0]! + 1)).children++
    return node
  }

  #assertInside(name: Uint8Array): void {
    const { originWire, origin } = this.#zone
    let at = 0
    while (name.length - at > originWire.length) at += name[at]! + 1
    if (keyOf(name.subarray(at)) !== keyOf(originWire))
      throw new DnsError('BAD_ZONE', `${wireToFqdn(name)} is not in zone ${origin}`)
  }

  /** Replaces the RRset of this type. Throws BAD_ZONE when it conflicts with others of the name. */
  put(name: Uint8Array, set: PackedSet): void {
    this.#assertInside(name)
    const before = this.findNode(name)?.sets.get(set.type)
    if (set.records === 0 && set.dynamic === undefined) {
      throw new DnsError(
        'BAD_ZONE',
        `${wireToFqdn(name)} ${typeName(set.type)} has no values; delete the RRset instead`,
      )
    }
    if (before !== undefined && isSame(before, set)) return
    const node = this.#touch(name)
    node.sets.set(set.type, set)
    const conflict = findConflict(node.sets, this.#isApex(name))
    if (conflict !== undefined) throw new DnsError('BAD_ZONE', `${wireToFqdn(name)} ${conflict}`)
    this.#isDirty = true
  }

  remove(name: Uint8Array, type: number): void {
    const node = this.findNode(name)
    if (node === undefined || !node.sets.has(type)) return
    if (type === TYPE.SOA) throw new DnsError('BAD_ZONE', `the SOA of ${wireToFqdn(name)} cannot be deleted`)
    this.#touch(name).sets.delete(type)
    this.#isDirty = true
    this.#prune(name)
  }

  /** Removes a name without RRsets and children, and ancestors that become empty non-terminals without children. */
  #prune(name: Uint8Array): void {
    for (let node = this.#nodes.get(keyOf(name))!; !this.#exists(node);) {
      const parent = this.#touch(node.name.subarray(node.name[0]! + 1))
      parent.children--
      node = parent
    }
  }

  /** Creates an empty non-terminal with the number of children that the builder counted. */
  addEmpty(name: Uint8Array, children: number): void {
    this.#touch(name).children += children
  }

  /** The new zone, or the old one when nothing changed. Its serial is the next one, or `serial`, unless the changes set it. */
  finish(serial?: number): ZoneParts {
    if (!this.#isDirty) return this.#zone
    const { originWire } = this.#zone
    const soa = this.findNode(originWire)!.sets.get(TYPE.SOA)!
    const data = datasOf(soa)[0]!
    if (serialOf(data) === this.#serialBefore()) {
      this.put(originWire, packSet(TYPE.SOA, ttlOf(soa.body), [withSerial(data, serial ?? nextSerial(serialOf(data)))]))
    }
    return this.finishKeepingSerial()
  }

  #serialBefore(): number {
    const { originWire, directory, shift } = this.#zone
    const hash = hashName(originWire)
    const shard = directory[hash >>> shift]!
    const soa = shard.unpack(shard.findSet(shard.find(hash, originWire, 0, originWire.length), TYPE.SOA))
    return serialOf(datasOf(soa)[0]!)
  }

  finishKeepingSerial(): ZoneParts {
    const zone = this.#zone
    const touched = new Map<Shard, ZoneNode[]>()
    for (const node of this.#nodes.values()) {
      const shard = zone.directory[node.hash >>> zone.shift]!
      const nodes = touched.get(shard)
      if (nodes === undefined) touched.set(shard, [node])
      else nodes.push(node)
    }
    const counts = { names: zone.names, rrsets: zone.rrsets, cuts: zone.cuts, wildcards: zone.wildcards }
    const directory = new Directory(zone.directory)
    for (const [shard, nodes] of touched)
      directory.replace(nodes[0]!.hash, shard.depth, this.#merge(shard, nodes, counts))
    const { shards } = directory
    return {
      origin: zone.origin,
      originWire: zone.originWire,
      directory: shards,
      shift: 32 - Math.log2(shards.length),
      ...counts,
    }
  }

  /** The content of the shard after the changes: changed nodes that exist, and the offsets of the others. */
  #merge(shard: Shard, touched: readonly ZoneNode[], counts: Mutable<ZoneCounts>): ShardContent {
    const gone = new Set<number>()
    const nodes: ZoneNode[] = []
    for (const node of touched) {
      const before = shard.find(node.hash, node.name, 0, node.name.length)
      if (before !== -1) {
        gone.add(before)
        this.#count(shard.unpackNode(before), counts, -1)
      }
      if (!this.#exists(node)) continue
      this.#count(node, counts, 1)
      nodes.push(node)
    }
    const kept: number[] = []
    shard.eachNode((offset) => {
      if (!gone.has(offset)) kept.push(offset)
    })
    return { nodes, from: shard, kept }
  }

  #count(node: ZoneNode, counts: Mutable<ZoneCounts>, by: 1 | -1): void {
    counts.names += by
    counts.rrsets += by * node.sets.size
    counts.cuts += by * this.#cuts(node)
    if (isWildcardWire(node.name)) counts.wildcards += by
  }

  #cuts(node: ZoneNode): number {
    return node.sets.has(TYPE.DNAME) || (node.sets.has(TYPE.NS) && !this.#isApex(node.name)) ? 1 : 0
  }
}

function isSame(a: PackedSet, b: PackedSet): boolean {
  if (a.dynamic !== undefined || b.dynamic !== undefined) {
    return a.dynamic?.answer === b.dynamic?.answer && a.dynamic?.ttl === b.dynamic?.ttl
  }
  if (a.records !== b.records || ttlOf(a.body) !== ttlOf(b.body)) return false
  const keys = new Set(datasOf(a).map(keyOf))
  return datasOf(b).every((data) => keys.has(keyOf(data)))
}

/** A directory being changed: the entries of one shard are the indexes that share its leading hash bits. */
class Directory {
  shards: Shard[]

  constructor(shards: readonly Shard[]) {
    this.shards = shards.slice()
  }

  /** Replaces the shard of `depth` and `hash` by the content, split as often as the capacity requires. */
  replace(hash: number, depth: number, content: ShardContent): void {
    if (content.nodes.length + content.kept.length > CAPACITY && depth < MAX_DEPTH) {
      const bit = 1 << (31 - depth)
      this.replace(
        hash & ~bit,
        depth + 1,
        half(content, (nodeHash) => (nodeHash & bit) === 0),
      )
      this.replace(
        hash | bit,
        depth + 1,
        half(content, (nodeHash) => (nodeHash & bit) !== 0),
      )
      return
    }
    while (1 << depth > this.shards.length) this.shards = this.shards.flatMap((shard) => [shard, shard])
    const width = this.shards.length >>> depth
    const first = (hash >>> (32 - depth)) * width
    this.shards.fill(packShard(content, depth), first, first + width)
  }
}

const half = ({ nodes, from, kept }: ShardContent, isHere: (hash: number) => boolean): ShardContent => ({
  nodes: nodes.filter((node) => isHere(node.hash)),
  from,
  kept: kept.filter((offset) => isHere(u32(from!.data, offset))),
})
