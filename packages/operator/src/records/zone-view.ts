/**
 * What was read of a zone, indexed for questions about one record set: its value, its markers, ExternalDNS' entries.
 *
 * Place in the flow: providers → ZoneView → plan. Markers are parsed once, when the view is made. A view of some names
 * answers for those names only; the caller reads `namesToRead` first, so that a change costs reads in proportion to
 * itself and never to the zone.
 */
import { createMarkerReader, type MarkerReader, type MarkerReading, markedSet, markerName } from './marker.ts'
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
  /** Every marked set in sight, ours and others'; those of one name one after the other. */
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

/** What is known of one name. Most have one set and one marker, and a zone has many names: no list is made for one. */
class Place {
  readonly name: string
  sets: ObservedSet | ObservedSet[] | undefined
  /** Markers that speak of the name; they stand at names of their own. */
  marked: MarkedSet | MarkedSet[] | undefined
  constructor(name: string) {
    this.name = name
  }
}

export function createZoneView(sets: readonly ObservedSet[], options: ViewOptions): ZoneView {
  const { registry, origin } = options
  const places = new Map<string, Place>()
  const entries = new Map<string, ForeignEntry[]>()
  const read = createMarkerReader(options.markerKey)
  // Questions, and what a provider lists, come name by name: the last place is mostly the one asked for.
  let last = new Place('')
  const findPlace = (name: string): Place | undefined => {
    if (name === last.name) return last
    const place = places.get(name)
    if (place !== undefined) last = place
    return place
  }
  const placeOf = (name: string): Place => {
    let place = findPlace(name)
    if (place === undefined) {
      place = new Place(name)
      places.set(name, place)
      last = place
    }
    return place
  }
  for (const set of sets) {
    const subject = set.type === 'TXT' ? markedSet(set.name) : undefined
    // A marker is found by what it marks.
    if (subject !== undefined && isWithin(subject.name, origin)) {
      const place = placeOf(subject.name)
      place.marked = withItem(place.marked, new MarkedRecord(subject, set, read))
      continue
    }
    const place = placeOf(set.name)
    place.sets = withItem(place.sets, set)
    if (registry === undefined || set.type !== 'TXT') continue
    // ExternalDNS reads the first value only; a mixed set is looked at value by value, to be sure.
    for (const value of set.values) {
      const reading = readRegistryValue(value, registry)
      if (reading.kind === 'none') continue
      const entry: ForeignEntry = { set, entry: reading.kind === 'entry' ? reading.entry : 'unknown' }
      entries.set(set.name, [...(entries.get(set.name) ?? []), entry])
    }
  }
  const marked = (name: string, type: string) => pick(findPlace(name)?.marked, type)
  const markerAt = (name: string): MarkedSet | undefined => {
    const subject = markedSet(name)
    return subject === undefined ? undefined : marked(subject.name, subject.type)
  }
  return {
    origin,
    sets,
    find: (name, type) => (type === 'TXT' ? markerAt(name)?.set : undefined) ?? pick(findPlace(name)?.sets, type),
    isOpaque(name, type) {
      const there = findPlace(name)?.sets
      if (!Array.isArray(there)) return there?.type === type && there.opaque !== undefined
      const same = there.filter((set) => set.type === type)
      return same.length > 1 || same[0]?.opaque !== undefined
    },
    typesAt(name) {
      const marker = markerAt(name)
      const there = listOf(findPlace(name)?.sets)
      return marker === undefined ? there : [marker.set, ...there]
    },
    marked,
    *allMarked() {
      for (const { marked: item } of places.values()) {
        if (Array.isArray(item)) yield* item
        else if (item !== undefined) yield item
      }
    },
    markedAt: (name) => listOf(findPlace(name)?.marked),
    *markedNames() {
      for (const place of places.values()) if (place.marked !== undefined) yield place.name
    },
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
  constructor(subject: { name: string; type: string }, set: RecordSet, read: MarkerReader) {
    this.name = subject.name
    this.type = subject.type
    this.set = set
    this.readings = set.values.map((value) => read(subject, value))
  }
}

/** One item, or a list from the second on. */
function withItem<T>(items: T | T[] | undefined, item: T): T | T[] {
  if (items === undefined) return item
  if (!Array.isArray(items)) return [items, item]
  items.push(item)
  return items
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
