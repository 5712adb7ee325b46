/**
 * The content of a zone as it was read, indexed by RRset: its values, its markers, ExternalDNS' entries.
 *
 * Place in the flow: providers → ZoneView → plan. Markers are parsed once, when the view is created. A view of some names
 * is valid for those names only; the caller reads `namesToRead` first, so that the cost of a change is proportional to
 * the change and not to the zone.
 */
import { createMarkerReader, type Marker, isMarkerName, markedSet, markerName } from '../../rrset/marker.ts'
import { originalMarkerName, readOriginalMarker } from '../../rrset/original-marker.ts'
import {
  readRegistryValue,
  registryNames,
  type RegistryEntry,
  type RegistryOptions,
} from '../../rrset/external-dns-registry.ts'
import { type MarkedSet, NameViewBuilder, EMPTY_NAME_VIEW, type NameView } from './name-view.ts'
import { isWithin, type ObservedRRset, type RRset } from '../../rrset/rrset.ts'
import { subjectsOf, wildcardBelow } from './underscore-names.ts'

export interface ForeignEntry {
  readonly set: RRset
  readonly entry: RegistryEntry | 'unknown'
}

export interface ZoneView {
  readonly origin: string
  /** Every name with a set or a marker: for iterating over a zone without looking up each name. */
  readonly nameViews: readonly NameView[]
  at(name: string): NameView
  /** The set at (name, type), including the sets of markers. */
  find(name: string, type: string): ObservedRRset | undefined
  /** More than one set, or one that is not a plain set: the provider stores routing policies there. */
  isOpaque(name: string, type: string): boolean
  /** All plain types at a name. */
  typesAt(name: string): readonly ObservedRRset[]
  marked(name: string, type: string): MarkedSet | undefined
  /** Every readable marker, ours and others', with the name it marks; those of one name are consecutive. */
  eachMarker(visit: (marker: Marker, name: string) => void): void
  /** The largest plan number in any marker. */
  readonly newestPlan: number
  entries(name: string, type: string): readonly ForeignEntry[]
  /** Names in NS and MX records: name servers and mail hosts. */
  readonly hosts: ReadonlySet<string>
  readonly sets: readonly ObservedRRset[]
}

export interface ViewOptions {
  readonly origin: string
  readonly markerKey?: Uint8Array
  readonly registry?: RegistryOptions
  /** For a view of some names: the hosts of the last view of the whole zone. */
  readonly knownHosts?: ReadonlySet<string> | undefined
}

