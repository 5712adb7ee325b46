/**
 * What a dynamic update does to a zone (RFC 2136 §3). `applyUpdate` is pure: a zone and a message give an rcode and, when all
 * prerequisites hold, the zone after it; one message is applied whole or not at all.
 */
import { CLASS, RCODE, TYPE } from '../wire/codes.ts'
import type { Message } from '../wire/message.ts'
import { lowerWire, nameToWire } from '../wire/name.ts'
import { canonicalRdata } from '../wire/rdata/grammar.ts'
import type { Resource } from '../wire/record.ts'
import { isNewer, serialOf } from './soa.ts'
import { ZoneEdit } from './zone-edit.ts'
import { datasOf, packSet, type PackedSet, ttlOf } from './zone-shard.ts'
import { Zone } from './zone-table.ts'

export interface UpdateResult {
  readonly rcode: number
  /** The zone after the update; the same object when nothing changed. */
  readonly zone: Zone
}

class Refusal extends Error {
  readonly rcode: number
  constructor(rcode: number) {
    super(`rcode ${rcode}`)
    this.rcode = rcode
  }
}

const keyOf = (type: number, data: Uint8Array): string => Buffer.from(canonicalRdata(type, data)).toString('latin1')

const isMetaType = (type: number): boolean => type === TYPE.OPT || (type >= TYPE.TKEY && type <= TYPE.ANY)

interface Named {
  readonly name: Uint8Array
  readonly record: Resource
}

/** Lower-case wire names; a name outside the zone refuses the message (RFC 2136 §3.2.1 and §3.4.1.1). */
function nameRecords(zone: Zone, section: readonly Resource[]): Named[] {
  return section.map((record) => {
    const name = lowerWire(nameToWire(record.name))
    if (!isInside(name, zone.originWire)) throw new Refusal(RCODE.NOTZONE)
    return { name, record }
  })
}

function isInside(name: Uint8Array, origin: Uint8Array): boolean {
  let at = 0
  while (name.length - at > origin.length) at += name[at]! + 1
  return Buffer.compare(name.subarray(at), origin) === 0
}

/** RFC 2136 §3.2.5. */
function checkPrerequisites(edit: ZoneEdit, section: readonly Named[]): void {
  const wanted = new Map<string, { name: Uint8Array; type: number; keys: Set<string> }>()
  for (const { name, record } of section) {
    if (record.ttl !== 0) throw new Refusal(RCODE.FORMERR)
    const sets = edit.findNode(name)?.sets
    const isInUse = sets !== undefined && sets.size > 0
    switch (record.class) {
      case CLASS.ANY:
        if (record.data.length > 0) throw new Refusal(RCODE.FORMERR)
        if (record.type === TYPE.ANY) {
          if (!isInUse) throw new Refusal(RCODE.NXDOMAIN)
        } else if (sets?.has(record.type) !== true) throw new Refusal(RCODE.NXRRSET)
        break
      case CLASS.NONE:
        if (record.data.length > 0) throw new Refusal(RCODE.FORMERR)
        if (record.type === TYPE.ANY) {
          if (isInUse) throw new Refusal(RCODE.YXDOMAIN)
        } else if (sets?.has(record.type) === true) throw new Refusal(RCODE.YXRRSET)
        break
      case CLASS.IN: {
        const key = `${Buffer.from(name).toString('latin1')}/${record.type}`
        const set = wanted.get(key) ?? { name, type: record.type, keys: new Set<string>() }
        set.keys.add(keyOf(record.type, record.data))
        wanted.set(key, set)
        break
      }
      default:
        throw new Refusal(RCODE.FORMERR)
    }
  }
  for (const { name, type, keys } of wanted.values()) {
    const set = edit.findNode(name)?.sets.get(type)
    const datas = set === undefined ? [] : datasOf(set)
    if (datas.length !== keys.size || !datas.every((data) => keys.has(keyOf(type, data))))
      throw new Refusal(RCODE.NXRRSET)
  }
}

