import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type FeedFacts, type FeedLeaf, feedBalance, splitWeights } from './dns-feed.ts'

const address = (value: string) => ({ type: 'IPAddress' as const, value })

function leaf(cluster: string, role: FeedLeaf['role'], ...values: string[]): FeedLeaf {
  return { cluster, role, addresses: values.map(address) }
}

function facts(changes: Partial<FeedFacts> = {}, spec: Partial<FeedFacts['spec']> = {}): FeedFacts {
  return {
    name: 'ingress-shop-abc123',
    namespace: 'shop',
    leaves: [leaf('eu1', 'offer', '192.0.2.1'), leaf('us1', 'offer', '192.0.2.2', '192.0.2.3')],
    sharedClusters: () => undefined,
    isLedByOther: () => false,
    ...changes,
    spec: {
      rootRef: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'shop', uid: 'u' },
      hosts: [{ host: 'shop.example.com' }],
      clusters: [
        { name: 'eu1', state: 'Active', weight: 100, priority: 0 },
        { name: 'us1', state: 'Active', weight: 100, priority: 1 },
      ],
      strategy: 'weighted',
      failback: 'Auto',
      ttlSeconds: 30,
      onAllUnhealthy: 'ServeLast',
      health: { scheme: 'http', port: 80, path: '/healthz' },
      isProbeRequired: true,
      drainSeconds: 60,
      minHoldSeconds: 60,
      propagationTimeoutSeconds: 120,
      statusMode: 'Auto',
      published: true,
      ...spec,
    },
  }
}

