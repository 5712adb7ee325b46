import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LeafObservation } from './leaf-phase.ts'
import type { GlobalIngressSpec } from '../../api/global-ingress.ts'
import type { LeafIngress, LeafIngressStatus } from '../../api/leaf-ingress.ts'
import type { HostAnswers } from './dns-presence.ts'
import { leafStatus } from './leaf-status.ts'
import {
  decideLeaves,
  isHostAnswered,
  type LeavesFacts,
  needsAnswers,
  type ObservedLeaf,
  summarizeLeaf,
} from './leaves.ts'

const NOW = Date.parse('2026-01-01T00:10:00Z')
const EU1 = '192.0.2.1'
const US1 = '192.0.2.2'

const spec = {
  hosts: [{ host: 'shop.test' }],
  clusters: [
    { name: 'eu1', state: 'Active' },
    { name: 'us1', state: 'Draining' },
  ],
  strategy: 'roundRobin',
  ttlSeconds: 30,
  drainSeconds: 60,
  minHoldSeconds: 60,
  propagationTimeoutSeconds: 120,
  isProbeRequired: false,
  published: true,
} as unknown as GlobalIngressSpec

function leafOf(
  cluster: string,
  address: string,
  status: Partial<LeafIngressStatus> = {},
  seen: Partial<LeafObservation> = {},
): ObservedLeaf {
  return {
    leaf: {
      metadata: { name: `ingress-shop--${cluster}`, namespace: 'shop' },
      spec: { cluster, specHash: 'h', lifecycle: 'Active', manifests: [] },
      status: { phase: 'Active', phaseSince: '2026-01-01T00:00:00Z', ...status },
    } as unknown as LeafIngress,
    seen: {
      isApplied: true,
      isAdmitted: true,
      addresses: [{ type: 'IPAddress', value: address }],
      endpointsReady: 1,
      isStale: false,
      remote: undefined,
      probe: 'healthy',
      dns: 'present',
      isWithdrawn: false,
      message: '',
      ...seen,
    },
    result: undefined,
  }
}

it('takes the deadline of the cluster that drains', () => {
  const status = { phase: 'Draining', drainStartedAt: '2026-01-01T00:09:00Z' } as const
  const us1 = leafOf('us1', US1, status, { dns: 'absent', isWithdrawn: true })
  const long = { spec: { ...spec, drainSeconds: 3600 } }
  const reasonOf = (changes: Partial<LeavesFacts>) => decideLeaves(facts(us1, undefined, changes)).get('us1')?.reason
  expect(reasonOf(long)).toBe('DrainWait')
  expect(reasonOf({ ...long, drainDeadlines: new Map([['eu1', NOW]]) })).toBe('DrainWait')
  expect(reasonOf({ ...long, drainDeadlines: new Map([['us1', NOW]]) })).toBe('DrainDeadlineReached')
})

it('waits for twice the highest TTL of the hour before the withdrawal, also when that hour ends during the wait', () => {
  const formerTtls = [{ ttlSeconds: 7200, replacedAt: '2026-01-01T00:09:00Z' }]
  const us1 = (drainStartedAt: string) =>
    leafOf('us1', US1, { phase: 'Draining', drainStartedAt }, { dns: 'absent', isWithdrawn: true })
  const decide = (drainStartedAt: string, nowMs: number, ttls: LeavesFacts['ttls']) =>
    decideLeaves(facts(us1(drainStartedAt), undefined, { ttls, nowMs })).get('us1')
  const lowered = [{ ttlSeconds: 30, formerTtls }]
  const soon = '2026-01-01T00:09:30Z'
  const soonMs = Date.parse(soon)
  const fullMs = soonMs + 2 * 7200_000
  expect(decide(soon, NOW, lowered)).toMatchObject({ reason: 'DrainWait', againAtMs: fullMs })
  expect(decide(soon, fullMs - 1, lowered)).toMatchObject({ reason: 'DrainWait', againAtMs: fullMs })
  expect(decide(soon, fullMs, lowered)).toMatchObject({ reason: 'DrainCompleted' })
  // Another root that shares the host had it.
  expect(decide(soon, NOW, [{ ttlSeconds: 30 }, ...lowered])).toMatchObject({ againAtMs: fullMs })
  expect(decide(soon, NOW, [{ ttlSeconds: 30 }])).toMatchObject({ againAtMs: soonMs + 60_000 })
  // Withdrawn more than an hour after the TTL was lowered.
  const late = '2026-01-01T01:09:01Z'
  expect(decide(late, Date.parse(late), lowered)).toMatchObject({ againAtMs: Date.parse(late) + 60_000 })
})

