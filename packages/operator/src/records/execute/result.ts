/** The outcome of a plan: one result per change, in the order of the plan. Produced by the executor, used by every report. */
import type { Reason } from '../../reasons.ts'
import type { Change, Plan } from '../plan/plan.ts'
import { setKey } from '../../rrset/rrset.ts'

export interface ChangeResult {
  readonly change: Change
  /** `applied`: written now; `already`: the zone contained it; `refused`: not written, see `code`. */
  readonly result: 'applied' | 'already' | 'refused'
  readonly code?: Reason
  readonly why?: string
}

export interface PlanOutcome {
  readonly plan: Plan
  readonly results: readonly ChangeResult[]
  /** Number of `apply` calls. */
  readonly calls: number
}

export function failuresOf(outcome: PlanOutcome): readonly ChangeResult[] {
  return outcome.results.filter(({ result }) => result === 'refused')
}

/** One line per set and code, for logs and Events. */
export function describeResult({ change, result, code, why }: ChangeResult): string {
  return `${setKey(change)} ${change.op} ${result}${code === undefined ? '' : ` ${code}: ${why ?? ''}`}`
}
