import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { detectionBoundMs, PROFILES } from './policy.ts'
import {
  EJECTION_BASE_MS,
  EJECTION_CAP_MS,
  type Evidence,
  initialState,
  nextDelayMs,
  nextState,
  PANIC_HOLD_MS,
  type ProbeOutcome,
  type TargetState,
  type Verdict,
} from './verdict.ts'

const policy = PROFILES.default

/** Applies outcomes one second apart, beginning at `fromMs`. */
function play(
  state: TargetState,
  outcomes: readonly ProbeOutcome[],
  fromMs: number,
  evidence: Evidence = 'clear',
): TargetState {
  return outcomes.reduce(
    (current, outcome, index) => nextState(current, outcome, policy, evidence, fromMs + index * 1_000),
    state,
  )
}

const step = fc.record({
  outcome: fc.constantFrom<ProbeOutcome>('pass', 'fail', 'inconclusive'),
  evidence: fc.constantFrom<Evidence>('clear', 'panic', 'partitioned'),
  waitMs: fc.integer({ min: 1, max: 60_000 }),
})
const seeds = fc.constantFrom<Verdict>('unknown', 'healthy', 'unhealthy')

/** Every state on the way, with its time. */
function trace(seed: Verdict, steps: readonly { outcome: ProbeOutcome; evidence: Evidence; waitMs: number }[]) {
  const states = [{ state: initialState(0, seed), atMs: 0 }]
  for (const { outcome, evidence, waitMs } of steps) {
    const last = states.at(-1)!
    const atMs = last.atMs + waitMs
    states.push({ state: nextState(last.state, outcome, policy, evidence, atMs), atMs })
  }
  return states
}

describe('the verdict of a target', () => {
  it('is healthy after the first success of a target that was never judged', () => {
    expect(play(initialState(0), ['pass'], 0).verdict).toBe('healthy')
  })

  it('is unhealthy after exactly `fall` consecutive failures', () => {
    const healthy = play(initialState(0), ['pass'], 0)
    expect(play(healthy, ['fail', 'fail'], 1_000).verdict).toBe('healthy')
    expect(play(healthy, ['fail', 'fail', 'pass', 'fail', 'fail'], 1_000).verdict).toBe('healthy')
    expect(play(healthy, ['fail', 'fail', 'fail'], 1_000).verdict).toBe('unhealthy')
  })

  it('is not changed by inconclusive results, which do not break a streak either', () => {
    const healthy = play(initialState(0), ['pass'], 0)
    expect(
      play(
        healthy,
        Array.from({ length: 50 }, () => 'inconclusive' as const),
        1_000,
      ),
    ).toBe(healthy)
    expect(play(healthy, ['fail', 'inconclusive', 'fail', 'inconclusive', 'fail'], 1_000).verdict).toBe('unhealthy')
  })

  it('returns after `rise` successes, and not before its ejection is over', () => {
    const ejected = play(initialState(0, 'healthy'), ['fail', 'fail', 'fail'], 0)
    const early = nextState(nextState(ejected, 'pass', policy, 'clear', 3_000), 'pass', policy, 'clear', 4_000)
    expect(early.verdict).toBe('unhealthy')
    expect(nextState(early, 'pass', policy, 'clear', 2_000 + EJECTION_BASE_MS).verdict).toBe('healthy')
    const lateFirst = nextState(ejected, 'pass', policy, 'clear', 100_000)
    expect(lateFirst.verdict).toBe('unhealthy')
    expect(nextState(lateFirst, 'pass', policy, 'clear', 101_000).verdict).toBe('healthy')
  })

  it('stays out longer with each consecutive ejection, up to the cap, and is forgiven after long health', () => {
    let state = initialState(0, 'healthy')
    let atMs = 0
    const outForMs: number[] = []
    for (let round = 0; round < 12; round++) {
      state = play(state, ['fail', 'fail', 'fail'], atMs)
      outForMs.push(state.ejectedUntilMs - state.sinceMs)
      atMs = state.ejectedUntilMs + 1_000
      state = play(state, ['pass', 'pass'], atMs)
      expect(state.verdict).toBe('healthy')
      atMs += 5_000
    }
    expect(outForMs.slice(0, 3)).toEqual([EJECTION_BASE_MS, 2 * EJECTION_BASE_MS, 3 * EJECTION_BASE_MS])
    expect(Math.max(...outForMs)).toBe(EJECTION_CAP_MS)
    const settled = nextState(state, 'pass', policy, 'clear', state.sinceMs + EJECTION_CAP_MS)
    expect(settled.ejections).toBe(0)
  })

  it('is unknown, not unhealthy, while the prober seems partitioned', () => {
    const held = play(initialState(0, 'healthy'), ['fail', 'fail', 'fail', 'fail'], 0, 'partitioned')
    expect(held).toMatchObject({ verdict: 'unknown', hold: { evidence: 'partitioned' } })
    expect(nextState(held, 'fail', policy, 'partitioned', 10 * PANIC_HOLD_MS).verdict).toBe('unknown')
    expect(nextState(held, 'pass', policy, 'clear', 5_000)).toMatchObject({ verdict: 'healthy', hold: undefined })
    expect(nextState(held, 'fail', policy, 'clear', 5_000).verdict).toBe('unhealthy')
  })

  it('is held while most sites fail at once, for a limited time', () => {
    const held = play(initialState(0, 'healthy'), ['fail', 'fail', 'fail'], 0, 'panic')
    expect(held).toMatchObject({ verdict: 'healthy', hold: { evidence: 'panic', sinceMs: 2_000 } })
    expect(nextState(held, 'fail', policy, 'panic', 2_000 + PANIC_HOLD_MS - 1).verdict).toBe('healthy')
    expect(nextState(held, 'fail', policy, 'panic', 2_000 + PANIC_HOLD_MS).verdict).toBe('unhealthy')
    expect(nextState(held, 'fail', policy, 'clear', 4_000).verdict).toBe('unhealthy')
  })

  it('changes to unhealthy only on `fall` failures in a row, and back only on `rise` successes after the ejection', () => {
    fc.assert(
      fc.property(seeds, fc.array(step, { maxLength: 60 }), (seed, steps) => {
        const states = trace(seed, steps)
        for (const [index, { state, atMs }] of states.entries()) {
          const before = states[index - 1]?.state
          if (before === undefined || before.verdict === state.verdict) continue
          expect(state.sinceMs).toBe(atMs)
          if (state.verdict === 'unhealthy') expect(state).toMatchObject({ last: 'fail' })
          if (state.verdict === 'unhealthy') expect(state.streak).toBeGreaterThanOrEqual(policy.fall)
          if (before.verdict === 'unhealthy') {
            expect(state.verdict).toBe('healthy')
            expect(state.streak).toBeGreaterThanOrEqual(policy.rise)
            expect(atMs).toBeGreaterThanOrEqual(before.ejectedUntilMs)
          }
        }
      }),
    )
  })

  it('never becomes unhealthy while the evidence says partitioned', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const states = trace(
          'healthy',
          steps.map((each) => ({ ...each, evidence: 'partitioned' as const })),
        )
        expect(states.map(({ state }) => state.verdict)).not.toContain('unhealthy')
      }),
    )
  })

  it('changes at most four times a minute, whatever the results', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const states = trace(
          'healthy',
          steps.map((each) => ({ ...each, waitMs: (each.waitMs % 1_000) + 1 })),
        )
        const changes = states.filter(
          ({ state }, index) => index > 0 && states[index - 1]!.state.verdict !== state.verdict,
        )
        // Changes to and from unknown are not counted: they change no record.
        const ejections = changes.filter(({ state }) => state.verdict === 'unhealthy')
        for (const [index, { atMs }] of ejections.entries()) {
          const within = ejections.filter((other, at) => at >= index && other.atMs - atMs < 60_000)
          expect(within.length).toBeLessThanOrEqual(2)
        }
      }),
    )
  })
})