const answersOf = (...servers: (readonly string[] | undefined)[]): HostAnswers[] => [
  {
    host: 'shop.test',
    servers: servers.map((values, index) => ({
      server: `ns${index + 1}`,
      values: values === undefined ? undefined : new Set(values),
    })),
  },
]

/** us1 leaves, eu1 takes over. */
function facts(us1: ObservedLeaf, answers: readonly HostAnswers[] | undefined, changes: Partial<LeavesFacts> = {}) {
  return {
    spec,
    ttls: [changes.spec ?? spec],
    lifecycles: new Map([
      ['eu1', 'Active' as const],
      ['us1', 'Draining' as const],
    ]),
    leaves: new Map([
      ['eu1', leafOf('eu1', EU1)],
      ['us1', us1],
    ]),
    drainDeadlines: new Map<string, number>(),
    answers,
    hasDns: true,
    nowMs: NOW,
    ...changes,
  } satisfies LeavesFacts
}

const decided = (given: LeavesFacts) => {
  const { phase, reason, dns } = decideLeaves(given).get('us1') ?? {}
  return `${phase} ${reason} ${dns}`
}

describe('the leaves of a root', () => {
  it('are withdrawn only when every server answers the replacement', () => {
    const leaving = leafOf('us1', US1)
    expect(decided(facts(leaving, answersOf([EU1, US1], [US1])))).toBe('Draining ReplacementNotAnswered offer')
    expect(decided(facts(leaving, answersOf([EU1, US1], undefined)))).toBe('Draining ReplacementNotAnswered offer')
    expect(decided(facts(leaving, answersOf([EU1, US1], [EU1, US1])))).toBe('Draining WaitingForDns withdraw')
    // What was withdrawn stays so while a server is silent.
    const withdrawn = leafOf('us1', US1, { phase: 'Draining' }, { dns: 'absent', isWithdrawn: true })
    expect(decided(facts(withdrawn, answersOf([EU1], undefined)))).toBe('Draining WaitingForDns withdraw')
  })

  it('start the wait of a drain only when no server answers them', () => {
    const withdrawn = leafOf('us1', US1, { phase: 'Draining' }, { dns: 'absent', isWithdrawn: true })
    expect(decided(facts(withdrawn, answersOf([EU1], [EU1, US1])))).toBe('Draining WaitingForDns withdraw')
    expect(decided(facts(withdrawn, answersOf([EU1], [EU1])))).toBe('Draining DrainWait withdraw')
    // Without verification the word of balance counts.
    expect(decided(facts(withdrawn, undefined))).toBe('Draining DrainWait withdraw')
  })

  it('need no answered replacement with failover, where DNS has one address, or with weight 0', () => {
    const leaving = leafOf('us1', US1)
    const failover = { ...spec, strategy: 'failover' as const }
    expect(decided(facts(leaving, answersOf([US1]), { spec: failover }))).toBe('Draining WaitingForDns withdraw')
    const weighted = {
      ...spec,
      strategy: 'weighted' as const,
      clusters: [{ name: 'eu1', state: 'Active' as const, weight: 0 }],
    }
    expect(decided(facts(leaving, answersOf([US1]), { spec: weighted }))).toBe('Draining WaitingForDns withdraw')
  })

  it('are each replaced by the others: as if those were looked at for each leaf', () => {
    const clusters = ['c0', 'c1', 'c2', 'c3']
    const site = fc.record({
      isLeaving: fc.boolean(),
      weight: fc.constantFrom(undefined, 0, 100),
      probe: fc.constantFrom('healthy' as const, 'unhealthy' as const),
      hasAddress: fc.boolean(),
      answered: fc.constantFrom('by all', 'by one', 'by none'),
    })
    fc.assert(
      fc.property(fc.array(site, { minLength: 1, maxLength: clusters.length }), (sites) => {
        const named = sites.map((each, index) => ({ ...each, name: `c${index}`, address: `192.0.2.${index}` }))
        const answersBy = (who: readonly string[]) =>
          named.filter(({ answered }) => who.includes(answered)).map(({ address }) => address)
        const given = facts(leafOf('us1', US1), answersOf(answersBy(['by all', 'by one']), answersBy(['by all'])), {
          spec: {
            ...spec,
            strategy: 'weighted',
            clusters: named.map(({ name, weight }) => ({
              name,
              state: 'Active' as const,
              ...(weight !== undefined && { weight }),
            })),
          },
          lifecycles: new Map(named.map(({ name, isLeaving }) => [name, isLeaving ? 'Draining' : 'Active'])),
          leaves: new Map(
            named.map(({ name, address, hasAddress, probe }) => [
              name,
              leafOf(name, address, {}, { probe, ...(!hasAddress && { addresses: [] }) }),
            ]),
          ),
        })
        const decisions = decideLeaves(given)
        for (const { name, isLeaving } of named) {
          if (!isLeaving) continue
          const others = named.filter((each) => each.name !== name && !each.isLeaving && each.probe === 'healthy')
          const used = others.filter(({ weight }) => weight !== 0)
          const isVerifiable = used.length > 0 && used.every(({ hasAddress }) => hasAddress)
          const isAnswered = used.some(({ answered }) => answered === 'by all')
          const reason =
            others.length === 0
              ? 'NoReplacement'
              : isVerifiable && !isAnswered
                ? 'ReplacementNotAnswered'
                : 'WaitingForDns'
          expect(decisions.get(name)?.reason).toBe(reason)
        }
      }),
    )
  })

  it('ask the servers while a leaf leaves and while a host is not verified, and not in steady state', () => {
    const stays = facts(leafOf('us1', US1), undefined, {
      lifecycles: new Map([
        ['eu1', 'Active'],
        ['us1', 'Active'],
      ]),
    })
    expect(needsAnswers(stays, true)).toBe(false)
    expect(needsAnswers(stays, false)).toBe(true)
    expect(needsAnswers(facts(leafOf('us1', US1), undefined), true)).toBe(true)
    const waiting = leafOf('us1', US1, { phase: 'Draining', drainStartedAt: '2026-01-01T00:09:59Z' })
    expect(needsAnswers(facts(waiting, undefined), true)).toBe(false)
    expect(needsAnswers({ ...stays, spec: { ...spec, published: false } }, false)).toBe(false)
  })

  it('drain before they are gone when they are deleted, also where the plan has them', () => {
    const us1 = leafOf('us1', US1)
    const metadata = { ...us1.leaf.metadata, deletionTimestamp: '2026-01-01T00:09:00Z' }
    const deleted = { ...us1, leaf: { ...us1.leaf, metadata } }
    const given = facts(deleted, undefined, {
      lifecycles: new Map([
        ['eu1', 'Active'],
        ['us1', 'Active'],
      ]),
    })
    expect(needsAnswers(given, true)).toBe(true)
    expect(decideLeaves(given).get('us1')).toMatchObject({
      phase: 'Draining',
      reason: 'WaitingForDns',
      dns: 'withdraw',
    })
  })

  it('keep in their status what was last read of a member that cannot be read now', () => {
    const known = { appliedHash: 'h', remoteUID: 'u1', remoteGeneration: 3, endpointsReady: 2, admitted: true }
    const lost = leafOf('us1', US1, known, { isApplied: undefined, isAdmitted: undefined, endpointsReady: undefined })
    const decision = decideLeaves(facts(lost, undefined)).get('us1')
    if (decision === undefined) throw new Error('no decision')
    expect(leafStatus(lost, decision, NOW)).toMatchObject(known)
  })

  it('are answered when every server has an address of a published one', () => {
    expect(isHostAnswered(facts(leafOf('us1', US1), answersOf([EU1], [EU1, US1])))).toBe(true)
    expect(isHostAnswered(facts(leafOf('us1', US1), answersOf([EU1], [])))).toBe(false)
    expect(isHostAnswered(facts(leafOf('us1', US1), undefined))).toBe(true)
  })

  it('wait no longer when a clock that was ahead wrote their times', () => {
    const future = '2026-01-01T01:00:00Z'
    const withdrawn = leafOf(
      'us1',
      US1,
      { phase: 'Draining', phaseSince: future, drainStartedAt: future },
      { dns: 'absent', isWithdrawn: true },
    )
    const decision = decideLeaves(facts(withdrawn, undefined)).get('us1')
    expect(decision).toMatchObject({ reason: 'DrainWait', drainStartedMs: NOW, againAtMs: NOW + 60_000 })
    if (decision === undefined) throw new Error('no decision')
    const { phaseSince, drainStartedAt } = leafStatus(withdrawn, decision, NOW)
    expect([phaseSince, drainStartedAt]).toEqual(['2026-01-01T00:10:00Z', '2026-01-01T00:10:00Z'])
  })

  it('say which servers are silent when a change takes longer than the policy allows', () => {
    const withdrawn = leafOf(
      'us1',
      US1,
      { phase: 'Draining', reason: 'WaitingForDns' },
      { dns: 'absent', isWithdrawn: true },
    )
    const faultOf = (answers: HostAnswers[]) => {
      const given = facts(withdrawn, answers)
      const decision = decideLeaves(given).get('us1')
      return decision === undefined ? '' : summarizeLeaf(withdrawn, decision, given).propagationFault
    }
    expect(faultOf(answersOf([EU1], undefined))).toBe(
      'DNS servers do not answer: ns2; see fleet.dnsServers and fleet.verifyDns',
    )
    expect(faultOf(answersOf([EU1, US1]))).toBe('DNS servers still answer the withdrawn leaf')
  })
})
