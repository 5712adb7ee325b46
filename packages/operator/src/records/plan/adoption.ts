/**
 * Adoption of an RRset that another program wrote: only what was named exactly, and only by writing a marker (INV-7).
 *
 * The data is unchanged; the values of the source follow with the next plan, once the marker exists. The entry of the
 * previous owner is kept beside our marker, so that removing our marker returns the set to it.
 */
import type { Candidate } from './candidates.ts'
import { claimText } from '../../rrset/external-dns-registry.ts'
import { isFieldText, type Marker, markerSet, printMarker } from '../../rrset/marker.ts'
import type { Owner, Ownership } from './ownership.ts'
import type { Change, Desired, PlanInput } from './plan.ts'
import { canonicalValue, isInvalid, type RRset, sameValues, sortedUnique } from '../../rrset/rrset.ts'
import type { ZoneView } from './zone-view.ts'

/** Undefined: the desired RRset does not request an adoption, or the set cannot be adopted. */
export function adoptionCandidate(
  desired: Desired,
  ownership: Extract<Ownership, { kind: 'theirs' }>,
  present: RRset | undefined,
  input: PlanInput,
): Candidate | undefined {
  const { set, source, policy } = desired
  if (policy?.adopt === undefined || present === undefined || !isAdoptable(ownership, input.view, set)) return undefined
  const change = adoptionOf(set, ownership, input.view, {
    owner: input.owner,
    source: source.uid,
    number: input.number,
    ...(source.revision !== undefined && { revision: source.revision }),
  })
  if (isNamed(policy.adopt, ownership, present)) return { change, effect: 'marker', desired }
  const why = `the annotation names '${policy.adopt}', the zone has ${present.values.join(', ')} of ${claimOf(ownership) ?? 'no owner'}`
  return { change, effect: 'marker', desired, objection: { code: 'AdoptionMismatch', why } }
}

/** An unmarked plain record, or one that ExternalDNS or dnslb-controller-manager owns. */
export function isAdoptable(
  ownership: Extract<Ownership, { kind: 'theirs' }>,
  view: ZoneView,
  set: { name: string; type: string },
): boolean {
  if (view.isOpaque(set.name, set.type) || view.marked(set.name, set.type) !== undefined) return false
  return (
    ownership.code === 'UnownedRecordExists' || (ownership.code === 'ForeignOwner' && claimOf(ownership) !== undefined)
  )
}

/** `external-dns/OWNER` or `dnslb/IDENTITY` of the only owner that claims it; undefined when there is none, or more than one. */
export function claimOf(ownership: Extract<Ownership, { kind: 'theirs' }>): string | undefined {
  const claims = new Set(
    ownership.entries.map(({ entry }) => (entry === 'unknown' || entry.owner === '' ? '' : claimText(entry))),
  )
  const [claim] = claims
  return claims.size === 1 && claim !== '' ? claim : undefined
}

/** Of the entry of ExternalDNS, as far as a marker can contain it. */
function resourceOf({ entries }: Extract<Ownership, { kind: 'theirs' }>): Pick<Marker, 'resource'> {
  for (const { entry } of entries)
    if (entry !== 'unknown' && entry.resource !== undefined && isFieldText(entry.resource))
      return { resource: entry.resource }
  return {}
}

function isNamed(adopt: string, ownership: Extract<Ownership, { kind: 'theirs' }>, present: RRset): boolean {
  const claim = claimOf(ownership)
  if (claim !== undefined) return adopt === claim
  const named = adopt.split(',').map((value) => canonicalValue(present.type, value.trim()))
  const values = named.flatMap((value) => (isInvalid(value) ? [] : [value]))
  return values.length === named.length && sameValues(sortedUnique(values), present.values)
}

/** The change that writes only our marker. */
export function adoptionOf(
  set: { name: string; type: string },
  ownership: Extract<Ownership, { kind: 'theirs' }>,
  view: ZoneView,
  by: { owner: Owner; source: string; number: number; revision?: string },
): Change {
  const claim = claimOf(ownership)
  const marker: Marker = {
    owner: by.owner.id,
    cluster: by.owner.cluster,
    source: by.source,
    plan: by.number,
    ...(by.revision !== undefined && { revision: by.revision }),
    ...(claim !== undefined && { from: claim }),
    ...resourceOf(ownership),
  }
  const before = view.marked(set.name, set.type)?.set
  const to = markerSet(set, before, undefined, printMarker(set, marker, by.owner.key))
  const name = to?.name ?? set.name
  return {
    op: before === undefined ? 'create' : 'update',
    name,
    type: 'TXT',
    from: before,
    to,
    markers: [],
    reason: 'Adopted',
    message: `${set.name} ${set.type} is taken over${claim === undefined ? '' : ` from ${claim}`}; its values stay`,
    owner: by.owner.id,
    source: by.source,
    risk: 'low',
    ttlEffect: 0,
    group: set.name,
  }
}
