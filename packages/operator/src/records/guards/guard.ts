/** What a guard is, and what lets a held change go. */
import type { Candidate, Objection } from '../plan/candidates.ts'
import type { PlanInput } from '../plan/plan.ts'
import { setKey } from '../../rrset/rrset.ts'

export type Guard = (candidate: Candidate, input: PlanInput) => Objection | undefined
/** Gets every candidate that nobody objected to yet; returns those it objects to. */
export type PlanGuard = (left: readonly Candidate[], input: PlanInput) => ReadonlyMap<Candidate, Objection>

/** `seamark.io/release`: the name, its set, or the whole zone was let go by somebody. */
export function isReleased(candidate: Candidate, input: PlanInput): boolean {
  const { name } = candidate.change
  return input.released.has(name) || input.released.has(input.zone) || input.released.has(setKey(candidate.change))
}
