/** The fields of a zone, shared by building (zone-build.ts), changing (zone-edit.ts) and serving (zone-table.ts) it. */
import { TYPE, typeName } from '../wire/codes.ts'
import type { Fqdn } from '../wire/name.ts'
import type { PackedSet, Shard } from './zone-shard.ts'

export interface ZoneParts {
  readonly origin: Fqdn
  /** Lower case. */
  readonly originWire: Uint8Array
  /** 2^n entries, n ≥ 1; a shard of lower depth has several adjacent entries. */
  readonly directory: readonly Shard[]
  /** `hash >>> shift` is the index in the directory. */
  readonly shift: number
  /** Names that own records or have names below them. */
  readonly names: number
  readonly rrsets: number
  /** Names below the apex that own NS, and names that own DNAME. With none, answers skip the walk down the tree. */
  readonly cuts: number
  /** Names whose first label is `*`. */
  readonly wildcards: number
}

export type ZoneCounts = Pick<ZoneParts, 'names' | 'rrsets' | 'cuts' | 'wildcards'>

export const isWildcardWire = (name: Uint8Array, at = 0): boolean => name[at] === 1 && name[at + 1] === 0x2a

const SINGLE: ReadonlySet<number> = new Set([TYPE.CNAME, TYPE.DNAME, TYPE.SOA])
/** Types that a name with CNAME may also own (RFC 4034 §2.5). */
const BESIDE_CNAME: ReadonlySet<number> = new Set([TYPE.CNAME, TYPE.RRSIG, TYPE.NSEC])

/** Why one name cannot own these RRsets, or undefined. */
export function findConflict(sets: ReadonlyMap<number, PackedSet>, isApex: boolean): string | undefined {
  for (const set of sets.values()) {
    if (set.records > 1 && SINGLE.has(set.type))
      return `has ${set.records} ${typeName(set.type)} records; one is the limit`
    if (set.type === TYPE.SOA && !isApex) return 'has a SOA record but is not the apex of the zone'
    if (sets.has(TYPE.CNAME) && !BESIDE_CNAME.has(set.type)) return `has CNAME and ${typeName(set.type)} records`
  }
  return undefined
}
