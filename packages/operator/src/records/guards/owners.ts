/** Guards about the owner of a set, and whether its source is confirmed gone (INV-1, INV-2, INV-4, INV-14). */
import { setKey } from '../../rrset/rrset.ts'
import { ADOPTED } from '../../rrset/marker.ts'
import { findOtherCluster } from '../plan/ownership.ts'
import type { Objection } from '../plan/candidates.ts'
import { type Guard, isApproved, type PlanGuard } from './guard.ts'

/** Objections found by candidates.ts: foreign, forged, marked twice, invalid, without targets. */
export const ownedByUs: Guard = (candidate) => candidate.objection

/** Two clusters with the same owner id would delete each other's records: nothing is written until this is resolved. */
export const soleCluster: PlanGuard = (left, input) => {
  const other = findOtherCluster(input.view, input.owner)
  if (other === undefined) return new Map()
  const why = `owner '${input.owner.id}' is also used from cluster ${other}; give each cluster its own owner id`
  return new Map(left.map((candidate) => [candidate, { code: 'OwnerInOtherCluster', why }]))
}

export const lastTarget: Guard = ({ change, isRemoval }) => {
  if (isRemoval !== true || change.to === undefined || change.to.values.length > 0) return undefined
  return { code: 'LastTarget', why: `no other owner of ${change.name} has a target; the last one is kept` }
}

export const confirmedGone: Guard = (candidate, input) => {
  const { change, isRemoval, desired, switchesType } = candidate
  if (isRemoval !== true || desired !== undefined || switchesType === true) return undefined
  if (input.sources.gone.has(change.source) || input.sources.present.has(change.source)) return undefined
  const until = input.sources.restorable?.get(change.source)
  if (until !== undefined)
    return {
      code: 'SourceUnconfirmed',
      why: `source ${change.source} is gone, and its kind was installed after the record was written: it may still be restored`,
      until,
    }
  if (change.source === ADOPTED) return adoptedWithoutSource(change.name, isApproved(candidate, input))
  return {
    code: 'SourceUnconfirmed',
    why: `source ${change.source} is not in the cache, and a live read did not confirm that it was deleted`,
  }
}

/** Adopted by a command and never requested by a source: it is unknown whether the record is still needed. */
function adoptedWithoutSource(name: string, isApprovedDeletion: boolean): Objection | undefined {
  if (isApprovedDeletion) return undefined
  return {
    code: 'AdoptedWithoutSource',
    why: `${name} was adopted and no source requests it; create a source, or release its ownership with seamark release ${name.slice(0, -1)}, or delete it`,
    isApprovable: true,
  }
}

/** The next claimant waits until the old source is confirmed gone, and then for a grace period. */
export const handedOver: Guard = (candidate, input) => {
  const { desired, marker, change } = candidate
  if (desired === undefined || marker === undefined || marker.source === desired.source.uid) return undefined
  // Adopted by a command: it belongs to no source yet.
  if (candidate.effect === 'marker' || marker.source === ADOPTED || isApproved(candidate, input)) return undefined
  const { gone, present, namespaces } = input.sources
  if (!gone.has(marker.source) && !present.has(marker.source)) {
    const why = `${change.name} was written for source ${marker.source}, and a live read did not confirm that this one was deleted`
    return { code: 'ClaimHeldByOther', why, isApprovable: true }
  }
  // Publish hands a name over when its load balancer has it: until then its addresses would be answered unprobed.
  const { source, policy } = desired
  if (policy?.isOfLoadBalancer === true && namespaces?.get(marker.source) === source.namespace) return undefined
  const until = (input.state.waiting.get(setKey(change)) ?? input.now) + input.limits.handoverMs
  if (input.now >= until) return undefined
  return { code: 'ClaimPending', why: `source ${marker.source} was deleted a moment ago`, until }
}
