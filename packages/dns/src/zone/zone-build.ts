/**
 * Builds a zone from a log of records: distributes them over shards by hash, groups them into names and RRsets, then counts
 * children and adds the empty non-terminals. Linear in the number of records; the log is the only large temporary.
 */
import { TYPE } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { wireToFqdn } from '../wire/name.ts'
import { hashName } from './name-hash.ts'
import { canonicalRdata } from '../wire/rdata/grammar.ts'
import { ZoneEdit } from './zone-edit.ts'
import type { LoggedRecord, RecordLog } from './zone-log.ts'
import { findConflict, isWildcardWire, type ZoneCounts, type ZoneParts } from './zone-parts.ts'
import {
  addChildren,
  NODE_FLAG,
  NODE_HEAD,
  packSet,
  packShard,
  type PackedSet,
  type Shard,
  type ZoneNode,
} from './zone-shard.ts'

/** Where a conflict was found; `line` is 0 for records that came from no file. */
export class ZoneConflict extends DnsError {
  readonly line: number
  constructor(line: number, message: string) {
    super('BAD_ZONE', message)
    this.line = line
  }
}

/** Names per shard that a fresh zone aims at: half of what a shard may hold, so that the first changes do not split it. */
const TARGET = 128

function directoryDepth(records: number): number {
  let depth = 1
  while (records >> depth > TARGET && depth < 24) depth++
  return depth
}

/** Indexes of the records of each bucket, by counting sort. */
function distribute(log: RecordLog, depth: number): { order: Uint32Array; ends: Uint32Array } {
  const shift = 32 - depth
  const ends = new Uint32Array(1 << depth)
  for (let i = 0; i < log.length; i++) ends[log.hashes[i]! >>> shift]!++
  for (let bucket = 1; bucket < ends.length; bucket++) ends[bucket]! += ends[bucket - 1]!
  const order = new Uint32Array(log.length)
  const next = ends.slice()
  for (let i = log.length - 1; i >= 0; i--) order[--next[log.hashes[i]! >>> shift]!] = i
  return { order, ends }
}

function packGroup(records: readonly LoggedRecord[]): PackedSet {
  const { type, ttl } = records[0]!
  if (records.length === 1) return packSet(type, ttl, [records[0]!.data])
  const seen = new Map<string, Uint8Array>()
  for (const { data } of records) {
    const key = Buffer.from(canonicalRdata(type, data)).toString('latin1')
    if (!seen.has(key)) seen.set(key, data)
  }
  return packSet(type, ttl, [...seen.values()])
}

/** The node of a run of records with one name. */
function buildNode(log: RecordLog, order: readonly number[], from: number, to: number): ZoneNode {
  const name = log.nameOf(order[from]!)
  const sets = new Map<number, PackedSet>()
  let group: LoggedRecord[] = []
  let last = 0
  for (let i = from; i <= to; i++) {
    const record = i < to ? log.recordOf(order[i]!) : undefined
    if (record !== undefined) last = Math.max(last, record.line)
    if (group.length > 0 && record?.type !== group[0]!.type) {
      sets.set(group[0]!.type, packGroup(group))
      group = []
    }
    if (record !== undefined) group.push(record)
  }
  const conflict = findConflict(sets, name.length === log.origin.length)
  if (conflict !== undefined) throw new ZoneConflict(last, `${wireToFqdn(name)} ${conflict}`)
  return { name, hash: log.hashes[order[from]!]!, children: 0, sets }
}

function buildShard(log: RecordLog, indexes: Uint32Array, depth: number): Shard {
  const order = Array.from(indexes).sort((a, b) => log.compare(a, b))
  const nodes: ZoneNode[] = []
  const single: number[] = []
  for (let from = 0; from < order.length;) {
    let to = from + 1
    while (to < order.length && isSameName(log, order[from]!, order[to]!)) to++
    // A single record conflicts with nothing, unless it is a SOA in the wrong place.
    if (to === from + 1 && log.typeOf(order[from]!) !== TYPE.SOA) single.push(order[from]!)
    else nodes.push(buildNode(log, order, from, to))
    from = to
  }
  return packShard({ nodes, kept: [], log, single }, depth)
}

