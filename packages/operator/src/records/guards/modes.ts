/** Guards that hold everything: observe mode and the kill switch. Evaluated last, so that a plan still shows what it would do. */
import type { Candidate, Objection } from '../plan/candidates.ts'
import type { PlanGuard } from './guard.ts'

export const notObserving: PlanGuard = (left, input) =>
  input.mode === 'observe'
    ? all(left, { code: 'ObserveMode', why: `zone ${input.zone} is in observe mode` })
    : new Map()

export const notPaused: PlanGuard = (left, input) =>
  input.isPaused
    ? all(left, {
        code: 'Paused',
        why: 'writing is paused; to resume, remove seamark.io/pause from ConfigMap seamark, or pause from the configuration',
      })
    : new Map()

function all(left: readonly Candidate[], objection: Objection): ReadonlyMap<Candidate, Objection> {
  return new Map(left.map((candidate) => [candidate, objection]))
}
