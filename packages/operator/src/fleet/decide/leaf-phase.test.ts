import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PHASES, type Phase } from '../../api/leaf-ingress.ts'
import { decideLeaf, isServing, type LeafDecision, type LeafFacts } from './leaf-phase.ts'

const timing = {
  warmMs: 5_000,
  drainMs: 60_000,
  cacheMs: 10_000,
  minHoldMs: 60_000,
  debounceMs: 10_000,
  propagationMs: 120_000,
}

function leaf(phase: Phase, changes: Partial<LeafFacts> = {}): LeafFacts {
  return {
    phase,
    phaseSinceMs: 0,
    lifecycle: 'Active',
    isApplied: true,
    isAdmitted: true,
    hasAddresses: true,
    endpointsReady: 1,
    probe: 'healthy',
    isProbeRequired: false,
    othersServing: 1,
    dns: 'present',
    isWithdrawn: false,
    isReplacementAnswered: true,
    drainStartedMs: undefined,
    drainDeadlineMs: undefined,
    nowMs: 1_000_000,
    timing,
    ...changes,
  }
}

const short = ({ phase, reason, dns }: LeafDecision) => `${phase} ${reason} ${dns}`

/** Every phase × every event: what a leaf becomes. */
const EVENTS: Record<string, Partial<LeafFacts>> = {
  'not applied': { isApplied: false, isAdmitted: false, probe: 'unknown', dns: 'absent' },
  'not admitted': { isAdmitted: false, probe: 'unknown' },
  'admitted, probe pending': { probe: 'unknown', isProbeRequired: true },
  healthy: {},
  'no endpoints': { endpointsReady: 0 },
  'probe failed': { probe: 'unhealthy' },
  'probe failed, alone': { probe: 'unhealthy', othersServing: 0 },
  'member unreadable': { isApplied: undefined, isAdmitted: undefined, endpointsReady: undefined },
  'drain, in DNS': { lifecycle: 'Draining' },
  'drain, out of DNS': { lifecycle: 'Draining', dns: 'absent' },
  'drain, waited': { lifecycle: 'Draining', dns: 'absent', drainStartedMs: 900_000 },
  'drain, alone': { lifecycle: 'Draining', othersServing: 0 },
  'no traffic': { lifecycle: 'NoTraffic', dns: 'absent' },
}

