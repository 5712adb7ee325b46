/** The zones of a server by origin: finds the zone with the longest origin that contains a name. */
import { type Fqdn, labelsOf, lowerWire, nameToWire, wireToFqdn } from '../wire/name.ts'
import { hashName, type NameScan } from '../zone/name-hash.ts'
import type { Zone } from '../zone/zone-table.ts'

export class ZoneIndex {
  readonly #byOrigin = new Map<Fqdn, Zone>()
  readonly #byHash = new Map<number, Zone[]>()
  /** How many origins have how many labels; the counts, largest first. */
  readonly #zonesAt = new Map<number, number>()
  #depths: number[] = []
  /** Origins, in wire form, of zones that are not loaded yet. */
  #suspended: readonly Uint8Array[] = []

  get(origin: Fqdn): Zone | undefined {
    return this.#byOrigin.get(origin)
  }

  values(): IterableIterator<Zone> {
    return this.#byOrigin.values()
  }

  /** Queries for names of this zone are refused until `set`. */
  suspend(origin: Fqdn): Zone | undefined {
    const wire = lowerWire(nameToWire(origin))
    this.#suspended = [...this.#suspended.filter((other) => Buffer.compare(other, wire) !== 0), wire]
    return this.delete(origin)
  }

  /** Does a suspended zone hold the name, with a longer origin than `zone`? Then a parent zone must not answer for it. */
  isSuspended(name: Uint8Array, length: number, zone: Zone | undefined): boolean {
    for (const origin of this.#suspended) {
      if (zone !== undefined && origin.length <= zone.originWire.length) continue
      let at = 0
      while (length - at > origin.length) at += name[at]! + 1
      if (isSuffix(origin, name, at, length)) return true
    }
    return false
  }

  suspended(): Fqdn[] {
    return this.#suspended.map((origin) => wireToFqdn(origin))
  }

  get hasSuspended(): boolean {
    return this.#suspended.length > 0
  }

  /** Returns the zone that it replaces. */
  set(zone: Zone): Zone | undefined {
    if (this.#suspended.length > 0)
      this.#suspended = this.#suspended.filter((origin) => Buffer.compare(origin, zone.originWire) !== 0)
    const before = this.delete(zone.origin)
    this.#byOrigin.set(zone.origin, zone)
    const hash = hashName(zone.originWire)
    this.#byHash.set(hash, [...(this.#byHash.get(hash) ?? []), zone])
    this.#count(zone.origin, 1)
    return before
  }

  delete(origin: Fqdn): Zone | undefined {
    const before = this.#byOrigin.get(origin)
    if (before === undefined) return undefined
    this.#byOrigin.delete(origin)
    const hash = hashName(before.originWire)
    const bucket = this.#byHash.get(hash)!.filter((zone) => zone !== before)
    if (bucket.length === 0) this.#byHash.delete(hash)
    else this.#byHash.set(hash, bucket)
    this.#count(origin, -1)
    return before
  }

  #count(origin: Fqdn, by: number): void {
    const depth = labelsOf(origin).length
    const zones = (this.#zonesAt.get(depth) ?? 0) + by
    if (zones === 0) this.#zonesAt.delete(depth)
    else this.#zonesAt.set(depth, zones)
    this.#depths = [...this.#zonesAt.keys()].sort((a, b) => b - a)
  }

  /** The zone that holds the scanned name, with its origin at or after label `from`. */
  find(name: Uint8Array, length: number, scan: NameScan, from = 0): Zone | undefined {
    const depths = this.#depths
    for (let i = 0; i < depths.length; i++) {
      const label = scan.labels - depths[i]!
      if (label < from) continue
      const bucket = this.#byHash.get(scan.hashes[label]!)
      if (bucket === undefined) continue
      const start = scan.offsets[label]!
      for (let j = 0; j < bucket.length; j++) if (isSuffix(bucket[j]!.originWire, name, start, length)) return bucket[j]
    }
    return undefined
  }
}

function isSuffix(origin: Uint8Array, name: Uint8Array, start: number, length: number): boolean {
  if (origin.length !== length - start) return false
  for (let i = 0; i < origin.length; i++) if (origin[i] !== name[start + i]) return false
  return true
}
