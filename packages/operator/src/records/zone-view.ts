/**
 * What was read of a zone, indexed for questions about one record set: its value, its markers, ExternalDNS' entries.
 *
 * Place in the flow: providers → ZoneView → plan. Markers are parsed once, when the view is made. A view of some names
 * answers for those names only; the caller reads `namesToRead` first, so that a change costs reads in proportion to
 * itself and never to the zone.
 */
import { type MarkerReading, markedSet, markerName, readMarker } from './marker.ts'
import { readRegistryValue, registryNames, type RegistryEntry, type RegistryOptions } from './external-dns-registry.ts'
import { isWithin, type ObservedSet, type RecordSet } from './record-set.ts'

export interface MarkedSet {
  readonly name: string
  readonly type: string
  /** The marker's own record set. */
  readonly set: RecordSet
  readonly readings: readonly MarkerReading[]
}

export interface ForeignEntry {
  readonly set: RecordSet
  readonly entry: RegistryEntry | 'unknown'
}

export interface ZoneView {
  readonly origin: string
  /** Sets at (name, type). More than one, or an opaque one, when the provider keeps routing policies there. */
  find(name: string, type: string): ObservedSet | undefined
  isOpaque(name: string, type: string): boolean
  /** All plain types present at a name. */
  typesAt(name: string): readonly ObservedSet[]
  marked(name: string, type: string): MarkedSet | undefined
  /** Every marked set in sight, ours and others', by the name it speaks of. */
  markedNames(): ReadonlyMap<string, readonly MarkedSet[]>
  entries(name: string, type: string): readonly ForeignEntry[]
  readonly sets: readonly ObservedSet[]
}

export interface ViewOptions {
  readonly origin: string
  readonly markerKey?: Uint8Array
  readonly registry?: RegistryOptions
}

export function createZoneView(sets: readonly ObservedSet[], options: ViewOptions): ZoneView {
  const byName = new Map<string, ObservedSet[]>()
  const markers = new Map<string, MarkedSet[]>()
  const entries = new Map<string, ForeignEntry[]>()
  for (const set of sets) {
    add(byName, set.name, set)
    if (set.type !== 'TXT') continue
    const subject = markedSet(set.name)
    if (subject !== undefined && isWithin(subject.name, options.origin)) {
      const readings = set.values.map((value) => readMarker(subject, value, options.markerKey))
      add(markers, subject.name, { name: subject.name, type: subject.type, set, readings })
    } else if (options.registry !== undefined) {
      // ExternalDNS reads the first value only; a mixed set is looked at value by value, to be sure.
      for (const value of set.values) {
        const reading = readRegistryValue(value, options.registry)
        if (reading.kind === 'none') continue
        add(entries, set.name, { set, entry: reading.kind === 'entry' ? reading.entry : 'unknown' })
      }
    }
  }
  const { registry } = options
  return {
    origin: options.origin,
    sets,
    find: (name, type) => byName.get(name)?.find((set) => set.type === type),
    isOpaque(name, type) {
      let count = 0
      for (const set of byName.get(name) ?? NOTHING) {
        if (set.type !== type) continue
        count++
        if (set.opaque !== undefined) return true
      }
      return count > 1
    },
    typesAt: (name) => byName.get(name) ?? NOTHING,
    marked: (name, type) => markers.get(name)?.find((marked) => marked.type === type),
    markedNames: () => markers,
    entries(name, type) {
      if (registry === undefined || entries.size === 0) return NO_ENTRIES
      return registryNames(name, type, registry).flatMap((at) => entries.get(at) ?? [])
    },
  }
}

const NOTHING: readonly ObservedSet[] = []
const NO_ENTRIES: readonly ForeignEntry[] = []

function add<T>(map: Map<string, T[]>, key: string, item: T): void {
  const there = map.get(key)
  if (there === undefined) map.set(key, [item])
  else there.push(item)
}

/** Every name that must be read before one name may be changed: the name, its markers, the registry's entries. */
export function namesToRead(name: string, types: readonly string[], registry: RegistryOptions | undefined): string[] {
  const names = new Set([name])
  for (const type of types) {
    names.add(markerName(name, type))
    if (registry !== undefined) for (const entry of registryNames(name, type, registry)) names.add(entry)
  }
  return [...names]
}
