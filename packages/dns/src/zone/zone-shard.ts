/**
 * A shard: up to a few hundred names of a zone, packed into one buffer with a hash table over it. A zone is a directory of
 * shards (zone-table.ts); a change copies the shards it touches and shares the rest.
 *
 * Node layout (little endian): hash u32, children u32, length u32, sets u16, flags u8, name length u8, name (lower case), sets.
 * Set layout: type u16, records u16, hit slot u16, record length u16 (0 when they differ), body length u32, body.
 * The body is the answer section as it goes out: each record starts with a pointer to the question's name (0xc00c) and
 * has its data uncompressed, so an answer is one copy. `records` 0 marks a dynamic RRset: its body is a u16 index.
 */
import { TYPE } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { createChooser, type PolicyChooser, POLICY_TYPE } from './answer-policy.ts'
import type { QueryContext } from './query-context.ts'
import type { RecordLog } from './zone-log.ts'

/** A dynamic RRset: computes presentation values for a query; none means NODATA. */
export type DynamicAnswer = (query: QueryContext) => readonly string[]

export interface DynamicRecords {
  readonly ttl: number
  readonly answer: DynamicAnswer
}

export interface PackedSet {
  readonly type: number
  /** 0 for a dynamic RRset. */
  readonly records: number
  /** Octets of each record in `body` when all are equal, else 0. */
  readonly recordLength: number
  readonly body: Uint8Array
  readonly dynamic?: DynamicRecords
}

export interface ZoneNode {
  /** Lower-case wire name. */
  readonly name: Uint8Array
  readonly hash: number
  /** Number of existing names directly below. */
  children: number
  readonly sets: Map<number, PackedSet>
}

export const NODE_FLAG = { NS: 1, CNAME: 2, DNAME: 4, POLICY: 8 } as const

/** Octets before a node's name, and before a set's body. */
export const NODE_HEAD = 16
export const SET_HEAD = 12
/** Octets before the data of a record in a body: pointer, type, class, TTL, length. */
export const RECORD_HEAD = 12

/** An RRset must fit one TCP message with header, question and OPT. */
const MAX_BODY = 65_000

export const u16 = (bytes: Uint8Array, at: number): number => bytes[at]! | (bytes[at + 1]! << 8)
export const u32 = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0

function putU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value
  bytes[at + 1] = value >>> 8
}

function putU32(bytes: Uint8Array, at: number, value: number): void {
  putU16(bytes, at, value)
  putU16(bytes, at + 2, value >>> 16)
}

export class Shard {
  readonly data: Uint8Array
  /** Pairs of hash and node offset + 1; open addressing. */
  readonly table: Uint32Array
  readonly names: number
  readonly sets: number
  /** Leading hash bits that all names here share (extendible hashing). */
  readonly depth: number
  readonly dynamics: readonly DynamicRecords[]
  /** Queries answered per RRset, allocated at the first one. Mutable, as `choosers`: counters are not zone data. */
  hits: Float64Array | undefined
  /** Compiled policies by offset of the set they cover, with the state of their choices; filled at the first query. */
  choosers: Map<number, PolicyChooser | undefined> | undefined

  constructor(
    data: Uint8Array,
    table: Uint32Array,
    names: number,
    sets: number,
    depth: number,
    dynamics: readonly DynamicRecords[],
  ) {
    this.data = data
    this.table = table
    this.names = names
    this.sets = sets
    this.depth = depth
    this.dynamics = dynamics
    this.hits = undefined
    this.choosers = undefined
  }

  /** Offset of the node, or -1. */
  find(hash: number, name: Uint8Array, from: number, to: number): number {
    const { data, table } = this
    const mask = table.length - 2
    for (let slot = (hash << 1) & mask; ; slot = (slot + 2) & mask) {
      const offset = table[slot + 1]!
      if (offset === 0) return -1
      if (table[slot] === hash && isName(data, offset - 1, name, from, to)) return offset - 1
    }
  }

  /** Offset of the set's head, or -1. */
  findSet(node: number, type: number): number {
    const { data } = this
    let at = node + NODE_HEAD + data[node + 15]!
    for (let left = u16(data, node + 12); left > 0; left--) {
      if (u16(data, at) === type) return at
      at += SET_HEAD + u32(data, at + 8)
    }
    return -1
  }

  /** The policy of a set, of a node with NODE_FLAG.POLICY; undefined when none covers it. */
  chooserOf(node: number, set: number): PolicyChooser | undefined {
    const choosers = (this.choosers ??= new Map<number, PolicyChooser | undefined>())
    if (choosers.has(set)) return choosers.get(set)
    const policies = this.findSet(node, POLICY_TYPE)
    const covered = this.unpack(set)
    const chooser =
      policies === -1 || policies === set
        ? undefined
        : createChooser(datasOf(this.unpack(policies)), covered.type, datasOf(covered))
    choosers.set(set, chooser)
    return chooser
  }

  count(set: number): void {
    const hits = (this.hits ??= new Float64Array(this.sets))
    hits[u16(this.data, set + 4)]!++
  }

