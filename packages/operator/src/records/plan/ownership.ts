/**
 * The ownership of an RRset, decided from the zone alone (INV-7 … INV-11). No other module decides it.
 *
 * Free: no set and no claim. Ours: our marker with a valid signature. Shared: ours among other owners that share the set.
 * Everything else is an objection with a reason code, and an objection means that nothing is written to that set.
 */
import type { Reason } from '../../reasons.ts'
import { claimText } from '../../rrset/external-dns-registry.ts'
import type { Marker, MarkerReading } from '../../rrset/marker.ts'
import { withoutLegacyMarker } from '../../rrset/original-marker.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import type { NameView } from './name-view.ts'
import type { ForeignEntry, ZoneView } from './zone-view.ts'

export interface Owner {
  /** Required: there is no default, because two installations with the same default would overwrite each other's records. */
  readonly id: string
  readonly cluster: string
  /** Key of the HMAC on markers; with a key, markers without a valid HMAC are rejected. */
  readonly key?: Uint8Array
}

interface Mine {
  readonly marker: Marker
  /** Its TXT value, byte for byte. */
  readonly value: string
}

export type Ownership =
  | { readonly kind: 'free' }
  | {
      readonly kind: 'ours'
      readonly mine: Mine
      /** Markers of other owners that share this set. */
      readonly others: readonly Marker[]
      /** Entries of ExternalDNS, or of dnslb-controller-manager, that were kept beside our marker at the adoption. */
      readonly kept: readonly ForeignEntry[]
    }
  /** Shared by other owners; we may join. */
  | { readonly kind: 'joinable'; readonly others: readonly Marker[] }
  | {
      readonly kind: 'theirs'
      readonly code: Reason
      readonly message: string
      readonly entries: readonly ForeignEntry[]
    }

const NO_MARKERS: readonly Marker[] = []
const NO_ENTRIES: readonly ForeignEntry[] = []

export function ownershipOf(
  view: ZoneView,
  name: string,
  type: string,
  owner: Owner,
  nameView: NameView = view.at(name),
): Ownership {
  const marked = nameView.marked(type)
  const entries = view.entries(name, type)
  const only = marked?.readings.length === 1 ? marked.readings[0] : undefined
  if (only?.kind === 'marker' && entries.length === 0 && !nameView.isOpaque(type)) {
    // The common case in a large zone: exactly one marker, ours.
    const { marker } = only
    if (marker.owner === owner.id && marker.cluster === owner.cluster)
      return { kind: 'ours', mine: only, others: NO_MARKERS, kept: NO_ENTRIES }
  }
  return judgeClaims(view, name, type, owner, marked?.readings ?? [], entries)
}

function judgeClaims(
  view: ZoneView,
  name: string,
  type: string,
  owner: Owner,
  readings: readonly MarkerReading[],
  entries: readonly ForeignEntry[],
): Ownership {
  const set = view.find(name, type)
  const theirs = (code: Reason, message: string): Ownership => ({ kind: 'theirs', code, message, entries })
  if (view.isOpaque(name, type)) {
    return theirs(
      'UnownedRecordExists',
      `the provider keeps ${set?.opaque ?? 'several sets'} there, which is not changed`,
    )
  }
  const bad = readings.find((reading) => reading.kind !== 'marker')
  if (bad !== undefined) return theirs(codeOfBad(bad), describeBad(bad))

  const markers = readings.flatMap((reading) => (reading.kind === 'marker' ? [reading] : []))
  const own = markers.filter(({ marker }) => marker.owner === owner.id)
  const others = markers.filter(({ marker }) => marker.owner !== owner.id).map(({ marker }) => marker)
  const foreign = own.find(({ marker }) => marker.cluster !== owner.cluster)
  if (foreign !== undefined) {
    return theirs('OwnerInOtherCluster', `owner '${owner.id}' marks it from cluster ${foreign.marker.cluster}`)
  }
  if (own.length > 1) return theirs('OwnershipConflict', `owner '${owner.id}' marks it ${own.length} times`)
  const mine = own[0]
  const unshared = others.filter((marker) => marker.part === undefined)
  if (unshared.length > 0) {
    const names = unshared.map((marker) => `'${marker.owner}'`).join(', ')
    return mine === undefined && unshared.length === 1
      ? theirs('ForeignOwner', `it belongs to owner ${names}`)
      : theirs('OwnershipConflict', `${names} and others mark it at once`)
  }
  const unknown = entries.find(({ entry }) => entry === 'unknown')
  if (unknown !== undefined)
    return theirs('UnknownRegistry', `${unknown.set.name} holds a registry entry of unknown form`)
  const claims = [...new Set(entries.flatMap(({ entry }) => (entry === 'unknown' ? [] : [claimText(entry)])))]
  if (mine !== undefined) {
    if (others.length > 0 && mine.marker.part === undefined) {
      return theirs('OwnershipConflict', `'${owner.id}' owns it whole, others share it`)
    }
    const alien = claims.filter((claim) => claim !== mine.marker.from)
    if (alien.length > 0) return theirs('OwnershipConflict', `'${owner.id}' and ${alien.join(', ')} both claim it`)
    return { kind: 'ours', mine, others, kept: entries }
  }
  const [claim] = claims
  if (claim !== undefined)
    return theirs('ForeignOwner', `it belongs to ${claims.join(', ')}; to take it over: ${adoptCommand(claim, name)}`)
  if (others.length > 0) return { kind: 'joinable', others }
  if (set !== undefined)
    return theirs(
      'UnownedRecordExists',
      `the record has no ownership marker; to adopt it: ${adoptCommand('unmarked', name)}`,
    )
  return { kind: 'free' }
}

function adoptCommand(from: string, name: string): string {
  return `seamark adopt --from ${from} ${name.replace(/\.$/, '')}`
}

function codeOfBad(reading: MarkerReading): Reason {
  return reading.kind === 'forged' ? 'MarkerForged' : 'MarkerUnreadable'
}

function describeBad(reading: MarkerReading): string {
  switch (reading.kind) {
    case 'forged':
      return 'its marker is not signed with the configured key'
    case 'newer':
      return 'its marker is of a newer version than this program reads'
    case 'unreadable':
    case 'marker':
      return 'the TXT record at its marker name is not an ownership marker'
  }
}

/** The other cluster that uses our owner id in this zone, if any. One such marker stops all writes to the zone. */
export function findOtherCluster(view: ZoneView, owner: Owner): string | undefined {
  let other: string | undefined
  view.eachMarker((marker) => {
    if (marker.owner === owner.id && marker.cluster !== owner.cluster) other ??= marker.cluster
  })
  return other
}

/**
 * The removal of the kept entries with their set. An entry of dnslb-controller-manager covers all types of a name: it goes
 * with the first of them; its oldest form shares a TXT set with values of others, which stay.
 */
export function removeEntries(view: ZoneView, name: string, type: string, kept: readonly ForeignEntry[]): SetChange[] {
  const isFirst = !view.typesAt(name).some((set) => set.type !== 'TXT' && set.type < type)
  return kept.flatMap(({ set, entry }): SetChange[] => {
    const from = { name: set.name, type: set.type, ttl: set.ttl, values: set.values }
    if (entry === 'unknown' || entry.program !== 'dnslb') return [{ from, to: undefined }]
    if (!isFirst) return []
    return [{ from, to: set.name === name ? withoutLegacyMarker(from, entry.owner) : undefined }]
  })
}
