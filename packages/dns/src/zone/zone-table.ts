/**
 * A zone as an immutable table, from which the server answers. `with(changes)` returns a new zone that shares all shards
 * without changes, so that one change costs the same in a zone of a hundred names and of a million.
 *
 * A directory maps the leading bits of a name's hash to a shard (extendible hashing): a shard above its capacity splits in
 * two, and the directory doubles when a split needs it; the table is never rebuilt as a whole. Empty non-terminals are nodes
 * too (RFC 4592 §2.2.2); a node is removed when it has neither RRsets nor children.
 */
import { TYPE, typeCode, typeName } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { compareNames, type Fqdn, lowerWire, nameToWire, wireToFqdn } from '../wire/name.ts'
import { hashName } from './name-hash.ts'
import { rdataFromText } from '../wire/rdata/grammar.ts'
import { canonicalText, type RRset } from '../wire/record.ts'
import { createSoa, type Soa } from './soa.ts'
import { buildZone } from './zone-build.ts'
import { ZoneEdit } from './zone-edit.ts'
import { RecordLog } from './zone-log.ts'
import type { ZoneParts } from './zone-parts.ts'
import { datasOf, type DynamicAnswer, packDynamic, packSet, type PackedSet, type Shard, ttlOf } from './zone-shard.ts'

/** An RRset whose values are computed for each query. */
export interface DynamicSet {
  readonly name: Fqdn
  readonly type: string
  readonly ttl: number
  readonly answer: DynamicAnswer
}

export type ZoneChange =
  | { readonly kind: 'put'; readonly set: RRset | DynamicSet }
  | { readonly kind: 'delete'; readonly name: Fqdn; readonly type: string }

export class Zone implements ZoneParts {
  readonly origin: Fqdn
  readonly originWire: Uint8Array
  readonly directory: readonly Shard[]
  readonly shift: number
  readonly names: number
  readonly rrsets: number
  readonly cuts: number
  readonly wildcards: number
  readonly soa: Soa

  constructor(parts: ZoneParts) {
    this.origin = parts.origin
    this.originWire = parts.originWire
    this.directory = parts.directory
    this.shift = parts.shift
    this.names = parts.names
    this.rrsets = parts.rrsets
    this.cuts = parts.cuts
    this.wildcards = parts.wildcards
    const soa = this.findPacked(this.originWire, TYPE.SOA)
    if (soa === undefined || soa.records !== 1) {
      throw new DnsError('BAD_ZONE', `zone ${this.origin} needs exactly one SOA record at its apex`)
    }
    this.soa = createSoa(this.originWire, ttlOf(soa.body), datasOf(soa)[0]!)
  }

  get serial(): number {
    return this.soa.serial
  }

  shardOf(hash: number): Shard {
    return this.directory[hash >>> this.shift]!
  }

  /** `name` in lower-case wire form. */
  findPacked(name: Uint8Array, type: number): PackedSet | undefined {
    const hash = hashName(name)
    const shard = this.shardOf(hash)
    const node = shard.find(hash, name, 0, name.length)
    const set = node === -1 ? -1 : shard.findSet(node, type)
    return set === -1 ? undefined : shard.unpack(set)
  }

  hasName(name: Fqdn): boolean {
    const wire = nameToWire(name)
    const hash = hashName(wire)
    return this.shardOf(hash).find(hash, wire, 0, wire.length) !== -1
  }

  find(name: Fqdn, type: string): RRset | undefined {
    const set = this.findPacked(nameToWire(name), typeCode(type))
    return set === undefined || set.records === 0 ? undefined : toRRset(name, set)
  }

  /** Every static RRset, the SOA included, in no particular order. */
  *sets(): Generator<RRset> {
    for (const { name, set } of this.packedSets()) if (set.records > 0) yield toRRset(wireToFqdn(name), set)
  }

  *packedSets(): Generator<{ name: Uint8Array; set: PackedSet }> {
    for (const shard of this.shards()) {
      const offsets: number[] = []
      shard.eachNode((node) => offsets.push(node))
      for (const node of offsets) {
        const { name, sets } = shard.unpackNode(node)
        for (const set of sets.values()) yield { name, set }
      }
    }
  }

  *shards(): Generator<Shard> {
    let last: Shard | undefined
    for (const shard of this.directory) {
      if (shard !== last) yield shard
      last = shard
    }
  }

  /**
   * The zone after `changes`, applied in order. The serial increases by one unless a change sets another. Returns `this` when
   * nothing would differ. Throws DnsError for a name outside the zone, a bad value, CNAME beside other data.
   * `serial` is that of the new version when something changed. @default the next one
   */
  with(changes: readonly ZoneChange[], serial?: number): Zone {
    const edit = new ZoneEdit(this)
    for (const change of changes) {
      switch (change.kind) {
        case 'delete':
          edit.remove(lowerWire(nameToWire(change.name)), typeCode(change.type))
          break
        case 'put':
          edit.put(lowerWire(nameToWire(change.set.name)), packRecords(change.set))
      }
    }
    const parts = edit.finish(serial)
    return parts === this ? this : new Zone(parts)
  }
}

function packRecords(set: RRset | DynamicSet): PackedSet {
  const type = typeCode(set.type)
  if ('answer' in set) return packDynamic(type, { ttl: set.ttl, answer: set.answer })
  return packSet(
    type,
    set.ttl,
    set.values.map((value) => rdataFromText(type, value)),
  )
}

function toRRset(name: Fqdn, set: PackedSet): RRset {
  const values = datasOf(set).map((data) => canonicalText(set.type, data))
  return { name, type: typeName(set.type), ttl: ttlOf(set.body), values }
}

/** A zone from RRsets; one must be the SOA of `origin`. Throws DnsError BAD_ZONE and the errors of bad values. */
export function createZone(origin: Fqdn, sets: Iterable<RRset | DynamicSet>): Zone {
  const log = new RecordLog(lowerWire(nameToWire(origin)))
  const dynamics: DynamicSet[] = []
  for (const set of sets) {
    if ('answer' in set) {
      dynamics.push(set)
      continue
    }
    const type = typeCode(set.type)
    const name = nameToWire(set.name)
    for (const value of set.values) log.add(name, type, set.ttl, rdataFromText(type, value), 0)
  }
  const parts = buildZone(log)
  if (parts instanceof DnsError) throw parts
  const zone = new Zone(parts)
  if (dynamics.length === 0) return zone
  const edit = new ZoneEdit(zone)
  for (const set of dynamics) edit.put(lowerWire(nameToWire(set.name)), packRecords(set))
  return new Zone(edit.finishKeepingSerial())
}

/** RRsets in canonical order, the SOA first, as in a zone file. */
export function sortSets(origin: Fqdn, sets: Iterable<RRset>): RRset[] {
  const rank = (set: RRset) => (set.name === origin && set.type === 'SOA' ? 0 : 1)
  return [...sets].sort(
    (a, b) => rank(a) - rank(b) || compareNames(a.name, b.name) || (a.type < b.type ? -1 : a.type > b.type ? 1 : 0),
  )
}
