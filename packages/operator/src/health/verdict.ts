/**
 * The state machine of one target: probe results in, verdict out. Pure; times are monotonic milliseconds.
 *
 * Guarantees:
 * - A verdict changes to `unhealthy` only after `fall` consecutive failures, and to `healthy` only after `rise`
 *   consecutive successes. A target without a verdict needs one success (INV-6).
 * - Damping (INV-19): an ejected target stays out for `ejectionMs` (30 s) × consecutive ejections, at most ten times that. There is no such delay
 *   before an ejection, so the detection bound of INV-17 holds for flapping targets, too.
 * - An inconclusive result (the prober's own fault) changes nothing.
 * - What a fall needs besides the count is a clear `Evidence` (evidence.ts): while the prober seems partitioned the verdict
 *   is `unknown`, and while most sites fail at once it is held for at most `PANIC_HOLD_MS`.
 */
import type { ProbePolicy } from './policy.ts'

export type Verdict = 'unknown' | 'healthy' | 'unhealthy'

/** Whether the prober can vouch for its own network: `panic`, most sites fail at once; `partitioned`, all of them do. */
export type Evidence = 'clear' | 'panic' | 'partitioned'

export type ProbeOutcome = 'pass' | 'fail' | 'inconclusive'

export interface TargetState {
  readonly verdict: Verdict
  readonly sinceMs: number
  /** The last conclusive outcome, how often in a row, and since when. */
  readonly last: 'pass' | 'fail' | undefined
  readonly streak: number
  readonly streakSinceMs: number
  readonly lastResultMs: number | undefined
  /** Consecutive ejections; 0 again after as long in health as the longest of them lasts. */
  readonly ejections: number
  readonly ejectedUntilMs: number
  /** When it fell after it had been healthy; undefined for a target that is unhealthy and never passed. */
  readonly lostMs: number | undefined
  /** Why a fall is not reported, and since when. */
  readonly hold: { readonly evidence: 'panic' | 'partitioned'; readonly sinceMs: number } | undefined
}

export const EJECTION_BASE_MS = 30_000
const EJECTION_CAP = 10
export const EJECTION_CAP_MS = EJECTION_CAP * EJECTION_BASE_MS

export interface Ejection {
  /** Least time that a target which fell stays out; after the next falls twice, three times as long. @default 30 s */
  readonly ejectionMs?: number
}

/** While other sites answer, a failure of most targets counts after this time. */
export const PANIC_HOLD_MS = 300_000

/** `seed` is what is known from before, e.g. from an endpoint's status. */
export function initialState(nowMs: number, seed: Verdict = 'unknown'): TargetState {
  return {
    verdict: seed,
    sinceMs: nowMs,
    last: undefined,
    streak: 0,
    streakSinceMs: nowMs,
    lastResultMs: undefined,
    ejections: 0,
    ejectedUntilMs: nowMs,
    lostMs: undefined,
    hold: undefined,
  }
}

export function nextState(
  state: TargetState,
  outcome: ProbeOutcome,
  policy: Pick<ProbePolicy, 'rise' | 'fall'> & Ejection,
  evidence: Evidence,
  nowMs: number,
): TargetState {
  if (outcome === 'inconclusive') return state
  const continues = state.last === outcome
  const counted: TargetState = {
    ...state,
    last: outcome,
    streak: continues ? state.streak + 1 : 1,
    streakSinceMs: continues ? state.streakSinceMs : nowMs,
    lastResultMs: nowMs,
  }
  return outcome === 'pass' ? afterPass(counted, policy, nowMs) : afterFailure(counted, policy, evidence, nowMs)
}

function afterPass(
  state: TargetState,
  { rise, ejectionMs }: Pick<ProbePolicy, 'rise'> & Ejection,
  nowMs: number,
): TargetState {
  switch (state.verdict) {
    case 'healthy': {
      const isSettled = state.ejections > 0 && nowMs - state.sinceMs >= capOf(ejectionMs)
      return { ...state, hold: undefined, ...(isSettled && { ejections: 0 }) }
    }
    case 'unknown':
      return { ...state, verdict: 'healthy', sinceMs: nowMs, hold: undefined }
    case 'unhealthy':
      if (state.streak < rise || nowMs < state.ejectedUntilMs) return state
      return { ...state, verdict: 'healthy', sinceMs: nowMs, hold: undefined }
  }
}

function afterFailure(
  state: TargetState,
  { fall, ejectionMs }: Pick<ProbePolicy, 'fall'> & Ejection,
  evidence: Evidence,
  nowMs: number,
): TargetState {
  if (state.verdict === 'unhealthy' || state.streak < fall) return state
  switch (evidence) {
    case 'clear':
      return eject(state, ejectionMs, nowMs)
    case 'partitioned': {
      const hold = holdOf(state, 'partitioned', nowMs)
      return state.verdict === 'unknown' ? { ...state, hold } : { ...state, verdict: 'unknown', sinceMs: nowMs, hold }
    }
    case 'panic': {
      const hold = holdOf(state, 'panic', nowMs)
      return nowMs - hold.sinceMs >= PANIC_HOLD_MS ? eject(state, ejectionMs, nowMs) : { ...state, hold }
    }
  }
}

function holdOf(state: TargetState, evidence: 'panic' | 'partitioned', nowMs: number) {
  return state.hold?.evidence === evidence ? state.hold : { evidence, sinceMs: nowMs }
}

function capOf(ejectionMs = EJECTION_BASE_MS): number {
  return EJECTION_CAP * ejectionMs
}

function eject(state: TargetState, ejectionMs: number | undefined, nowMs: number): TargetState {
  const wasSettled = state.verdict === 'healthy' && nowMs - state.sinceMs >= capOf(ejectionMs)
  const ejections = (wasSettled ? 0 : state.ejections) + 1
  return {
    ...state,
    verdict: 'unhealthy',
    sinceMs: nowMs,
    hold: undefined,
    ejections,
    lostMs: state.verdict === 'healthy' || state.hold !== undefined ? nowMs : undefined,
    ejectedUntilMs: nowMs + Math.min(capOf(ejectionMs), (ejectionMs ?? EJECTION_BASE_MS) * ejections),
  }
}

/**
 * Until the next probe. `random` is in [0, 1). A fall that is held by a panic is weighed again at the edge interval until
 * every other target has been probed once since: then all results are in, and one interval is soon enough.
 */
export function nextDelayMs(state: TargetState, policy: ProbePolicy, random: number, nowMs: number): number {
  const isUndecided =
    (state.last === 'fail' && state.verdict !== 'unhealthy' && state.streak < policy.fall) ||
    (state.last === 'pass' && state.verdict === 'unhealthy' && state.streak < policy.rise) ||
    (state.hold?.evidence === 'panic' && nowMs - state.streakSinceMs < policy.intervalMs)
  return (isUndecided ? policy.edgeIntervalMs : policy.intervalMs) * (1 - policy.jitter * random)
}