const isSameName = (log: RecordLog, a: number, b: number): boolean =>
  log.hashes[a] === log.hashes[b] && log.compareNames(a, b) === 0

function hasSoa(directory: readonly Shard[], depth: number, origin: Uint8Array): boolean {
  const hash = hashName(origin)
  const shard = directory[hash >>> (32 - depth)]!
  const apex = shard.find(hash, origin, 0, origin.length)
  return apex !== -1 && shard.findSet(apex, TYPE.SOA) !== -1
}

interface Missing {
  readonly name: Uint8Array
  children: number
}

/** Counts children of names that exist; returns the parents that do not: empty non-terminals. */
function countChildren(directory: readonly Shard[], depth: number, origin: Uint8Array): Missing[] {
  const missing = new Map<string, Missing>()
  const shift = 32 - depth
  // In a flat zone nearly every parent is the apex: look up again only when the parent changes.
  let lastHash = -1
  let lastShard: Shard | undefined
  let lastNode = -1
  for (const shard of directory) {
    const { data } = shard
    shard.eachNode((node) => {
      const start = node + NODE_HEAD
      const end = start + data[node + 15]!
      if (end - start === origin.length) return
      const parent = start + data[start]! + 1
      const hash = hashName(data, parent, end)
      if (hash !== lastHash || lastShard === undefined || lastShard.find(hash, data, parent, end) !== lastNode) {
        lastShard = directory[hash >>> shift]!
        lastNode = lastShard.find(hash, data, parent, end)
        lastHash = hash
      }
      if (lastNode !== -1) {
        addChildren(lastShard, lastNode, 1)
        return
      }
      const name = data.slice(parent, end)
      const key = Buffer.from(name).toString('latin1')
      const entry = missing.get(key) ?? { name, children: 0 }
      entry.children++
      missing.set(key, entry)
    })
  }
  return [...missing.values()]
}

function countParts(directory: readonly Shard[], originLength: number): ZoneCounts {
  let names = 0
  let rrsets = 0
  let cuts = 0
  let wildcards = 0
  for (const shard of directory) {
    names += shard.names
    rrsets += shard.sets
    shard.eachNode((node) => {
      const flags = shard.data[node + 14]!
      const isApex = shard.data[node + 15] === originLength
      if (isWildcardWire(shard.data, node + NODE_HEAD)) wildcards++
      if ((flags & NODE_FLAG.DNAME) !== 0 || (!isApex && (flags & NODE_FLAG.NS) !== 0)) cuts++
    })
  }
  return { names, rrsets, cuts, wildcards }
}

/** The parts of the zone, or why there is none: a ZoneConflict with its line where one record causes it. */
export function buildZone(log: RecordLog): ZoneParts | DnsError {
  const depth = directoryDepth(log.length)
  const { order, ends } = distribute(log, depth)
  try {
    const directory = Array.from(ends, (end, bucket) =>
      buildShard(log, order.subarray(bucket === 0 ? 0 : ends[bucket - 1]!, end), depth),
    )
    if (!hasSoa(directory, depth, log.origin))
      return new DnsError('BAD_ZONE', `zone ${wireToFqdn(log.origin)} has no SOA record`)
    const missing = countChildren(directory, depth, log.origin)
    const counts = countParts(directory, log.origin.length)
    const parts = { origin: wireToFqdn(log.origin), originWire: log.origin, directory, shift: 32 - depth, ...counts }
    if (missing.length === 0) return parts
    const edit = new ZoneEdit(parts)
    // Longest first: a missing parent of a missing name is then found, or made, by the one below it.
    for (const { name, children } of missing.sort((a, b) => b.name.length - a.name.length))
      edit.addEmpty(name, children)
    return edit.finishKeepingSerial()
  } catch (error) {
    if (error instanceof DnsError) return error
    throw error
  }
}
