/**
 * Transfers ownership, name by name, while all programs keep running: plans that write markers and registry entries and
 * never a value. Pure.
 *
 *   adopt     ExternalDNS' or unowned → ours; ExternalDNS' entry stays beside our marker
 *   release   ours → as before the adoption: our marker is removed, ExternalDNS' entry is unchanged
 *   transfer  ours → another owner, or exclusively ours: the entry of the other owner is written, or ExternalDNS' removed
 *
 * Each change is one name and one batch; after an interruption, running the same command again completes the rest.
 */
import type { Reason } from '../../reasons.ts'
import { adoptionOf, claimOf, isAdoptable } from './adoption.ts'
import { EMPTY_STATE } from '../state/guard-state.ts'
import {
  claimText,
  printRegistryValue,
  registryNames,
  type RegistryOptions,
} from '../../rrset/external-dns-registry.ts'
import { ADOPTED, MARKER_TTL, type Marker, markerSet, printMarker } from '../../rrset/marker.ts'
import { removeEntries, type Owner, type Ownership, ownershipOf } from './ownership.ts'
import { baseOf, type Change, type Plan, type Refusal, type ZoneId } from './plan.ts'
import { compareText, type ObservedRRset } from '../../rrset/rrset.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import type { ZoneView } from './zone-view.ts'

export interface HandOver extends ZoneId {
  readonly view: ZoneView
  readonly owner: Owner
  readonly number: number
  readonly types: readonly string[]
  /** Canonical names. @default every name that was read */
  readonly names?: ReadonlySet<string>
}

/** Without names, only records of that owner are looked at: others were not asked for. */
export function planAdoption(input: HandOver, from: string): Plan {
  const isNamed = input.names !== undefined
  return collect(input, (set, ownership) => {
    if (ownership.kind === 'ours') return undefined
    if (ownership.kind !== 'theirs') return isNamed ? refuse('ForeignOwner', 'it is shared by others') : undefined
    if (!isNamed && !mayBeOf(ownership, from)) return undefined
    const claim = claimOf(ownership) ?? 'unmarked'
    if (!isAdoptable(ownership, input.view, set)) return refuse(ownership.code, ownership.message)
    if (claim !== from)
      return refuse(ownership.code, `it belongs to ${claim === 'unmarked' ? 'no owner' : claim}, not to ${from}`)
    return adoptionOf(set, ownership, input.view, { owner: input.owner, source: ADOPTED, number: input.number })
  })
}

/** An entry that cannot be read may be of any owner. */
function mayBeOf({ entries }: Extract<Ownership, { kind: 'theirs' }>, from: string): boolean {
  return entries.some(({ entry }) => entry === 'unknown' || claimText(entry) === from)
}

/** With `to`, an ExternalDNS registry entry is written where there is none, so that ExternalDNS owns the record. */
export function planRelease(input: HandOver, to?: { owner: string; registry: RegistryOptions }): Plan {
  return collect(input, (set, ownership) => {
    if (ownership.kind !== 'ours') return undefined
    const before = input.view.marked(set.name, set.type)?.set
    const after = markerSet(set, before, ownership.mine.value, undefined)
    const markers = to !== undefined && ownership.kept.length === 0 ? [entryFor(set, to, ownership.mine.marker)] : []
    const newOwner = to === undefined ? (ownership.mine.marker.from ?? 'no owner') : `external-dns/${to.owner}`
    return markerChange(input, set, { from: before, to: after }, markers, 'Released', `given to ${newOwner}`)
  })
}

export function planTransfer(input: HandOver, to: { owner: string; cluster: string }): Plan {
  return collect(input, (set, ownership) => {
    if (ownership.kind !== 'ours') return undefined
    const before = input.view.marked(set.name, set.type)?.set
    const marker: Marker = { ...ownership.mine.marker, owner: to.owner, cluster: to.cluster, plan: input.number }
    const after = markerSet(set, before, ownership.mine.value, printMarker(set, marker, input.owner.key))
    return markerChange(input, set, { from: before, to: after }, [], 'Transferred', `given to owner '${to.owner}'`)
  })
}

/** Exclusively ours: ExternalDNS' entry is removed, so it can no longer change the record. Adopt first. */
export function planExclusive(input: HandOver, from: string): Plan {
  return collect(input, (set, ownership) => {
    if (ownership.kind !== 'ours' || ownership.mine.marker.from !== from) return undefined
    const before = input.view.marked(set.name, set.type)?.set
    const { from: _from, ...marker } = ownership.mine.marker
    const after = markerSet(
      set,
      before,
      ownership.mine.value,
      printMarker(set, { ...marker, plan: input.number }, input.owner.key),
    )
    const entries = removeEntries(input.view, set.name, set.type, ownership.kept)
    return markerChange(input, set, { from: before, to: after }, entries, 'Transferred', `taken from ${from}`)
  })
}

function entryFor(
  set: { name: string; type: string },
  to: { owner: string; registry: RegistryOptions },
  { resource }: Marker,
): SetChange {
  const entry = { owner: to.owner, ...(resource !== undefined && { resource }) }
  const name = registryNames(set.name, set.type, to.registry)[0] ?? set.name
  return {
    from: undefined,
    to: { name, type: 'TXT', ttl: MARKER_TTL, values: [printRegistryValue(entry, to.registry)] },
  }
}

interface Refused {
  readonly code: Reason
  readonly why: string
}

const refuse = (code: Reason, why: string): Refused => ({ code, why })

function collect(
  input: HandOver,
  decide: (set: ObservedRRset, ownership: Ownership) => Change | Refused | undefined,
): Plan {
  const changes: Change[] = []
  const refused: Refusal[] = []
  for (const set of input.view.sets) {
    if (!input.types.includes(set.type) || (input.names !== undefined && !input.names.has(set.name))) continue
    // Markers and registry entries are not handed over; they state who owns the other sets.
    if (set.type === 'TXT' && input.names?.has(set.name) !== true) continue
    const decision = decide(set, ownershipOf(input.view, set.name, set.type, input.owner))
    if (decision === undefined) continue
    if ('op' in decision) changes.push(decision)
    else refused.push(refusalOf(input, set, decision))
  }
  changes.sort((a, b) => compareText(a.group, b.group) || compareText(a.name, b.name))
  return {
    provider: input.provider,
    zone: input.zone,
    number: input.number,
    owner: input.owner.id,
    base: baseOf(changes, input.view),
    scope: 'all',
    changes,
    refused,
    state: EMPTY_STATE,
  }
}

function markerChange(
  input: HandOver,
  set: { name: string; type: string },
  marker: SetChange,
  markers: readonly SetChange[],
  reason: Reason,
  message: string,
): Change {
  const subject = marker.to ?? marker.from
  return {
    op: marker.from === undefined ? 'create' : marker.to === undefined ? 'delete' : 'update',
    name: subject?.name ?? set.name,
    type: 'TXT',
    from: marker.from,
    to: marker.to,
    markers,
    reason,
    message: `${set.name} ${set.type} is ${message}; its values stay`,
    owner: input.owner.id,
    source: ADOPTED,
    risk: 'low',
    ttlEffect: 0,
    group: set.name,
    // It deletes no name.
    isApproved: true,
  }
}

function refusalOf(input: HandOver, set: ObservedRRset, { code, why }: Refused): Refusal {
  return {
    op: 'update',
    name: set.name,
    type: set.type,
    from: set,
    to: undefined,
    reason: 'Adopted',
    message: 'ownership stays as it is',
    owner: input.owner.id,
    source: ADOPTED,
    risk: 'low',
    ttlEffect: 0,
    code,
    why,
  }
}
