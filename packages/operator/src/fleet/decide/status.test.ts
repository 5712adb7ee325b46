import { findCondition } from '@seamark/kube'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PHASES } from '../../api/leaf-ingress.ts'
import { decideStatus, type LeafSummary, mergeAddresses, type StatusFacts } from './status.ts'

function leaf(cluster: string, changes: Partial<LeafSummary> = {}): LeafSummary {
  return {
    cluster,
    phase: 'Active',
    reason: 'Serving',
    lifecycle: 'Active',
    isApplied: true,
    isAdmitted: true,
    isStale: false,
    endpointsReady: 1,
    addresses: [{ type: 'IPAddress', value: '192.0.2.1' }],
    isPublished: true,
    message: '',
    propagationFault: undefined,
    ...changes,
  }
}

function facts(leaves: readonly LeafSummary[], changes: Partial<StatusFacts> = {}): StatusFacts {
  return {
    spec: {
      rootRef: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'shop', uid: 'u' },
      hosts: [{ host: 'shop.example.com' }],
      clusters: [],
      strategy: 'roundRobin',
      failback: 'Auto',
      ttlSeconds: 30,
      onAllUnhealthy: 'ServeLast',
      health: { scheme: 'tcp', port: 80 },
      isProbeRequired: false,
      drainSeconds: 60,
      minHoldSeconds: 60,
      propagationTimeoutSeconds: 120,
      statusMode: 'Auto',
      published: true,
    },
    generation: 3,
    leaves,
    refusedHosts: [],
    refusedLeaves: [],
    policy: 'annotations',
    silentServers: [],
    answered: undefined,
    answerFault: undefined,
    blocked: undefined,
    placement: { reason: 'Placed', message: 'on 2 of 2 clusters', rejected: [] },
    partialHosts: [],
    isDnsVerified: true,
    previous: undefined,
    nowMs: Date.parse('2026-01-01T00:00:00Z'),
    ...changes,
  }
}

const statusOf = (given: StatusFacts, type: string) => {
  const condition = findCondition(decideStatus(given).status.conditions, type)
  return `${condition?.status} ${condition?.reason}`
}