  /** Calls `visit` with the offset of each node. */
  eachNode(visit: (node: number) => void): void {
    for (let node = 0; node < this.data.length; node += u32(this.data, node + 8)) visit(node)
  }

  eachSet(node: number, visit: (set: number, type: number) => void): void {
    const { data } = this
    let at = node + NODE_HEAD + data[node + 15]!
    for (let left = u16(data, node + 12); left > 0; left--) {
      visit(at, u16(data, at))
      at += SET_HEAD + u32(data, at + 8)
    }
  }

  nameOf(node: number): Uint8Array {
    return this.data.subarray(node + NODE_HEAD, node + NODE_HEAD + this.data[node + 15]!)
  }

  unpack(set: number): PackedSet {
    const { data } = this
    const records = u16(data, set + 2)
    const length = u32(data, set + 8)
    const body = data.subarray(set + SET_HEAD, set + SET_HEAD + length)
    const packed = { type: u16(data, set), records, recordLength: u16(data, set + 6), body }
    return records === 0 ? { ...packed, dynamic: this.dynamics[u16(body, 0)]! } : packed
  }

  unpackNode(node: number): ZoneNode {
    const sets = new Map<number, PackedSet>()
    this.eachSet(node, (set, type) => sets.set(type, this.unpack(set)))
    return { name: this.nameOf(node), hash: u32(this.data, node), children: u32(this.data, node + 4), sets }
  }
}

function isName(data: Uint8Array, node: number, name: Uint8Array, from: number, to: number): boolean {
  if (data[node + 15] !== to - from) return false
  for (let at = node + NODE_HEAD; from < to; at++, from++) if (data[at] !== name[from]) return false
  return true
}

/** The fields before the data of a record: pointer to the question, type, class IN, TTL, length; in network order. */
function putHead(bytes: Uint8Array, at: number, type: number, ttl: number, length: number): void {
  bytes[at] = 0xc0
  bytes[at + 1] = 0x0c
  bytes[at + 2] = type >>> 8
  bytes[at + 3] = type
  bytes[at + 4] = 0
  bytes[at + 5] = 1
  bytes[at + 6] = ttl >>> 24
  bytes[at + 7] = ttl >>> 16
  bytes[at + 8] = ttl >>> 8
  bytes[at + 9] = ttl
  bytes[at + 10] = length >>> 8
  bytes[at + 11] = length
}

/** Packs the records of one RRset. Throws TOO_LARGE when it fits no message. */
export function packSet(type: number, ttl: number, datas: readonly Uint8Array[]): PackedSet {
  let length = 0
  let isEqual = true
  for (const data of datas) {
    length += RECORD_HEAD + data.length
    isEqual &&= data.length === datas[0]!.length
  }
  if (length > MAX_BODY)
    throw new DnsError('TOO_LARGE', `an RRset of ${length} octets fits no message; the limit is ${MAX_BODY}`)
  const body = new Uint8Array(length)
  let at = 0
  for (const data of datas) {
    putHead(body, at, type, ttl, data.length)
    body.set(data, at + RECORD_HEAD)
    at += RECORD_HEAD + data.length
  }
  return {
    type,
    records: datas.length,
    recordLength: isEqual && datas.length > 0 ? RECORD_HEAD + datas[0]!.length : 0,
    body,
  }
}

export const packDynamic = (type: number, dynamic: DynamicRecords): PackedSet => ({
  type,
  records: 0,
  recordLength: 0,
  body: new Uint8Array(2),
  dynamic,
})

export const ttlOf = (body: Uint8Array, at = 0): number =>
  ((body[at + 6]! << 24) | (body[at + 7]! << 16) | (body[at + 8]! << 8) | body[at + 9]!) >>> 0

/** Data of each record as views into the body. */
export function datasOf(set: PackedSet): Uint8Array[] {
  const datas: Uint8Array[] = []
  for (let at = 0, i = 0; i < set.records; i++) {
    const length = (set.body[at + 10]! << 8) | set.body[at + 11]!
    datas.push(set.body.subarray(at + RECORD_HEAD, at + RECORD_HEAD + length))
    at += RECORD_HEAD + length
  }
  return datas
}

const FLAG_OF: ReadonlyMap<number, number> = new Map([
  [TYPE.NS, NODE_FLAG.NS],
  [TYPE.CNAME, NODE_FLAG.CNAME],
  [TYPE.DNAME, NODE_FLAG.DNAME],
  [POLICY_TYPE, NODE_FLAG.POLICY],
])

function flagsOf(node: ZoneNode): number {
  let flags = 0
  for (const type of node.sets.keys()) flags |= FLAG_OF.get(type) ?? 0
  return flags
}

/** Content of a shard: unpacked nodes, and nodes to copy from another shard. */
export interface ShardContent {
  readonly nodes: readonly ZoneNode[]
  readonly from?: Shard | undefined
  /** Offsets in `from`. */
  readonly kept: readonly number[]
  /** Names with a single record, directly from a log: most of a large zone. */
  readonly log?: RecordLog
  readonly single?: readonly number[]
}

