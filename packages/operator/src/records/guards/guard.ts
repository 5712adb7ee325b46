/** The types of guards, and the check whether a held change is approved. */
import type { Candidate, Objection } from '../plan/candidates.ts'
import type { PlanInput } from '../plan/plan.ts'
import { changeKey } from '../plan/held-set.ts'
import { approvedKeys } from '../../safety/approval.ts'

export type Guard = (candidate: Candidate, input: PlanInput) => Objection | undefined
/** Receives every candidate without an objection so far; returns those it objects to. */
export type PlanGuard = (left: readonly Candidate[], input: PlanInput) => ReadonlyMap<Candidate, Objection>

/** Computed once per plan: several guards use it for every candidate. */
const approved = new WeakMap<PlanInput, ReadonlySet<string>>()

/** A valid approval covers exactly this change. */
export function isApproved(candidate: Candidate, input: PlanInput): boolean {
  let keys = approved.get(input)
  if (keys === undefined) {
    keys = approvedKeys(input.state, input.now)
    approved.set(input, keys)
  }
  return keys.size > 0 && keys.has(changeKey(candidate.change))
}
