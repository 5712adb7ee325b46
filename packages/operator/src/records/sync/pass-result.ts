/** Reads the plans and outcomes of a pass: which names follow with a later pass, and whether a provider fails. */
import type { Reason } from '../../reasons.ts'
import type { Planned } from '../engine.ts'
import type { PlanOutcome } from '../execute/result.ts'

/** Names whose marker was written by this pass: the values of their source follow with the next plan. */
export function adoptedNames(outcomes: readonly (PlanOutcome | undefined)[]): string[] {
  return outcomes.flatMap((outcome) =>
    (outcome?.results ?? []).flatMap(({ change, result }) =>
      result === 'applied' && change.reason === 'Adopted' ? [change.group] : [],
    ),
  )
}

/** Deletions that no list of the sources confirmed. */
export function unconfirmedNames({ plans }: Planned): string[] {
  return plans.flatMap(({ refused }) =>
    refused.flatMap(({ name, code }) => (code === 'SourceUnconfirmed' || code === 'ClaimHeldByOther' ? [name] : [])),
  )
}

const OUTAGES: ReadonlySet<Reason> = new Set([
  'Stale',
  'ProviderUnavailable',
  'OutcomeUnknown',
  'ZoneNotFound',
  'ZoneNotStored',
])

/** True when the service, and not a guard or the record, is the reason that a change is not written. */
export function isOutage(code: Reason | undefined): boolean {
  return code !== undefined && OUTAGES.has(code)
}
