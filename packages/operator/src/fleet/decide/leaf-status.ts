/** The status of a LeafIngress from its decision. Pure. */
import { type Condition, setCondition, timestamp } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { LeafIngress, LeafIngressStatus } from '../../api/leaf-ingress.ts'
import type { LeafDecision, LeafObservation } from './leaf-phase.ts'
import type { ObservedLeaf } from './leaves.ts'

export function leafStatus(
  { leaf, seen, result }: ObservedLeaf,
  decision: LeafDecision,
  nowMs: number,
): LeafIngressStatus {
  const { status } = leaf
  // A time in the future was written by a clock that is ahead: waits would take that much longer.
  const isAhead = Date.parse(status?.phaseSince ?? '') > nowMs
  const isNew = status?.phase !== decision.phase || isAhead
  const isAdmitted = seen.isAdmitted ?? status?.admitted
  return {
    observedGeneration: leaf.metadata.generation ?? 0,
    phase: decision.phase,
    phaseSince: isNew || status?.phaseSince === undefined ? timestamp(nowMs) : status.phaseSince,
    reason: result === undefined || result.isGone ? decision.reason : result.reason,
    ...(seen.isApplied === undefined ? lastKnown(status) : freshStatus(leaf, seen)),
    ...(seen.isStale && { stale: true }),
    ...conditionsOf(leaf, result, nowMs),
    addresses: [...seen.addresses],
    ...(isAdmitted !== undefined && { admitted: isAdmitted }),
    ...(decision.drainStartedMs !== undefined && { drainStartedAt: timestamp(decision.drainStartedMs) }),
    // Of other reasons the time is when to look again, and changes with each look.
    ...(decision.reason === 'DrainWait' &&
      decision.againAtMs !== undefined && { waitsUntil: timestamp(Math.ceil(decision.againAtMs / 1000) * 1000) }),
  }
}

/** Only where a LeafIngress was refused, so that the others have one fact less to write. */
function conditionsOf(
  { metadata, status }: Immutable<LeafIngress>,
  result: ObservedLeaf['result'],
  nowMs: number,
): Pick<LeafIngressStatus, 'conditions'> {
  const before = status?.conditions ?? []
  const isRefused = result?.reason === 'LeafNotPlanned'
  if (!isRefused && before.length === 0) return {}
  const observedGeneration = metadata.generation ?? 0
  return {
    conditions: setCondition(
      before,
      isRefused
        ? { ...refusedLeaf(result.message), observedGeneration }
        : {
            type: 'Accepted',
            status: 'True',
            reason: 'Placed',
            message: 'it is what the manager renders',
            observedGeneration,
          },
      nowMs,
    ) as NonNullable<LeafIngressStatus['conditions']>,
  }
}

export function refusedLeaf(message: string): Pick<Condition, 'type' | 'status' | 'reason' | 'message'> {
  return { type: 'Accepted', status: 'False', reason: 'LeafNotPlanned', message }
}

/** What only the member has, as it was last read. */
function lastKnown(status: Immutable<LeafIngress>['status']): Partial<LeafIngressStatus> {
  const { appliedHash, remoteUID, remoteGeneration, endpointsReady } = status ?? {}
  return {
    ...(appliedHash !== undefined && { appliedHash }),
    ...(remoteUID !== undefined && { remoteUID }),
    ...(remoteGeneration !== undefined && { remoteGeneration }),
    ...(endpointsReady !== undefined && { endpointsReady }),
  }
}

function freshStatus({ spec }: Immutable<LeafIngress>, seen: LeafObservation): Partial<LeafIngressStatus> {
  return {
    ...(seen.isApplied === true && { appliedHash: spec.specHash }),
    ...(seen.remote !== undefined && { remoteUID: seen.remote.uid }),
    ...(seen.remote?.generation !== undefined && { remoteGeneration: seen.remote.generation }),
    ...(seen.endpointsReady !== undefined && { endpointsReady: seen.endpointsReady }),
  }
}