describe('the DNS feed', () => {
  it('makes a load balancer per host and an endpoint per address, with equal shares per cluster', () => {
    const { balancers, endpoints } = feedBalance(facts())
    expect(balancers).toMatchObject([
      { spec: { DNSName: 'shop.example.com', type: 'Balanced', ttl: 30, healthPath: '/healthz' } },
    ])
    expect(endpoints.map(({ spec }) => [spec.ipaddress, spec.weight, spec.drain])).toEqual([
      ['192.0.2.1', 2, undefined],
      ['192.0.2.2', 1, undefined],
      ['192.0.2.3', 1, undefined],
    ])
    expect(new Set(endpoints.map(({ metadata }) => metadata.name)).size).toBe(3)
    expect(endpoints.every(({ spec }) => spec.loadbalancer === balancers[0]?.metadata.name)).toBe(true)
  })

  it('hands expected statuses on, as codes or as ranges', () => {
    const checkOf = (health: Partial<FeedFacts['spec']['health']>) =>
      feedBalance(facts({}, { health: { scheme: 'http', port: 80, ...health } })).balancers[0]?.spec.healthCheck
    expect(checkOf({ statusCodes: [200, 204] })).toEqual({ scheme: 'http', port: 80, statusCodes: [200, 204] })
    expect(checkOf({ expectedStatus: ['200-299'] })).toEqual({ scheme: 'http', port: 80, expectedStatus: ['200-299'] })
  })

  it('asks each name of a root for itself, and leaves the host of a policy that is none of them to balance', () => {
    const hosts = [{ host: 'shop.example.com', managed: 'abc.managed.example' }, { host: '*.shop.example.com' }]
    const asked = (host: string) =>
      feedBalance(facts({}, { hosts, health: { scheme: 'http', port: 80, host } })).balancers.map(({ spec }) => [
        spec.DNSName,
        spec.healthCheck?.host,
      ])
    expect(asked('www.shop.example.com')).toEqual([
      ['shop.example.com', undefined],
      ['abc.managed.example', undefined],
      ['*.shop.example.com', 'www.shop.example.com'],
    ])
    expect(asked('bank.example.com').map(([, host]) => host)).toEqual(Array(3).fill('bank.example.com'))
  })

  it('makes nothing before the root is published', () => {
    expect(feedBalance(facts({}, { published: false }))).toMatchObject({ balancers: [], endpoints: [] })
  })

  it('keeps the endpoints of a withdrawn leaf as drained, and has none for a leaf without role', () => {
    const leaves = [
      leaf('eu1', 'withdraw', '192.0.2.1'),
      leaf('us1', 'offer', '192.0.2.2'),
      leaf('ap1', 'none', '192.0.2.9'),
    ]
    expect(feedBalance(facts({ leaves })).endpoints.map(({ spec }) => [spec.ipaddress, spec.drain])).toEqual([
      ['192.0.2.1', true],
      ['192.0.2.2', undefined],
    ])
  })

  it('uses priorities and one endpoint at a time for failover', () => {
    const { balancers, endpoints } = feedBalance(facts({}, { strategy: 'failover', failback: 'Manual' }))
    expect(balancers[0]?.spec).toMatchObject({ type: 'Exclusive', failBack: 'Never' })
    expect(endpoints.map(({ spec }) => spec.priority)).toEqual([0, 1, 1])
  })

  it('has the region of each cluster with geo, and none that cannot be a region', () => {
    const clusters = [
      { name: 'eu1', state: 'Active' as const, geo: 'EU' },
      { name: 'us1', state: 'Active' as const, geo: 'no region' },
    ]
    const { endpoints, balancers } = feedBalance(facts({}, { strategy: 'geo', clusters }))
    expect(balancers.map((each) => each.spec.type)).toEqual(['Balanced'])
    expect(endpoints.map((each) => [each.metadata.labels?.['seamark.io/cluster'], each.spec.geo])).toEqual(
      expect.arrayContaining([
        ['eu1', 'EU'],
        ['us1', undefined],
      ]),
    )
  })

  it('publishes a managed host beside the host', () => {
    const hosts = [{ host: 'shop.example.com', managed: 'q7.apps.example.net' }]
    expect(feedBalance(facts({}, { hosts })).balancers.map(({ spec }) => spec.DNSName)).toEqual([
      'shop.example.com',
      'q7.apps.example.net',
    ])
  })

  it('publishes a shared host where every owner serves, elsewhere as a last resort, and reports a host that no cluster serves completely', () => {
    const shared = feedBalance(facts({ sharedClusters: () => new Set(['us1']) }))
    expect(shared.endpoints.map(({ spec }) => [spec.ipaddress, spec.drain ?? false])).toEqual([
      ['192.0.2.1', true],
      ['192.0.2.2', false],
      ['192.0.2.3', false],
    ])
    const partial = feedBalance(facts({ sharedClusters: () => new Set(['ap1']) }))
    expect(partial.partialHosts).toEqual(['shop.example.com'])
    expect(partial.endpoints.map(({ spec }) => spec.drain)).toEqual([undefined, undefined, undefined])
    expect(feedBalance(facts({ isLedByOther: () => true })).balancers).toEqual([])
    const managed = [{ host: 'shop.example.com', managed: 'q7.apps.example.net' }]
    const second = feedBalance(facts({ isLedByOther: () => true }, { hosts: managed }))
    expect(second.balancers.map(({ spec }) => spec.DNSName)).toEqual(['q7.apps.example.net'])
    const incomplete = facts({ isLedByOther: () => true, sharedClusters: () => new Set(['ap1']) })
    expect(feedBalance(incomplete).partialHosts).toEqual([])
  })

  it('splits the weight of a cluster exactly over its addresses', () => {
    const shares = fc.array(
      fc.record({ weight: fc.integer({ min: 1, max: 10 }), parts: fc.integer({ min: 1, max: 4 }) }),
      {
        minLength: 1,
        maxLength: 5,
      },
    )
    fc.assert(
      fc.property(shares, (all) => {
        const weights = splitWeights(all)
        const [first] = all
        const total = (index: number) => (weights[index] ?? 0) * (all[index]?.parts ?? 0)
        for (const [index, { weight }] of all.entries())
          expect(total(index) * (first?.weight ?? 0)).toBe(total(0) * weight)
        expect(Math.max(...weights)).toBeLessThanOrEqual(1000)
      }),
    )
    expect(
      splitWeights([
        { weight: 0, parts: 2 },
        { weight: 5, parts: 1 },
      ]),
    ).toEqual([0, 1])
    // Rounding takes no cluster out of the answers.
    expect(
      splitWeights([
        { weight: 9973, parts: 1 },
        { weight: 1, parts: 1 },
      ]),
    ).toEqual([1000, 1])
    expect(
      Math.max(
        ...splitWeights([
          { weight: 997, parts: 1 },
          { weight: 1, parts: 7 },
        ]),
      ),
    ).toBe(1000)
  })
})