describe('the state machine of a leaf', () => {
  it('counts a leaf as serving only while it is wanted and nothing is known against it', () => {
    expect(isServing(leaf('Active'))).toBe(true)
    expect(isServing(leaf('Active', { isAdmitted: undefined, endpointsReady: undefined, probe: 'unknown' }))).toBe(true)
    const against: Partial<LeafFacts>[] = [
      { isAdmitted: false },
      { endpointsReady: 0 },
      { probe: 'unhealthy' },
      { lifecycle: 'NoTraffic' },
      { lifecycle: 'Draining' },
    ]
    expect(against.map((changes) => isServing(leaf('Active', changes)))).toEqual(against.map(() => false))
  })

  it('keeps the time of the withdrawal of a leaf without traffic, which servers need not be asked about again', () => {
    const waiting = { lifecycle: 'NoTraffic', dns: 'absent', drainStartedMs: 900_000 } as const
    expect(decideLeaf(leaf('Draining', waiting))).toMatchObject({ reason: 'NoTrafficTaint', drainStartedMs: 900_000 })
  })

  it('decides every phase × event', () => {
    const table = Object.entries(EVENTS).map(
      ([event, changes]) => `${event}: ${PHASES.map((phase) => short(decideLeaf(leaf(phase, changes)))).join(' | ')}`,
    )
    expect(table).toMatchInlineSnapshot(`
      [
        "not applied: Pending ApplyPending none | Pending ApplyPending none | Pending ApplyPending none | Pending ApplyPending none | Unhealthy AdmissionLost withdraw | Pending ApplyPending none | Unhealthy AdmissionLost withdraw | Pending ApplyPending none",
        "not admitted: Applied AdmissionPending none | Applied AdmissionPending none | Applied AdmissionPending none | Applied AdmissionPending none | Unhealthy AdmissionLost withdraw | Applied AdmissionPending none | Unhealthy AdmissionLost withdraw | Applied AdmissionPending none",
        "admitted, probe pending: Warming ProbePending offer | Warming ProbePending offer | Warming ProbePending offer | Warming ProbePending offer | Active Serving offer | Active Serving offer | Active Serving offer | Warming ProbePending offer",
        "healthy: Active Serving offer | Active Serving offer | Active Serving offer | Active Serving offer | Active Serving offer | Active Serving offer | Active Serving offer | Active Serving offer",
        "no endpoints: Admitted NoReadyEndpoints none | Admitted NoReadyEndpoints none | Admitted NoReadyEndpoints none | Admitted NoReadyEndpoints none | Unhealthy NoReadyEndpoints withdraw | Unhealthy NoReadyEndpoints withdraw | Unhealthy NoReadyEndpoints withdraw | Admitted NoReadyEndpoints none",
        "probe failed: Warming ProbePending offer | Warming ProbePending offer | Warming ProbePending offer | Warming ProbePending offer | Unhealthy ProbeFailed withdraw | Unhealthy ProbeFailed withdraw | Unhealthy ProbeFailed withdraw | Warming ProbePending offer",
        "probe failed, alone: Warming ProbePending offer | Warming ProbePending offer | Warming ProbePending offer | Warming ProbePending offer | Unhealthy ProbeFailed offer | Unhealthy ProbeFailed offer | Unhealthy ProbeFailed offer | Warming ProbePending offer",
        "member unreadable: Pending ApplyPending none | Applied AdmissionPending none | Active Serving offer | Active Serving offer | Active Serving offer | Active Serving offer | Active Serving offer | Pending ApplyPending none",
        "drain, in DNS: Drained DrainCompleted none | Drained DrainCompleted none | Draining WaitingForDns withdraw | Draining WaitingForDns withdraw | Draining WaitingForDns withdraw | Draining WaitingForDns withdraw | Draining WaitingForDns withdraw | Drained DrainCompleted none",
        "drain, out of DNS: Drained DrainCompleted none | Drained DrainCompleted none | Draining DrainWait withdraw | Draining DrainWait withdraw | Draining DrainWait withdraw | Draining DrainWait withdraw | Draining DrainWait withdraw | Drained DrainCompleted none",
        "drain, waited: Drained DrainCompleted none | Drained DrainCompleted none | Drained DrainCompleted none | Drained DrainCompleted none | Drained DrainCompleted none | Drained DrainCompleted none | Drained DrainCompleted none | Drained DrainCompleted none",
        "drain, alone: Drained DrainCompleted none | Drained DrainCompleted none | Draining NoReplacement offer | Draining NoReplacement offer | Draining NoReplacement offer | Draining NoReplacement offer | Draining NoReplacement offer | Drained DrainCompleted none",
        "no traffic: Applied AdmissionPending none | Applied AdmissionPending none | Draining NoTrafficTaint withdraw | Draining NoTrafficTaint withdraw | Draining NoTrafficTaint withdraw | Draining NoTrafficTaint withdraw | Draining NoTrafficTaint withdraw | Applied AdmissionPending none",
      ]
    `)
  })

  it('lets a leaf of a root that may not have its hosts go without a replacement, after caches have forgotten it', () => {
    const given = {
      lifecycle: 'Draining',
      othersServing: 0,
      isReplacementAnswered: false,
      needsReplacement: false,
    } as const
    expect(short(decideLeaf(leaf('Active', given)))).toBe('Draining WaitingForDns withdraw')
    expect(short(decideLeaf(leaf('Draining', { ...given, dns: 'absent' })))).toBe('Draining DrainWait withdraw')
    const waited = { ...given, dns: 'absent', drainStartedMs: 900_000 } as const
    expect(short(decideLeaf(leaf('Draining', waited)))).toBe('Drained DrainCompleted none')
  })

  it('withdraws a leaf that lost its address after the debounce, and keeps it when it is the last', () => {
    const lost = leaf('Active', { isAdmitted: false, probe: 'unknown' })
    expect(decideLeaf(lost)).toMatchObject({ phase: 'Unhealthy', dns: 'withdraw', againAtMs: 1_010_000 })
    expect(decideLeaf({ ...lost, phase: 'Unhealthy', phaseSinceMs: 999_999 }).phase).toBe('Unhealthy')
    expect(decideLeaf({ ...lost, phase: 'Unhealthy' }).phase).toBe('Applied')
    expect(decideLeaf({ ...lost, othersServing: 0 })).toMatchObject({ phase: 'Active', dns: 'offer' })
  })

  it('serves without a probe after the wait, and with a required probe only when it passed', () => {
    const waiting = leaf('Admitted', { probe: 'unknown', phaseSinceMs: 998_000 })
    expect(decideLeaf(waiting)).toMatchObject({ phase: 'Admitted', againAtMs: 1_003_000 })
    expect(decideLeaf({ ...waiting, phaseSinceMs: 995_000 }).phase).toBe('Active')
    expect(decideLeaf({ ...waiting, phaseSinceMs: 0, isProbeRequired: true }).phase).toBe('Warming')
  })

  it('holds a recovered leaf down for the minimum, unless it is the only one', () => {
    const back = leaf('Unhealthy', { phaseSinceMs: 990_000 })
    expect(decideLeaf(back)).toMatchObject({ phase: 'Unhealthy', reason: 'HoldingDown', againAtMs: 1_050_000 })
    expect(decideLeaf({ ...back, othersServing: 0 }).phase).toBe('Active')
  })

  it('starts the wait of a drain when DNS was verified, not before', () => {
    const draining = leaf('Draining', { lifecycle: 'Draining', phaseSinceMs: 0 })
    expect(decideLeaf({ ...draining, dns: 'unknown' })).toMatchObject({ phase: 'Draining', drainStartedMs: undefined })
    const verified = decideLeaf({ ...draining, dns: 'absent' })
    expect(verified).toMatchObject({ phase: 'Draining', drainStartedMs: 1_000_000, againAtMs: 1_060_000 })
    const later = { ...draining, dns: 'absent' as const, drainStartedMs: verified.drainStartedMs, nowMs: 1_060_000 }
    expect(decideLeaf(later).phase).toBe('Drained')
  })

  it('shortens the wait of a drain at its deadline to what caches need, and waits for DNS and a replacement all the same', () => {
    const draining = leaf('Draining', { lifecycle: 'Draining', dns: 'absent', drainStartedMs: 995_000 })
    const at = (drainDeadlineMs: number, changes: Partial<LeafFacts> = {}) =>
      decideLeaf({ ...draining, drainDeadlineMs, ...changes })
    expect(at(1_020_000)).toMatchObject({ reason: 'DrainWait', againAtMs: 1_020_000 })
    expect(at(2_000_000)).toMatchObject({ reason: 'DrainWait', againAtMs: 1_055_000 })
    expect(at(0)).toMatchObject({ reason: 'DrainWait', againAtMs: 1_005_000 })
    expect(short(at(1_000_000, { drainStartedMs: 980_000 }))).toBe('Drained DrainDeadlineReached none')
    expect(short(at(1_000_000, { drainStartedMs: 930_000 }))).toBe('Drained DrainCompleted none')
    expect(short(at(0, { dns: 'present' }))).toBe('Draining WaitingForDns withdraw')
    expect(short(at(0, { dns: 'unknown' }))).toBe('Draining WaitingForDns withdraw')
    expect(short(at(0, { othersServing: 0 }))).toBe('Draining NoReplacement offer')
    expect(short(at(0, { lifecycle: 'NoTraffic' }))).toBe('Draining NoTrafficTaint withdraw')
  })

  it('asks DNS every two seconds at first, and less often when it takes longer than expected', () => {
    const draining = leaf('Draining', { lifecycle: 'Draining', phaseSinceMs: 999_000 })
    expect(decideLeaf(draining).againAtMs).toBe(1_002_000)
    expect(decideLeaf({ ...draining, phaseSinceMs: 800_000 }).againAtMs).toBe(1_030_000)
  })

  it('cancels a drain when the replacement fails, and clears its clock', () => {
    const draining = leaf('Draining', {
      lifecycle: 'Draining',
      dns: 'absent',
      drainStartedMs: 999_000,
      othersServing: 0,
    })
    expect(decideLeaf(draining)).toMatchObject({ reason: 'NoReplacement', dns: 'offer', drainStartedMs: undefined })
    expect(decideLeaf({ ...draining, lifecycle: 'Active' })).toMatchObject({
      phase: 'Active',
      drainStartedMs: undefined,
    })
  })

  const facts = fc
    .record({
      phase: fc.constantFrom(...PHASES),
      phaseSinceMs: fc.integer({ min: 0, max: 1_000_000 }),
      lifecycle: fc.constantFrom('Active' as const, 'NoTraffic' as const, 'Draining' as const),
      isApplied: fc.constantFrom(true, false, undefined),
      isAdmitted: fc.constantFrom(true, false, undefined),
      endpointsReady: fc.constantFrom(0, 3, undefined),
      probe: fc.constantFrom('healthy' as const, 'unhealthy' as const, 'unknown' as const),
      isProbeRequired: fc.boolean(),
      dns: fc.constantFrom('present' as const, 'absent' as const, 'unknown' as const),
      drainStartedMs: fc.option(fc.integer({ min: 0, max: 1_000_000 }), { nil: undefined }),
      drainDeadlineMs: fc.option(fc.integer({ min: 0, max: 1_100_000 }), { nil: undefined }),
    })
    .map((each) => leaf(each.phase, each))
  const leaves = fc.array(facts, { minLength: 1, maxLength: 5 }).map((all) =>
    all.map((each) => ({
      ...each,
      othersServing: all.filter((other) => other !== each && isServing(other)).length,
    })),
  )

  it('never makes a host unreachable: while any leaf serves, one is still offered', () => {
    fc.assert(
      fc.property(leaves, (all) => {
        const hasServed = all.some(({ phase }) => phase === 'Active' || phase === 'Unhealthy' || phase === 'Draining')
        fc.pre(hasServed)
        expect(all.map((each) => decideLeaf(each)).some(({ dns }) => dns === 'offer')).toBe(true)
      }),
    )
  })

  it('withdraws a leaf only while another one serves that is offered itself', () => {
    fc.assert(
      fc.property(leaves, (all) => {
        const decisions = all.map((each) => decideLeaf(each))
        fc.pre(decisions.some(({ dns }) => dns === 'withdraw'))
        const isCovered = all.some((each, index) => isServing(each) && decisions[index]?.dns === 'offer')
        expect(isCovered).toBe(true)
      }),
    )
  })

  it('ends a drain only after DNS stopped answering the leaf and the wait is over', () => {
    fc.assert(
      fc.property(facts, (each) => {
        const { phase } = decideLeaf(each)
        const wasOffered = ['Admitted', 'Warming', 'Active', 'Unhealthy', 'Draining'].includes(each.phase)
        fc.pre(phase === 'Drained' && wasOffered)
        expect(each.dns).toBe('absent')
        const isLate = each.drainDeadlineMs !== undefined && each.drainDeadlineMs <= each.nowMs
        const waitMs = isLate ? timing.cacheMs : timing.drainMs
        expect(each.drainStartedMs).toBeLessThanOrEqual(each.nowMs - waitMs)
      }),
    )
  })

  it('settles: the same facts with the decided phase reach a fixed point', () => {
    fc.assert(
      fc.property(facts, (start) => {
        let state = start
        const seen: string[] = []
        for (let step = 0; step < 8; step++) {
          const decision = decideLeaf(state)
          const since = decision.phase === state.phase ? state.phaseSinceMs : state.nowMs
          state = { ...state, phase: decision.phase, phaseSinceMs: since, drainStartedMs: decision.drainStartedMs }
          seen.push(short(decision))
        }
        expect(new Set(seen.slice(-2)).size).toBe(1)
      }),
    )
  })
})