describe('the status of a root', () => {
  it('is not published while DNS servers answer something else than what was published', () => {
    const fault = 'ns1 answers 192.0.2.1 for shop.example.com instead of 192.0.2.2'
    const given = facts([leaf('eu1')], { answered: ['192.0.2.1'], answerFault: fault })
    expect(statusOf(given, 'DNSPublished')).toBe('False AnswerDiffers')
    expect(statusOf(given, 'Ready')).toBe('False AnswerDiffers')
    const { status } = decideStatus(given)
    expect(findCondition(status.conditions, 'DNSPublished')?.message).toContain(fault)
    expect(status.answered).toEqual(['192.0.2.1'])
  })

  it('is ready when a host is owned, a leaf serves and DNS answers', () => {
    const given = facts([leaf('eu1'), leaf('us1')])
    expect(statusOf(given, 'Ready')).toBe('True Serving')
    expect(statusOf(given, 'Degraded')).toBe('False Serving')
    expect(decideStatus(given).summary).toBe('ready 2/2')
    expect(statusOf(given, 'Synced')).toBe('True LeavesApplied')
    expect(statusOf(given, 'Admitted')).toBe('True LeavesAdmitted')
    expect(statusOf({ ...given, partialHosts: ['a.test'] }, 'Degraded')).toBe('True PartialPaths')
    expect(statusOf(facts([leaf('eu1')], { isDnsVerified: false }), 'Ready')).toBe('False NotYetPropagated')
  })

  it('is not ready for the reason that its message explains', () => {
    const said = (given: StatusFacts) => {
      const ready = findCondition(decideStatus(given).status.conditions, 'Ready')
      return `${ready?.status} ${ready?.reason}: ${ready?.message}`
    }
    const leaves = [leaf('eu1'), leaf('us1')]
    expect(said(facts(leaves, { isDnsVerified: false }))).toBe(
      'False NotYetPropagated: 2/2 leaves serve: DNS does not answer the hosts yet',
    )
    const dead = ['eu1', 'us1'].map((name) => leaf(name, { phase: 'Unhealthy', reason: 'ProbeFailed' }))
    const meaning = 'the health check of the leaf fails'
    expect(said(facts(dead))).toBe(`False ProbeFailed: 0/2 leaves serve: eu1: ${meaning}; us1: ${meaning}`)
    const waiting = leaf('us1', { phase: 'Warming', reason: 'ProbePending' })
    expect(said(facts([waiting, leaf('eu1', { phase: 'Unhealthy', reason: 'ProbeFailed' })]))).toMatch(
      /^False ProbeFailed: 0\/2 leaves serve: eu1: .*; us1: the health check of the leaf has not passed yet$/,
    )
    const refused = leaf('eu1', { phase: 'Applied', reason: 'AdmissionPending', isAdmitted: false })
    expect(said(facts([refused]))).toBe(
      'False AdmissionPending: 0/1 leaves serve: eu1: the member has not admitted the leaf yet',
    )
  })

  it('names every cluster that is missing, and why', () => {
    const waiting = leaf('us1', { phase: 'Applied', reason: 'AdmissionPending', isAdmitted: false, addresses: [] })
    const { status } = decideStatus(facts([leaf('eu1'), waiting]))
    expect(findCondition(status.conditions, 'Admitted')?.message).toContain('1/2 leaves are admitted; us1:')
    const stale = facts([leaf('eu1', { isStale: true })])
    expect(statusOf(stale, 'Degraded')).toBe('True ClusterUnreachable')
    expect(statusOf(stale, 'Ready')).toBe('True Serving')
    const draining = leaf('us1', { phase: 'Draining', reason: 'WaitingForDns', lifecycle: 'Draining' })
    expect(decideStatus(facts([leaf('eu1'), draining])).summary).toBe('ready 1/1; draining us1')
    expect(
      statusOf(
        facts([leaf('eu1'), { ...draining, propagationFault: 'DNS servers still answer the withdrawn leaf' }]),
        'Degraded',
      ),
    ).toBe('True PropagationTimeout')
  })

  it('has messages of at most 1 KiB', () => {
    const leaves = Array.from({ length: 200 }, (_, index) => leaf(`cluster-${index}`, { phase: 'Unhealthy' }))
    const lengths = decideStatus(facts(leaves)).status.conditions?.map(({ message }) => message.length) ?? []
    expect(Math.max(...lengths)).toBe(1024)
  })

  it('names clusters that could take a leaf', () => {
    const rejected = [
      { cluster: 'ap1', reason: 'PlacementLimitReached' as const, message: 'eligible' },
      { cluster: 'eu9', reason: 'SpreadLimitReached' as const, message: 'eligible' },
      { cluster: 'us2', reason: 'ClusterNotReady' as const, message: 'it is not ready' },
    ]
    const { status } = decideStatus(facts([leaf('eu1')], { placement: { reason: 'Placed', message: '', rejected } }))
    expect(status.spareClusters).toEqual(['ap1', 'eu9'])
  })

  it('says so when a host belongs to another root', () => {
    const refusedHosts = [{ host: 'a.example.com', reason: 'HostConflict' as const, message: 'a is owned by x' }]
    const given = facts([], { refusedHosts })
    const withoutHosts = { ...given, spec: { ...given.spec, hosts: [], published: false } }
    expect(statusOf(withoutHosts, 'HostsOwned')).toBe('False HostConflict')
    expect(statusOf(withoutHosts, 'Ready')).toBe('False HostsNotOwned')
  })

  it('says why a root has no leaf in every condition that depends on leaves, and in no other one', () => {
    const message = 'cluster eu1: parentRefMap maps none of its parents'
    const refusedLeaves = [{ cluster: 'eu1', reason: 'NoMatchingParent' as const, message }]
    const given = facts([], { refusedLeaves })
    const { status, summary } = decideStatus({ ...given, spec: { ...given.spec, published: false } })
    expect(summary).toBe('ready 0/0; NoMatchingParent')
    const texts = (status.conditions ?? []).map((each) => `${each.type} ${each.status} ${each.reason}: ${each.message}`)
    expect(texts).toEqual([
      'HostsOwned True HostsOwned: every host is owned',
      'Placed True Placed: on 2 of 2 clusters',
      `Synced False NoMatchingParent: no leaf: ${message}`,
      `Admitted False NoMatchingParent: no leaf: ${message}`,
      `DNSPublished False NoMatchingParent: nothing is published: no leaf: ${message}`,
      `Degraded True NoMatchingParent: ${message}`,
      `Ready False NoMatchingParent: no leaf: ${message}`,
    ])
  })

  it('says what the manager lacks to publish the hosts, and is ready all the same while DNS answers them', () => {
    const blocked = { reason: 'CRDNotInstalled' as const, message: 'DNSEndpoint is not installed' }
    const waiting = leaf('eu1', { phase: 'Admitted', reason: 'ProbePending', isPublished: false })
    const given = facts([waiting], { blocked, isDnsVerified: false })
    for (const type of ['DNSPublished', 'Ready']) expect(statusOf(given, type)).toBe('False CRDNotInstalled')
    expect(statusOf(given, 'Degraded')).toBe('True CRDNotInstalled')
    const message = findCondition(decideStatus(given).status.conditions, 'Ready')?.message
    expect(message).toBe('0/1 leaves serve: DNSEndpoint is not installed')
    const published = facts([leaf('eu1')], { blocked })
    expect(statusOf(published, 'Ready')).toBe('True Serving')
    expect(statusOf(published, 'Degraded')).toBe('True CRDNotInstalled')
  })

  it('groups the clusters without a leaf by what to change', () => {
    const message = 'it is not ready'
    const rejected = ['a', 'b'].map((cluster) => ({ cluster, reason: 'ClusterNotReady' as const, message }))
    const { status } = decideStatus(facts([leaf('eu1')], { placement: { reason: 'Placed', message: '', rejected } }))
    expect(status.notPlaced).toEqual([{ reason: 'ClusterNotReady', message, clusters: ['a', 'b'] }])
  })

  it('merges addresses without duplicates, numerically, without draining leaves but with stale ones', () => {
    const ip = (value: string) => ({ type: 'IPAddress' as const, value })
    const merged = mergeAddresses([
      leaf('c', { addresses: [{ type: 'Hostname', value: 'lb.example.net' }, ip('192.0.2.10')] }),
      leaf('a', { addresses: [ip('192.0.2.9'), ip('2001:db8::1')], isStale: true }),
      leaf('b', { addresses: [ip('192.0.2.9')] }),
      leaf('d', { addresses: [ip('192.0.2.77')], phase: 'Draining', reason: 'DrainWait', lifecycle: 'Draining' }),
      leaf('e', { addresses: [ip('192.0.2.78')], phase: 'Draining', reason: 'NoReplacement', lifecycle: 'Draining' }),
    ])
    expect(merged.map(({ value }) => value)).toEqual([
      '192.0.2.9',
      '192.0.2.10',
      '192.0.2.78',
      '2001:db8::1',
      'lb.example.net',
    ])
  })

  it('does not depend on the order of leaves, and deciding again changes nothing', () => {
    const leaves = fc
      .uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 6 })
      .chain((numbers) =>
        fc.tuple(
          ...numbers.map((number) =>
            fc
              .record({ phase: fc.constantFrom(...PHASES), isAdmitted: fc.boolean(), isStale: fc.boolean() })
              .map((each) =>
                leaf(`c${number}`, { ...each, addresses: [{ type: 'IPAddress', value: `192.0.2.${number}` }] }),
              ),
          ),
        ),
      )
    fc.assert(
      fc.property(leaves, (all) => {
        const first = decideStatus(facts(all))
        expect(decideStatus(facts(all.toReversed()))).toEqual(first)
        const again = decideStatus(
          facts(all, { previous: first.status.conditions, nowMs: Date.parse('2026-02-02T00:00:00Z') }),
        )
        expect(again).toEqual(first)
      }),
    )
  })
})