/** RFC 2136 §3.4.1.3. */
function prescan(section: readonly Named[]): void {
  for (const { record } of section) {
    const { type, ttl, data } = record
    switch (record.class) {
      case CLASS.IN:
        if (isMetaType(type)) throw new Refusal(RCODE.FORMERR)
        break
      case CLASS.ANY:
        if (ttl !== 0 || data.length > 0 || (isMetaType(type) && type !== TYPE.ANY)) throw new Refusal(RCODE.FORMERR)
        break
      case CLASS.NONE:
        if (ttl !== 0 || isMetaType(type)) throw new Refusal(RCODE.FORMERR)
        break
      default:
        throw new Refusal(RCODE.FORMERR)
    }
  }
}

const SINGLE: ReadonlySet<number> = new Set([TYPE.CNAME, TYPE.DNAME, TYPE.SOA])

/** RFC 2136 §3.4.2.2: a record that conflicts with the zone is silently ignored. */
function add(edit: ZoneEdit, zone: Zone, name: Uint8Array, record: Resource): void {
  const { type, ttl, data } = record
  const sets = edit.findNode(name)?.sets ?? new Map<number, PackedSet>()
  if (type === TYPE.SOA) {
    const current = sets.get(TYPE.SOA)
    if (name.length !== zone.originWire.length || current === undefined) return
    if (!isNewer(serialOf(data), serialOf(datasOf(current)[0]!))) return
  } else if (type === TYPE.CNAME) {
    if ([...sets.keys()].some((other) => other !== TYPE.CNAME)) return
  } else if (sets.has(TYPE.CNAME)) return
  const kept = SINGLE.has(type)
    ? []
    : datasOf(sets.get(type) ?? packSet(type, ttl, [])).filter((other) => keyOf(type, other) !== keyOf(type, data))
  edit.put(name, packSet(type, ttl, [...kept, data]))
}

function removeSet(edit: ZoneEdit, isApex: boolean, name: Uint8Array, type: number): void {
  if (isApex && (type === TYPE.SOA || type === TYPE.NS)) return
  edit.remove(name, type)
}

function removeValue(edit: ZoneEdit, isApex: boolean, name: Uint8Array, { type, data }: Resource): void {
  const set = edit.findNode(name)?.sets.get(type)
  if (set === undefined || type === TYPE.SOA) return
  const kept = datasOf(set).filter((other) => keyOf(type, other) !== keyOf(type, data))
  if (kept.length === set.records) return
  if (kept.length > 0) edit.put(name, packSet(type, ttlOf(set.body), kept))
  else if (!(isApex && type === TYPE.NS)) edit.remove(name, type)
}

function applyRecord(edit: ZoneEdit, zone: Zone, { name, record }: Named): void {
  const isApex = name.length === zone.originWire.length
  if (record.class === CLASS.IN) add(edit, zone, name, record)
  else if (record.class === CLASS.NONE) removeValue(edit, isApex, name, record)
  else if (record.type !== TYPE.ANY) removeSet(edit, isApex, name, record.type)
  else for (const type of edit.findNode(name)?.sets.keys() ?? []) removeSet(edit, isApex, name, type)
}

/**
 * The steps of RFC 2136 §3.2 to §3.6, without the permission of §3.3, which is the caller's. `serial` is that of the new
 * version when something changed. @default the next one
 */
export function applyUpdate(zone: Zone, message: Message, serial?: number): UpdateResult {
  try {
    const edit = new ZoneEdit(zone)
    checkPrerequisites(edit, nameRecords(zone, message.answers))
    const updates = nameRecords(zone, message.authorities)
    prescan(updates)
    for (const update of updates) applyRecord(edit, zone, update)
    const parts = edit.finish(serial)
    return { rcode: RCODE.NOERROR, zone: parts === zone ? zone : new Zone(parts) }
  } catch (error) {
    if (error instanceof Refusal) return { rcode: error.rcode, zone }
    throw error
  }
}
