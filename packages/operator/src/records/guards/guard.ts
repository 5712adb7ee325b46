/** What a guard is, and what lets a held change pass. */
import type { Candidate, Objection } from '../plan/candidates.ts'
import type { PlanInput } from '../plan/plan.ts'
import { changeKey } from '../plan/held-set.ts'
import { approvedKeys } from '../state/approval.ts'

export type Guard = (candidate: Candidate, input: PlanInput) => Objection | undefined
/** Gets every candidate that nobody objected to yet; returns those it objects to. */
export type PlanGuard = (left: readonly Candidate[], input: PlanInput) => ReadonlyMap<Candidate, Objection>

/** Read once per plan: several guards ask for it, about every candidate. */
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