export function createZoneView(sets: readonly ObservedRRset[], options: ViewOptions): ZoneView {
  const { registry, origin } = options
  const byName = new Map<string, NameViewBuilder>()
  const nameViews: NameViewBuilder[] = []
  const entries = new Map<string, ForeignEntry[]>()
  /** By the name that is owned: one entry for all types. */
  const originals = new Map<string, ForeignEntry[]>()
  const read = createMarkerReader(options.markerKey)
  const nameViewOf = (name: string): NameViewBuilder => byName.get(name) ?? addNameView(name, byName, nameViews)
  const markers: RRset[] = []
  const hosts = new Set(options.knownHosts)
  for (const set of sets) {
    if (set.type === 'NS' || set.type === 'MX') for (const value of set.values) hosts.add(hostIn(value))
    if (set.type === 'TXT' && isMarkerName(set.name)) {
      markers.push(set)
      continue
    }
    nameViewOf(set.name).add(set)
    if (registry === undefined || set.type !== 'TXT') continue
    const original = registry.dnslbIdentity === undefined ? undefined : readOriginalMarker(set)
    // Any single word may be a marker of the first release: only that of the configured identity counts.
    if (original !== undefined && (!original.isLegacy || original.owner === registry.dnslbIdentity))
      originals.set(original.name, [{ set, entry: { owner: original.owner, program: 'dnslb' } }])
    // ExternalDNS reads only the first value; all values of a mixed set are checked.
    for (const value of set.values) {
      const reading = readRegistryValue(value, registry)
      if (reading.kind === 'none') continue
      const entry: ForeignEntry = { set, entry: reading.kind === 'entry' ? reading.entry : 'unknown' }
      entries.set(set.name, [...(entries.get(set.name) ?? []), entry])
    }
  }
  let newestPlan = 0
  // After the records, so that the views are keyed by the names of the records, and found by the names in markers.
  for (const set of markers) {
    const subject = markedSet(set.name)
    if (subject === undefined || !isWithin(subject.name, origin)) nameViewOf(set.name).add(set)
    else newestPlan = Math.max(newestPlan, nameViewOf(subject.name).mark(subject.type, set, read))
  }
  const at = (name: string): NameView => byName.get(name) ?? EMPTY_NAME_VIEW
  const markerAt = (name: string): MarkedSet | undefined => {
    const subject = markedSet(name)
    return subject === undefined ? undefined : at(subject.name).marked(subject.type)
  }
  return {
    origin,
    sets,
    nameViews,
    newestPlan,
    hosts,
    at,
    find: (name, type) => (type === 'TXT' ? markerAt(name)?.set : undefined) ?? at(name).find(type),
    isOpaque: (name, type) => at(name).isOpaque(type),
    typesAt(name) {
      const marker = markerAt(name)
      const there = at(name).sets()
      return marker === undefined ? there : [marker.set, ...there]
    },
    marked: (name, type) => at(name).marked(type),
    eachMarker(visit) {
      for (const nameView of nameViews) {
        for (let marked = nameView.firstMarked; marked !== undefined; marked = marked.next)
          for (const reading of marked.readings) if (reading.kind === 'marker') visit(reading.marker, nameView.name)
      }
    },
    entries(name, type) {
      if (registry === undefined) return NO_ENTRIES
      // Of a type that is not there the original owns nothing.
      const original = type === 'TXT' || at(name).find(type) === undefined ? undefined : originals.get(name)
      if (entries.size === 0) return original ?? NO_ENTRIES
      return [...(original ?? []), ...registryNames(name, type, registry).flatMap((where) => entries.get(where) ?? [])]
    },
  }
}

const NO_ENTRIES: readonly ForeignEntry[] = []

function addNameView(
  name: string,
  byName: Map<string, NameViewBuilder>,
  nameViews: NameViewBuilder[],
): NameViewBuilder {
  const nameView = new NameViewBuilder(name, nameViews.length)
  byName.set(name, nameView)
  nameViews.push(nameView)
  return nameView
}

/** `10 mail.example.com.` or `ns1.example.com.` */
function hostIn(value: string): string {
  return value.slice(value.lastIndexOf(' ') + 1).toLowerCase()
}

/** The names above a name, up to the origin of its zone, the nearest first. */
export function namesAbove(name: string, origin: string): string[] {
  const names: string[] = []
  for (let at = name.indexOf('.'); at >= 0 && name.length > origin.length; at = name.indexOf('.', at + 1)) {
    const above = name.slice(at + 1)
    if (!isWithin(above, origin)) break
    names.push(above)
  }
  return names
}

/**
 * Every name that must be read before a name may be changed: the name, and what a name with an underscore is about, with
 * their markers and registry entries; and the names above it, where it may be delegated.
 */
export function namesToRead(
  name: string,
  types: readonly string[],
  registry: RegistryOptions | undefined,
  origin: string,
): string[] {
  const names = new Set([name, ...namesAbove(name, origin)])
  for (const each of [name, ...subjectsWithin(name, origin)]) {
    names.add(each)
    for (const type of types) {
      names.add(markerName(each, type))
      if (registry !== undefined) for (const entry of registryNames(each, type, registry)) names.add(entry)
    }
    const original = registry?.dnslbIdentity === undefined ? undefined : originalMarkerName(each)
    if (original !== undefined) names.add(original)
  }
  return [...names]
}

/** For the apex it does not matter what is there: what is looked up for it is held. */
function subjectsWithin(name: string, origin: string): string[] {
  const subjects = subjectsOf(name, origin)
  const base = subjects.at(-1)
  return base === undefined || base === origin ? [] : [...subjects, wildcardBelow(base)]
}
