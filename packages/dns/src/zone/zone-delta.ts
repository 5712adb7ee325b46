/**
 * The difference between two versions of a zone, record by record: what the journal stores (store/) and what IXFR sends
 * (RFC 1995 §4). `applyDelta(a, diffZones(a, b))` equals `b`.
 *
 * Versions of a zone share the shards without changes, so the cost of a difference follows the shards that changed and not
 * the size of the zone. RRsets that are computed by a function have no records and are left out.
 */
import { TYPE, typeName } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { wireToFqdn } from '../wire/name.ts'
import { serialOf } from './soa.ts'
import { ZoneEdit } from './zone-edit.ts'
import { datasOf, packSet, type PackedSet, type Shard, ttlOf } from './zone-shard.ts'
import { Zone } from './zone-table.ts'

export interface ZoneRecord {
  /** Lower-case wire name. */
  readonly name: Uint8Array
  readonly type: number
  readonly ttl: number
  readonly data: Uint8Array
}

export interface ZoneDelta {
  /** The SOA records of the two versions. */
  readonly before: ZoneRecord
  readonly after: ZoneRecord
  /** Without SOA. */
  readonly removed: readonly ZoneRecord[]
  readonly added: readonly ZoneRecord[]
}

export const fromSerial = (delta: ZoneDelta): number => serialOf(delta.before.data)
export const toSerial = (delta: ZoneDelta): number => serialOf(delta.after.data)

const keyOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')

const soaRecord = (zone: Zone): ZoneRecord => ({
  name: zone.originWire,
  type: TYPE.SOA,
  ttl: zone.soa.ttl,
  data: zone.soa.data,
})

interface Sides {
  readonly name: Uint8Array
  before: ReadonlyMap<number, PackedSet>
  after: ReadonlyMap<number, PackedSet>
}

const NO_SETS: ReadonlyMap<number, PackedSet> = new Map()

/** Shards of `zone` that `other` does not have. */
function* ownShards(zone: Zone, other: Zone): Generator<Shard> {
  const shared = zone.directory.length === other.directory.length ? undefined : new Set<Shard>(other.directory)
  let last: Shard | undefined
  for (const [i, shard] of zone.directory.entries()) {
    if (shard === last) continue
    last = shard
    if (shared === undefined ? shard !== other.directory[i] : !shared.has(shard)) yield shard
  }
}

/** Both must have the same origin. */
export function diffZones(before: Zone, after: Zone): ZoneDelta {
  const names = new Map<string, Sides>()
  const collect = (zone: Zone, other: Zone, side: 'before' | 'after') => {
    for (const shard of ownShards(zone, other)) {
      shard.eachNode((node) => {
        const { name, sets } = shard.unpackNode(node)
        const key = keyOf(name)
        const sides = names.get(key) ?? { name: name.slice(), before: NO_SETS, after: NO_SETS }
        sides[side] = sets
        names.set(key, sides)
      })
    }
  }
  collect(before, after, 'before')
  collect(after, before, 'after')
  const removed: ZoneRecord[] = []
  const added: ZoneRecord[] = []
  for (const { name, before: old, after: now } of names.values()) {
    for (const type of new Set([...old.keys(), ...now.keys()])) {
      if (type === TYPE.SOA) continue
      const [left, right] = [old.get(type), now.get(type)]
      if (left !== undefined && right !== undefined && Buffer.compare(left.body, right.body) === 0) continue
      removed.push(...recordsWithout(name, left, right))
      added.push(...recordsWithout(name, right, left))
    }
  }
  return { before: soaRecord(before), after: soaRecord(after), removed, added }
}

/** The records of `set` that `other` does not have; with another TTL all of them. */
function recordsWithout(name: Uint8Array, set: PackedSet | undefined, other: PackedSet | undefined): ZoneRecord[] {
  if (set === undefined || set.records === 0) return []
  const ttl = ttlOf(set.body)
  const isSameTtl = other !== undefined && other.records > 0 && ttlOf(other.body) === ttl
  const known = new Set(isSameTtl ? datasOf(other).map(keyOf) : [])
  return datasOf(set)
    .filter((data) => !known.has(keyOf(data)))
    .map((data) => ({ name, type: set.type, ttl, data: data.slice() }))
}

interface Group {
  readonly name: Uint8Array
  readonly type: number
  readonly removed: Set<string>
  readonly added: ZoneRecord[]
}

function groupRecords(zone: Zone, delta: ZoneDelta): Group[] {
  const groups = new Map<string, Group>()
  const groupOf = ({ name, type }: ZoneRecord): Group => {
    const key = `${type} ${keyOf(name)}`
    const group = groups.get(key) ?? { name, type, removed: new Set<string>(), added: [] }
    groups.set(key, group)
    return group
  }
  for (const record of delta.removed) {
    const set = zone.findPacked(record.name, record.type)
    const key = keyOf(record.data)
    if (set === undefined || !datasOf(set).some((data) => keyOf(data) === key)) {
      throw new DnsError(
        'BAD_ZONE',
        `the change from serial ${fromSerial(delta)} removes ${wireToFqdn(record.name)} ${typeName(record.type)}, which zone ${zone.origin} does not have`,
      )
    }
    groupOf(record).removed.add(key)
  }
  for (const record of delta.added) groupOf(record).added.push(record)
  return [...groups.values()]
}

/** Throws DnsError BAD_ZONE when the delta does not start at this version, or does not fit it. */
export function applyDelta(zone: Zone, delta: ZoneDelta): Zone {
  if (fromSerial(delta) !== zone.serial) {
    throw new DnsError(
      'BAD_ZONE',
      `a change from serial ${fromSerial(delta)} does not follow serial ${zone.serial} of zone ${zone.origin}`,
    )
  }
  const edit = new ZoneEdit(zone)
  const puts: { name: Uint8Array; set: PackedSet }[] = []
  for (const { name, type, removed, added } of groupRecords(zone, delta)) {
    const set = zone.findPacked(name, type)
    const kept = set === undefined ? [] : datasOf(set).filter((data) => !removed.has(keyOf(data)))
    const datas = [...kept, ...added.map(({ data }) => data)]
    const ttl = added[0]?.ttl ?? (set === undefined ? 0 : ttlOf(set.body))
    // Removed first: a CNAME may replace an address, and the other way round.
    if (datas.length === 0) edit.remove(name, type)
    else puts.push({ name, set: packSet(type, ttl, datas) })
  }
  for (const { name, set } of puts) edit.put(name, set)
  edit.put(zone.originWire, packSet(TYPE.SOA, delta.after.ttl, [delta.after.data]))
  return new Zone(edit.finishKeepingSerial())
}
