/**
 * The guards, in order of evaluation. The first objection wins; a change with an objection is refused and stays visible
 * with its code. `CHANGE_GUARDS` evaluate one change, `PLAN_GUARDS` all changes without an objection.
 *
 * The guard state is computed from the changes that passed all guards, so a change held for one reason spends no budget
 * of another.
 */
import type { Candidate, Objection } from '../plan/candidates.ts'
import type { GuardState } from '../state/guard-state.ts'
import type { PlanInput, Refusal } from '../plan/plan.ts'
import { deleteBudget, quarantine, stateAfter, retargetBreaker, shrinkBreaker } from './breakers.ts'
import { type Guard, isApproved, type PlanGuard } from './guard.ts'
import { notObserving, notPaused } from './modes.ts'
import {
  cnameAlone,
  notBesideOthers,
  protectedNames,
  typeAllowed,
  typeSwitchInOneTransaction,
  withinDnsLimits,
} from './names.ts'
import { confirmedGone, handedOver, lastTarget, ownedByUs, soleCluster } from './owners.ts'

const CHANGE_GUARDS: readonly Guard[] = [
  ownedByUs, // not ours, unusable, or without targets: found by candidates.ts
  typeAllowed, // only types this zone is managed for
  withinDnsLimits, // names and sets that DNS has no room for, markers included
  cnameAlone, // no other data beside a CNAME (RFC 1034 §3.6.2)
  typeSwitchInOneTransaction, // A to CNAME and back never leaves a gap
  protectedNames, // apex, wildcards and delegations need an approval
  notBesideOthers, // nothing new where others have records, below delegations, for their hosts
  lastTarget, // a shared name keeps at least one value
  confirmedGone, // a source that is missing from the cache is not a deleted source
  handedOver, // a name changes its source only after the old one is gone
]

const PLAN_GUARDS: readonly PlanGuard[] = [
  soleCluster, // our owner id from another cluster: zero writes
  shrinkBreaker, // too many sources gone at once
  retargetBreaker, // too many targets changed without their sources
  quarantine, // deletions in quarantine stay there for its whole period
  deleteBudget, // names a zone may lose per ten minutes
  notObserving,
  notPaused,
]

export function judge(
  candidates: readonly Candidate[],
  input: PlanInput,
): { passed: Candidate[]; refused: Refusal[]; state: GuardState } {
  const objections = new Map<Candidate, Objection>()
  for (const candidate of candidates) {
    const objection = firstObjection(candidate, input)
    if (objection !== undefined) objections.set(candidate, objection)
  }
  spreadInGroups(candidates, objections)
  for (const guard of PLAN_GUARDS) {
    const left = candidates.filter((candidate) => !objections.has(candidate))
    for (const [candidate, objection] of guard(left, input)) objections.set(candidate, objection)
    spreadInGroups(candidates, objections)
  }
  const passed = candidates
    .filter((candidate) => !objections.has(candidate))
    .map((candidate) =>
      isApproved(candidate, input) ? { ...candidate, change: { ...candidate.change, isApproved: true } } : candidate,
    )
  const refused = [...objections].map(([candidate, objection]) => refusalOf(candidate, objection))
  return { passed, refused, state: stateAfter(passed, objections, input) }
}

function firstObjection(candidate: Candidate, input: PlanInput): Objection | undefined {
  for (const guard of CHANGE_GUARDS) {
    const objection = guard(candidate, input)
    if (objection !== undefined) return objection
  }
  return undefined
}

/** A change of type is a delete and a create: when one of them is refused, so is the other. */
function spreadInGroups(candidates: readonly Candidate[], objections: Map<Candidate, Objection>): void {
  if (objections.size === 0) return
  const switching = new Map<string, Candidate[]>()
  for (const candidate of candidates) {
    if (!isTypeSwitch(candidate)) continue
    const group = switching.get(candidate.change.group) ?? []
    group.push(candidate)
    switching.set(candidate.change.group, group)
  }
  for (const group of switching.values()) {
    const refused = group.find((candidate) => objections.has(candidate))
    const objection = refused === undefined ? undefined : objections.get(refused)
    if (objection === undefined) continue
    for (const candidate of group) if (!objections.has(candidate)) objections.set(candidate, objection)
  }
}

function isTypeSwitch(candidate: Candidate): boolean {
  return candidate.switchesType === true
}

function refusalOf(candidate: Candidate, objection: Objection): Refusal {
  const { markers: _markers, group: _group, ...change } = candidate.change
  return {
    ...change,
    code: objection.code,
    why: objection.why,
    ...(objection.until !== undefined && { until: objection.until }),
    ...(objection.isApprovable === true && { isApprovable: true }),
    ...(objection.holder !== undefined && { holder: objection.holder }),
  }
}