describe('the delay until the next probe', () => {
  it('is the edge interval only while results contradict the verdict and can still change it', () => {
    const healthy = play(initialState(0), ['pass'], 0)
    expect(nextDelayMs(healthy, policy, 0, 0)).toBe(5_000)
    expect(nextDelayMs(play(healthy, ['fail'], 1_000), policy, 0, 1_000)).toBe(1_000)
    expect(nextDelayMs(play(healthy, ['fail', 'fail', 'fail'], 1_000), policy, 0, 3_000)).toBe(5_000)
    const ejected = play(healthy, ['fail', 'fail', 'fail'], 1_000)
    expect(nextDelayMs(play(ejected, ['pass'], 5_000), policy, 0, 5_000)).toBe(1_000)
    expect(nextDelayMs(play(ejected, ['pass', 'pass'], 5_000), policy, 0, 6_000)).toBe(5_000)
  })

  it('is the edge interval for a fall in a panic until every other target was probed once', () => {
    const held = play(play(initialState(0), ['pass'], 0), ['fail', 'fail', 'fail'], 1_000, 'panic')
    expect(held).toMatchObject({ verdict: 'healthy', hold: { evidence: 'panic' } })
    expect(nextDelayMs(held, policy, 0, 3_000)).toBe(1_000)
    expect(nextDelayMs(held, policy, 0, 6_000)).toBe(5_000)
  })

  it('is shortened by jitter, never lengthened', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 0.999_999, noNaN: true }), (random) => {
        const delayMs = nextDelayMs(initialState(0, 'healthy'), policy, random, 0)
        expect(delayMs).toBeLessThanOrEqual(5_000)
        expect(delayMs).toBeGreaterThan(4_499)
      }),
    )
  })

  it('gives the detection bounds of the two profiles', () => {
    expect(detectionBoundMs(PROFILES.default)).toBe(13_000)
    expect(detectionBoundMs(PROFILES.fast)).toBe(3_000)
  })
})
