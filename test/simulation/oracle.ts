/**
 * Judges a run: against its invariants, against rest, and against the run without faults.
 *
 * The oracles: the scenario saw what it expects; the end state is the reference's (after mask.ts); every object was
 * created and deleted as often as in the reference; no invariant was false after any write. A controller that still
 * writes at the end has not converged.
 */
import type { Run } from './simulation.ts'
import type { Write } from './scenario.ts'

export interface Problem {
  readonly oracle: 'scenario' | 'invariant' | 'end state' | 'history' | 'rest'
  readonly message: string
  /** The write after which it showed. */
  readonly write?: number
}

/** A controller that has not written for this long has come to rest. */
export const restMs = 10 * 60_000

/** `leastRestMs`: for how long the controllers must not have written at the end. */
export function judge(run: Run, reference: Run, leastRestMs = restMs): Problem[] {
  return [
    ...(run.failure === undefined ? [] : [{ oracle: 'scenario' as const, message: run.failure }]),
    ...run.violations.map(({ invariant, write, message }) => ({
      oracle: 'invariant' as const,
      message: `${invariant}: ${message}`,
      write,
    })),
    ...compareEndStates(run.endState, reference.endState),
    ...compareHistories(run.history, reference.history),
    ...(run.quietMs >= leastRestMs
      ? []
      : [{ oracle: 'rest' as const, message: `last write ${run.quietMs} ms before the end` }]),
  ]
}

function compareEndStates(state: Run['endState'], wanted: Run['endState']): Problem[] {
  const names = new Set([...state.keys(), ...wanted.keys()])
  return [...names].toSorted().flatMap((name) => {
    const [is, should] = [state.get(name), wanted.get(name)]
    if (is === should) return []
    const message =
      is === undefined
        ? `${name} is missing`
        : should === undefined
          ? `${name} should not be there`
          : describe(name, is, should)
    return [{ oracle: 'end state' as const, message }]
  })
}

function describe(name: string, is: string, should: string): string {
  const wanted = new Set(should.split('\n'))
  const different = is.split('\n').filter((line) => !wanted.has(line))
  return `${name} differs: ${different.map((line) => line.trim()).join(' ') || 'fields are missing'}`
}

function compareHistories(history: readonly Write[], wanted: readonly Write[]): Problem[] {
  const [counts, expected] = [countWrites(history), countWrites(wanted)]
  return [...new Set([...counts.keys(), ...expected.keys()])].toSorted().flatMap((what) => {
    const [is, should] = [counts.get(what) ?? 0, expected.get(what) ?? 0]
    return is === should ? [] : [{ oracle: 'history' as const, message: `${what}: ${is} times instead of ${should}` }]
  })
}

/** Updates are not counted: a retried one is harmless, and what it wrote is in the end state. */
function countWrites(history: readonly Write[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { type, kind, key } of history) {
    if (type === 'update') continue
    const what = `${type} ${kind} ${key}`
    counts.set(what, (counts.get(what) ?? 0) + 1)
  }
  return counts
}