function sizeOf({ nodes, from, kept, log, single = [] }: ShardContent): number {
  let size = 0
  for (const node of nodes) {
    size += NODE_HEAD + node.name.length
    for (const set of node.sets.values()) size += SET_HEAD + set.body.length
  }
  for (const offset of kept) size += u32(from!.data, offset + 8)
  for (const index of single) size += NODE_HEAD + SET_HEAD + RECORD_HEAD + log!.sizeOf(index)
  return size
}

class ShardPacker {
  readonly data: Uint8Array
  readonly table: Uint32Array
  readonly dynamics: DynamicRecords[] = []
  at = 0
  sets = 0

  constructor(size: number, names: number) {
    this.data = new Uint8Array(size)
    this.table = new Uint32Array(2 * tableSize(names))
  }

  #index(hash: number): void {
    const { table } = this
    const mask = table.length - 2
    let place = (hash << 1) & mask
    while (table[place + 1] !== 0) place = (place + 2) & mask
    table[place] = hash
    table[place + 1] = this.at + 1
  }

  #dynamic(set: number, dynamic: DynamicRecords): void {
    putU16(this.data, set + SET_HEAD, this.dynamics.push(dynamic) - 1)
  }

  add(node: ZoneNode): void {
    const { data, at: start } = this
    this.#index(node.hash)
    putU32(data, start, node.hash)
    putU32(data, start + 4, node.children)
    putU16(data, start + 12, node.sets.size)
    data[start + 14] = flagsOf(node)
    data[start + 15] = node.name.length
    data.set(node.name, start + NODE_HEAD)
    let at = start + NODE_HEAD + node.name.length
    for (const set of node.sets.values()) {
      putU16(data, at, set.type)
      putU16(data, at + 2, set.records)
      putU16(data, at + 4, this.sets++)
      putU16(data, at + 6, set.recordLength)
      putU32(data, at + 8, set.body.length)
      data.set(set.body, at + SET_HEAD)
      if (set.dynamic !== undefined) this.#dynamic(at, set.dynamic)
      at += SET_HEAD + set.body.length
    }
    putU32(data, start + 8, at - start)
    this.at = at
  }

  /** A name with one record. */
  addSingle(log: RecordLog, index: number): void {
    const { data, at: start } = this
    const { bytes } = log
    const hash = log.hashes[index]!
    const from = log.offsets[index]!
    const nameLength = bytes[from]!
    const record = from + 1 + nameLength
    const type = u16(bytes, record)
    const ttl = u32(bytes, record + 2)
    const length = u16(bytes, record + 10)
    this.#index(hash)
    putU32(data, start, hash)
    putU16(data, start + 12, 1)
    data[start + 14] = FLAG_OF.get(type) ?? 0
    data[start + 15] = nameLength
    let at = start + NODE_HEAD
    for (let i = 1; i <= nameLength; i++) data[at++] = bytes[from + i]!
    putU16(data, at, type)
    putU16(data, at + 2, 1)
    putU16(data, at + 4, this.sets++)
    putU16(data, at + 6, RECORD_HEAD + length)
    putU32(data, at + 8, RECORD_HEAD + length)
    at += SET_HEAD
    putHead(data, at, type, ttl, length)
    at += RECORD_HEAD
    for (let i = record + 12; i < record + 12 + length; i++) data[at++] = bytes[i]!
    putU32(data, start + 8, at - start)
    this.at = at
  }

  /** Copies the octets; only hit slots and indexes of dynamic RRsets change. */
  copy(from: Shard, offset: number): void {
    const { data, at: start } = this
    const length = u32(from.data, offset + 8)
    this.#index(u32(from.data, offset))
    data.set(from.data.subarray(offset, offset + length), start)
    from.eachSet(offset, (set) => {
      const here = start + set - offset
      putU16(data, here + 4, this.sets++)
      if (u16(data, here + 2) === 0) this.#dynamic(here, from.dynamics[u16(data, here + SET_HEAD)]!)
    })
    this.at = start + length
  }
}

/** Packs nodes that share their first `depth` hash bits. */
export function packShard(content: ShardContent, depth: number): Shard {
  const names = content.nodes.length + content.kept.length + (content.single?.length ?? 0)
  const packer = new ShardPacker(sizeOf(content), names)
  for (const node of content.nodes) packer.add(node)
  for (const offset of content.kept) packer.copy(content.from!, offset)
  for (const index of content.single ?? []) packer.addSingle(content.log!, index)
  return new Shard(packer.data, packer.table, names, packer.sets, depth, packer.dynamics)
}

/** Slots for a load of at most two thirds, which keeps the search for an absent name short. */
function tableSize(names: number): number {
  let size = 4
  while (size * 2 < names * 3) size *= 2
  return size
}

/** Adds `by` to a node's child count in place: only while the zone is being built and the shard is not shared. */
export function addChildren(shard: Shard, node: number, by: number): void {
  putU32(shard.data, node + 4, u32(shard.data, node + 4) + by)
}
