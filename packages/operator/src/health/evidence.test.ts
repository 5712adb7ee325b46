import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type SiteResult, weighEvidence as weigh } from './evidence.ts'
import { eventSpanMs, PROFILES } from './policy.ts'
import { initialState, nextState, type TargetState, type Verdict } from './verdict.ts'

const NOW_MS = 1_000_000
const SPAN_MS = eventSpanMs(PROFILES.default)
const weighEvidence = (self: SiteResult, others: readonly SiteResult[]) => weigh(self, others, SPAN_MS)

function stateOf(verdict: Verdict, last: 'pass' | 'fail', atMs: number): TargetState {
  return { ...initialState(0, verdict), last, streak: 1, streakSinceMs: atMs, lastResultMs: atMs }
}
const failing = (site: string, atMs = NOW_MS): SiteResult => ({ site, state: stateOf('healthy', 'fail', atMs) })
const passing = (site: string, atMs = NOW_MS): SiteResult => ({ site, state: stateOf('healthy', 'pass', atMs) })

describe('the evidence for a fall', () => {
  const self = failing('a')

  it.each<[name: string, others: SiteResult[], expected: string]>([
    ['there is no other site', [], 'clear'],
    ['only targets of its own site fail', [failing('a'), failing('a')], 'clear'],
    ['the only other site answers', [passing('b')], 'clear'],
    ['the only other site fails', [failing('b')], 'partitioned'],
    ['one of two other sites fails', [failing('b'), passing('c')], 'panic'],
    ['one of three other sites fails', [failing('b'), passing('c'), passing('d')], 'clear'],
    ['its own site answers elsewhere', [passing('a'), failing('b'), failing('c')], 'clear'],
    ['a site has one answering and one failing target', [failing('b'), passing('b')], 'clear'],
    ['the other site was last tested before the failure', [failing('b', NOW_MS - 1)], 'clear'],
  ])('when %s', (_, others, expected) => {
    expect(weighEvidence(self, others)).toBe(expected)
  })

  it('neither asks nor asks for targets that have no site', () => {
    expect(weighEvidence(self, [failing('')])).toBe('clear')
    expect(weighEvidence(failing(''), [failing('b'), failing('c')])).toBe('clear')
  })

  it('ignores sites that were down long before', () => {
    const downSinceMs = NOW_MS - SPAN_MS - 1
    const down: SiteResult = { site: 'b', state: { ...stateOf('unhealthy', 'fail', NOW_MS), lostMs: downSinceMs } }
    expect(weighEvidence(self, [down])).toBe('clear')
    const justDown: SiteResult = {
      site: 'b',
      state: { ...stateOf('unhealthy', 'fail', NOW_MS), lostMs: NOW_MS - SPAN_MS },
    }
    expect(weighEvidence(self, [justDown])).toBe('partitioned')
  })

  it('ignores sites that began to fail before the same event could have reached them, also while their fall is held', () => {
    const began = (atMs: number): SiteResult => ({
      site: 'b',
      state: { ...stateOf('healthy', 'fail', NOW_MS), streakSinceMs: atMs },
    })
    expect(weighEvidence(self, [began(NOW_MS - SPAN_MS - 1)])).toBe('clear')
    expect(weighEvidence(self, [began(NOW_MS - SPAN_MS)])).toBe('partitioned')
  })

  it('divides sites that were not tested since as those that were', () => {
    // Two of three tested sites pass: so do probably two of three of the others, and 3 + 4 fail while 2 + 8 answer.
    const earlier = [failing('b', NOW_MS), failing('c', NOW_MS)].map(({ site, state }) => ({
      site,
      state: { ...state, streakSinceMs: NOW_MS - 1 },
    }))
    const untested = Array.from({ length: 12 }, (_, index) => passing(`u${index}`, NOW_MS - 1))
    const answering = [passing('x'), passing('y')]
    expect(weighEvidence(self, [...earlier, ...answering])).toBe('panic')
    expect(weighEvidence(self, [...earlier, ...answering, ...untested])).toBe('clear')
    expect(weighEvidence(self, [failing('b'), failing('c'), failing('d'), ...answering, ...untested])).toBe('panic')
  })

  it('ignores targets that never passed', () => {
    const state = nextState(initialState(0), 'fail', PROFILES.default, 'clear', NOW_MS)
    expect(weighEvidence(self, [{ site: 'b', state }])).toBe('clear')
    const failed = [1, 2].reduce((last) => nextState(last, 'fail', PROFILES.default, 'clear', NOW_MS), state)
    expect(failed.verdict).toBe('unhealthy')
    expect(weighEvidence(self, [{ site: 'b', state: failed }])).toBe('clear')
  })

  it('does not depend on the order of the other targets', () => {
    const result = fc.record({
      site: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      state: fc
        .tuple(
          fc.constantFrom<Verdict>('unknown', 'healthy', 'unhealthy'),
          fc.constantFrom<'pass' | 'fail'>('pass', 'fail'),
          fc.integer({ min: NOW_MS - 5, max: NOW_MS + 5 }),
        )
        .map((parts) => stateOf(...parts)),
    })
    fc.assert(
      fc.property(fc.array(result), fc.array(fc.nat()), (others, keys) => {
        const shuffled = others
          .map((other, index) => ({ other, key: keys[index] ?? 0 }))
          .sort((a, b) => a.key - b.key)
          .map(({ other }) => other)
        expect(weighEvidence(self, shuffled)).toBe(weighEvidence(self, others))
      }),
    )
  })
})
