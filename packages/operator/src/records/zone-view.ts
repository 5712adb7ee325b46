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

interface MarkedSet {
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
  /** Every marked set in sight, ours and others'. */
  allMarked(): Iterable<MarkedSet>
  /** Those that speak of a name. */
  markedAt(name: string): readonly MarkedSet[]
  /** Names that a marker speaks of. */
  markedNames(): Iterable<string>
  entries(name: string, type: string): readonly ForeignEntry[]
  readonly sets: readonly ObservedSet[]
}

export interface ViewOptions {
  readonly origin: string
  readonly markerKey?: Uint8Array
  readonly registry?: RegistryOptions
}

export function createZoneView(sets: readonly ObservedSet[], options: ViewOptions): ZoneView {
  const { registry, origin } = options
  // Most names have one set, and a large zone has many names: a list is made only for the second.
  const byName = new Map<string, ObservedSet | ObservedSet[]>()
  const markers = new Map<string, MarkedSet | MarkedSet[]>()
  const entries = new Map<string, ForeignEntry[]>()
  for (const set of sets) {
    const subject = set.type === 'TXT' ? markedSet(set.name) : undefined
    // A marker is found by what it marks.
    if (subject !== undefined && isWithin(subject.name, origin)) {
      add(markers, subject.name, new MarkedRecord(subject, set, options.markerKey))
      continue
    }
    add(byName, set.name, set)
    if (registry === undefined || set.type !== 'TXT') continue
    // ExternalDNS reads the first value only; a mixed set is looked at value by value, to be sure.
    for (const value of set.values) {
      const reading = readRegistryValue(value, registry)
      if (reading.kind === 'none') continue
      const entry: ForeignEntry = { set, entry: reading.kind === 'entry' ? reading.entry : 'unknown' }
      entries.set(set.name, [...(entries.get(set.name) ?? []), entry])
    }
  }
  const marked = (name: string, type: string) => pick(markers.get(name), type)
  return {
    origin,
    sets,
    find(name, type) {
      const subject = type === 'TXT' ? markedSet(name) : undefined
      const marker = subject === undefined ? undefined : marked(subject.name, subject.type)
      return marker?.set ?? pick(byName.get(name), type)
    },
    isOpaque(name, type) {
      const there = byName.get(name)
      if (!Array.isArray(there)) return there?.type === type && there.opaque !== undefined
      const same = there.filter((set) => set.type === type)
      return same.length > 1 || same[0]?.opaque !== undefined
    },
    typesAt(name) {
      const subject = markedSet(name)
      const marker = subject === undefined ? undefined : marked(subject.name, subject.type)
      return marker === undefined ? listOf(byName.get(name)) : [marker.set, ...listOf(byName.get(name))]
    },
    marked,
    *allMarked() {
      for (const item of markers.values()) {
        if (Array.isArray(item)) yield* item
        else yield item
      }
    },
    markedAt: (name) => listOf(markers.get(name)),
    markedNames: () => markers.keys(),
    entries(name, type) {
      if (registry === undefined || entries.size === 0) return NO_ENTRIES
      return registryNames(name, type, registry).flatMap((at) => entries.get(at) ?? [])
    },
  }
}

const NO_ENTRIES: readonly ForeignEntry[] = []

class MarkedRecord implements MarkedSet {
  readonly name: string
  readonly type: string
  readonly set: RecordSet
  readonly readings: readonly MarkerReading[]
  constructor(subject: { name: string; type: string }, set: RecordSet, key: Uint8Array | undefined) {
    this.name = subject.name
    this.type = subject.type
    this.set = set
    this.readings = set.values.map((value) => readMarker(subject, value, key))
  }
}

function add<T>(map: Map<string, T | T[]>, key: string, item: T): void {
  const there = map.get(key)
  if (there === undefined) map.set(key, item)
  else if (Array.isArray(there)) there.push(item)
  else map.set(key, [there, item])
}

function listOf<T>(items: T | T[] | undefined): readonly T[] {
  if (items === undefined) return []
  return Array.isArray(items) ? items : [items]
}

function pick<T extends { readonly type: string }>(items: T | T[] | undefined, type: string): T | undefined {
  if (Array.isArray(items)) return items.find((item) => item.type === type)
  return items?.type === type ? items : undefined
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
