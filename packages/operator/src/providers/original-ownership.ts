/**
 * A provider whose zone shows dnslb-controller-manager's ownership records as our markers, and writes our markers as those
 * records. The planner, its guards and the executor work on it unchanged, and the original and this program can take turns
 * on one zone.
 *
 * read: a TXT set `comment-<name>` becomes one marker for each A, AAAA, CNAME and policy set at the name. apply: changes of markers
 * become one change of the TXT set in the same batch; a marker that is not as it was read makes the whole batch `moved`.
 *
 * The original's record holds no source, plan or cluster. The source in a marker is derived from the name
 * (`sourceIdOf`), so a set belongs to whichever load balancer has its name.
 */
import { createHash } from 'node:crypto'
import { POLICY_SET_TYPE } from '../rrset/answer-policy.ts'
import { ProviderError } from '../rrset/error.ts'
import { ADOPTED, isMarkerName, markedSet, MARKER_TTL, markerName, printMarker } from '../rrset/marker.ts'
import {
  originalMarkerName,
  originalMarkerSet,
  readOriginalMarker,
  withoutLegacyMarker,
} from '../rrset/original-marker.ts'
import { compareText, type ObservedRRset, type RRset, sameSet, setKey } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'
import type { Provider, ProviderZone } from './provider.ts'

export interface OriginalOwnershipOptions {
  /** `--identity`: value of `owner=`; may be empty. */
  readonly identity: string
  /** Host names whose addresses are published at a name: the `cnames` attribute. */
  readonly cnamesOf: (name: string) => readonly string[]
}

/** Cluster in our markers; constant, because the original's record does not contain one. */
export const ORIGINAL_CLUSTER = 'dnslb'
export const ORIGINAL_TYPES = ['A', 'AAAA', 'CNAME'] as const
/** The policy of a set, in a zone of our own DNS server, belongs to the owner of the name. */
const OWNED_TYPES: readonly string[] = [...ORIGINAL_TYPES, POLICY_SET_TYPE]
/** The first load balancer that requests the set becomes its source, so the planner writes it again, in the current form. */
const LEGACY_SOURCE = ADOPTED

/** Owner id of `--identity=""`, which owns nothing: what it creates is maintained and never removed. */
const NO_IDENTITY = '(none)'

export function ownerIdOf(identity: string): string {
  return identity === '' ? NO_IDENTITY : identity
}

