/** Whether a step of a plan would change anything on the server. Shared by `--dry-run`, `--shadow` and `explain`. */
import { createLearnedDefaults, type Informers, decideApply, type ApplyDecision } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import type { DesiredChild } from './child.ts'
import { diffApply } from './object-diff.ts'
import { KIND_OF_ROLE } from './plan.ts'

export type StepEffect =
  | { readonly state: 'equal' }
  | { readonly state: 'absent' | 'different'; readonly lines: readonly string[] }

export function compareStep(desired: DesiredChild, informers: Pick<Informers, 'get' | 'ownFields'>): StepEffect {
  const kind = KIND_OF_ROLE[desired.role]
  const want = desired.object
  const live = informers.get(kind, keyOf(want))
  const fields = informers.ownFields(kind, keyOf(want), FIELD_MANAGER)
  const verdict = decideApply({ kind, want, live, fields, defaults: createLearnedDefaults() })
  if (verdict.noop) return { state: 'equal' }
  if (live === undefined) return { state: 'absent', lines: diffApply(want, live) }
  const lines = diffApply(want, live, removedBy(verdict))
  // A default that the server set in an atomic list cannot be recognised from outside, and is not a requested difference.
  if (verdict.reason === 'Undecided' && lines.length === 0) return { state: 'equal' }
  return {
    state: 'different',
    lines: lines.length > 0 ? lines : [`~ ${verdict.path.replace(/^\./, '')} (${verdict.reason})`],
  }
}

function removedBy(verdict: Extract<ApplyDecision, { noop: false }>): string[] {
  return verdict.reason === 'Removes' ? [verdict.path.replace(/^\./, '')] : []
}