export function sourceIdOf(name: string): string {
  return `name-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
}

export function withOriginalOwnership(provider: Provider, options: OriginalOwnershipOptions): Provider {
  const read: Provider['read'] = async (zone, names, signal, turn) => {
    if (names === 'all') return translate(await provider.read(zone, 'all', signal, turn), options)
    return translate(await provider.read(zone, namesToRead(names), signal, turn), options)
  }
  return {
    ...provider,
    zones: async (signal, turn) => provider.zones(signal, turn),
    read,
    async apply(zone, batch, signal) {
      const markers = batch.filter(isMarkerChange)
      const data = batch.filter((change) => !isMarkerChange(change))
      await provider.apply(zone, [...data, ...(await ownershipChanges(zone, markers, signal))], signal)
    },
    ...(provider.fits !== undefined && { fits: (batch: readonly SetChange[]) => provider.fits?.(batch) ?? true }),
    ...(provider.close !== undefined && { close: async () => provider.close?.() }),
  }

  async function ownershipChanges(
    zone: ProviderZone,
    changes: readonly SetChange[],
    signal: AbortSignal,
  ): Promise<SetChange[]> {
    const subjects = new Map<string, SetChange[]>()
    for (const change of changes) {
      const { name } = markedSet((change.to ?? change.from)?.name ?? '') ?? { name: '' }
      subjects.set(name, [...(subjects.get(name) ?? []), change])
    }
    if (subjects.size === 0) return []
    const present = await provider.read(zone, namesToRead(subjects.keys()), signal)
    const seen = new Map(translate(present, options).map((set) => [setKey(set), set]))
    return [...subjects].flatMap(([name, own]) => ownershipOfName(name, own, present, seen))
  }

  function ownershipOfName(
    name: string,
    changes: readonly SetChange[],
    present: readonly ObservedRRset[],
    seen: ReadonlyMap<string, RRset>,
  ): SetChange[] {
    const marked = new Set<string>()
    for (const type of OWNED_TYPES)
      if (seen.has(setKey({ name: markerName(name, type), type: 'TXT' }))) marked.add(type)
    for (const { from, to } of changes) {
      const subject = to ?? from
      const type = markedSet(subject?.name ?? '')?.type ?? ''
      const found = seen.get(setKey({ name: subject?.name ?? '', type: 'TXT' }))
      if (!sameSet(found, from)) throw new ProviderError('BaseMoved', 'moved', `${name}: its ownership record changed`)
      if (to === undefined) marked.delete(type)
      else marked.add(type)
    }
    const before = present.find((set) => set.type === 'TXT' && set.name === originalMarkerName(name))
    const after = marked.size === 0 ? undefined : originalMarkerSet(name, options.identity, options.cnamesOf(name))
    if (marked.size > 0 && after === undefined)
      throw new ProviderError('RecordRejected', 'rejected', `${name}: its first label has more than 55 characters`)
    const legacy = present.find((set) => set.name === name && readOriginalMarker(set)?.owner === options.identity)
    return [
      ...(sameSet(before, after) ? [] : [{ from: before === undefined ? undefined : plain(before), to: after }]),
      ...(legacy === undefined ? [] : [{ from: plain(legacy), to: withoutLegacyMarker(legacy, options.identity) }]),
    ]
  }
}

/** The names and the ownership records of the names; markers of ours are not in the zone. */
function namesToRead(names: Iterable<string>): Set<string> {
  const asked = new Set<string>()
  for (const name of names) {
    if (isMarkerName(name)) continue
    asked.add(name)
    const marker = originalMarkerName(name)
    if (marker !== undefined) asked.add(marker)
  }
  return asked
}

function isMarkerChange({ from, to }: SetChange): boolean {
  const subject = to ?? from
  return subject?.type === 'TXT' && isMarkerName(subject.name)
}

function plain({ name, type, ttl, values }: RRset): RRset {
  return { name, type, ttl, values }
}

function translate(sets: readonly ObservedRRset[], { identity }: OriginalOwnershipOptions): ObservedRRset[] {
  const types = new Map<string, string[]>()
  for (const { name, type } of sets) if (OWNED_TYPES.includes(type)) types.set(name, [...(types.get(name) ?? []), type])
  const kept: ObservedRRset[] = []
  const markers = new Map<string, RRset>()
  const read = sets.map((set) => ({ set, marker: readOriginalMarker(set) }))
  const current = new Set(read.flatMap(({ marker }) => (marker?.isLegacy === false ? [marker.name] : [])))
  for (const { set, marker } of read) {
    if (marker === undefined || (marker.isLegacy && marker.owner !== identity)) {
      kept.push(set)
      continue
    }
    const { name, owner, isLegacy } = marker
    if (isLegacy && current.has(name)) continue
    const source = isLegacy ? LEGACY_SOURCE : sourceIdOf(name)
    // Without records the marker is still ownership: of the type that a load balancer publishes first.
    for (const type of types.get(name) ?? ['A']) {
      const subject = { name, type }
      const value = printMarker(subject, { owner: ownerIdOf(owner), cluster: ORIGINAL_CLUSTER, source, plan: 0 })
      const at = markerName(name, type)
      const values = new Set([...(markers.get(at)?.values ?? []), value])
      markers.set(at, { name: at, type: 'TXT', ttl: MARKER_TTL, values: [...values].sort(compareText) })
    }
  }
  // A zone that `seamark run` also writes has markers of its own at these names: two owners, which the planner refuses.
  const merged = kept.map((set) => {
    const synthetic = set.type === 'TXT' ? markers.get(set.name) : undefined
    if (synthetic === undefined) return set
    markers.delete(set.name)
    return { ...set, values: [...set.values, ...synthetic.values].sort(compareText) }
  })
  return [...merged, ...markers.values()]
}
