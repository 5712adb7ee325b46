import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_POLICY } from '../../api/global-ingress-policy.ts'
import { type BackendFact, type ClusterFact, type PlacementFacts, placeRoot } from './placement.ts'

function cluster(name: string, changes: Partial<ClusterFact> = {}): ClusterFact {
  return {
    name,
    labels: {},
    location: {},
    weight: 100,
    isReady: true,
    isDeleting: false,
    isDraining: false,
    taints: [],
    allowedNamespaces: undefined,
    servedKinds: ['Ingress'],
    ...changes,
  }
}

const present: BackendFact = { state: 'present' }

function facts(changes: Partial<Omit<PlacementFacts, 'policy'>> & { policy?: Partial<PlacementFacts['policy']> } = {}) {
  const { policy, ...rest } = changes
  return {
    root: { kind: 'Ingress', namespace: 'shop' },
    policy: { ...DEFAULT_POLICY.placement, ...policy },
    clusters: [],
    backendOf: () => present,
    labelledClusters: undefined,
    previous: new Set<string>(),
    existing: new Set<string>(),
    ...rest,
  }
}

const active = (decision: ReturnType<typeof placeRoot>) =>
  decision.placed.filter(({ state }) => state !== 'Draining').map(({ name }) => name)

describe('placement', () => {
  it('uses every ready cluster that has the Services, and says why the others are left out', () => {
    const missing: BackendFact = { state: 'missing', services: ['web'], isAnyPresent: false }
    const decision = placeRoot(
      facts({
        clusters: [
          cluster('b'),
          cluster('a'),
          cluster('down', { isReady: false }),
          cluster('bare'),
          cluster('old', { servedKinds: [] }),
          cluster('mine', { allowedNamespaces: ['other'] }),
          cluster('tainted', { taints: [{ key: 'gpu', effect: 'NoPlace' }] }),
        ],
        backendOf: (name) => (name === 'bare' ? missing : present),
      }),
    )
    expect(active(decision)).toEqual(['a', 'b'])
    expect(decision.rejected.map(({ cluster: name, reason }) => `${name} ${reason}`)).toEqual([
      'bare BackendMissing',
      'down ClusterNotReady',
      'mine NamespaceNotAllowed',
      'old CRDNotInstalled',
      'tainted ClusterTainted',
    ])
  })

  it('has a reason for every cluster without a leaf, with what to change', () => {
    const near = { location: { region: 'eu' }, labels: { tier: 'prod' } }
    const { rejected } = placeRoot(
      facts({
        clusters: [
          cluster('a', near),
          cluster('b', near),
          cluster('dev', { labels: { tier: 'dev' } }),
          cluster('bare'),
          cluster('other', near),
          cluster('tainted', { ...near, taints: [{ key: 'gpu', value: 'yes', effect: 'NoPlace' }] }),
          cluster('mine', { ...near, allowedNamespaces: ['x'] }),
          cluster('us', { labels: { tier: 'prod' }, location: { region: 'us' } }),
        ],
        policy: {
          clusters: ['a', 'b', 'dev', 'bare', 'tainted', 'mine', 'us'],
          clusterSelector: { matchLabels: { tier: 'prod' } },
          maxClusters: 2,
          spread: [{ topologyKey: 'region', maxSkew: 1 }],
        },
      }),
    )
    expect(rejected.map(({ cluster: name, reason, message }) => `${name} ${reason}: ${message}`)).toEqual([
      'b PlacementLimitReached: it is eligible, and placement.maxClusters is 2; raise it to use more',
      'bare ClusterNotSelected: placement.clusterSelector asks for the label tier=prod, and the Cluster has none; change one of them',
      'dev ClusterNotSelected: placement.clusterSelector asks for the label tier=prod, and the Cluster has tier=dev; change one of them',
      'mine NamespaceNotAllowed: spec.allowedNamespaces of the Cluster does not contain shop; add it there',
      'other ClusterNotSelected: placement.clusters is a, b, bare, dev, mine and 2 more; add the cluster to it',
      'tainted ClusterTainted: taint gpu=yes is not tolerated; add it to placement.tolerations, or remove it from the Cluster',
    ])
    // After p neither fits: q would be the second in its region, s the second in its zone.
    const spread = ['region', 'zone'].map((topologyKey) => ({ topologyKey, maxSkew: 1 }))
    const at = (region: string, zone: string) => ({ location: { region, zone } })
    const spots = [cluster('p', at('r1', 'z1')), cluster('q', at('r1', 'z2')), cluster('s', at('r2', 'z1'))]
    expect(placeRoot(facts({ clusters: spots, policy: { spread } })).rejected).toMatchObject([
      {
        cluster: 'q',
        reason: 'SpreadLimitReached',
        message: expect.stringContaining('(region, maxSkew 1; zone, maxSkew 1) leaves no room; raise maxSkew'),
      },
      { cluster: 's', reason: 'SpreadLimitReached' },
    ])
    const labelled = placeRoot(facts({ clusters: [cluster('a')], labelledClusters: new Set(['z']) }))
    expect(labelled.rejected).toMatchObject([
      { cluster: 'a', reason: 'ClusterNotSelected', message: expect.stringContaining('kcp.dev/cluster') },
    ])
  })

  it('names the first three clusters without a leaf in its message, those that the policy selects first', () => {
    const clusters = [
      cluster('a', { labels: { tier: 'dev' } }),
      ...['c', 'd', 'e', 'f'].map((name) => cluster(name, { isReady: false, labels: { tier: 'prod' } })),
    ]
    const policy = { clusterSelector: { matchLabels: { tier: 'prod' } } }
    const why = 'it is not ready; seamark cluster list shows why'
    expect(placeRoot(facts({ clusters, policy })).message).toBe(
      `0 of at least 1 clusters are eligible; not on c: ${why}; not on d: ${why}; not on e: ${why}; and 2 more, which seamark tree lists`,
    )
  })

  it('has enough clusters while fewer than the minimum are left because of a drain that was asked for', () => {
    const policy = { minClusters: 2 }
    const drained = cluster('b', { isDraining: true })
    const { reason, message } = placeRoot(facts({ clusters: [cluster('a'), drained], policy }))
    expect([reason, message]).toEqual([
      'Placed',
      'on 1 of 2 clusters: fewer than minClusters 2 while b is drained; not on b: it is being drained; seamark undrain ends that',
    ])
    expect(placeRoot(facts({ clusters: [drained], policy })).reason).toBe('NotEnoughClusters')
    const broken = cluster('b', { isDraining: true, isReady: false })
    expect(placeRoot(facts({ clusters: [cluster('a'), broken], policy })).reason).toBe('NotEnoughClusters')
  })

  it('keeps a placed cluster that is not ready, or whose Services are unknown', () => {
    const clusters = [cluster('a', { isReady: false }), cluster('b')]
    const decision = placeRoot(
      facts({ clusters, previous: new Set(['a']), existing: new Set(['a']), backendOf: () => ({ state: 'unknown' }) }),
    )
    expect(active(decision)).toEqual(['a'])
    expect(decision.rejected).toMatchObject([{ cluster: 'b', reason: 'BackendUnknown' }])
  })

  it('drains a cluster that leaves the plan instead of dropping it', () => {
    const decision = placeRoot(
      facts({
        clusters: [cluster('a'), cluster('b', { isDraining: true })],
        previous: new Set(['a', 'b']),
        existing: new Set(['a', 'b', 'gone']),
      }),
    )
    expect(decision.placed).toEqual([
      { name: 'a', state: 'Active' },
      { name: 'b', state: 'Draining' },
      { name: 'gone', state: 'Draining' },
    ])
  })

  it('moves no placed cluster for a spread, and places none on a cluster that is deleted or allows no namespace', () => {
    const clusters = ['eu1', 'eu2', 'us1'].map((name) => cluster(name, { location: { region: name.slice(0, 2) } }))
    const policy = { maxClusters: 2, spread: [{ topologyKey: 'region', maxSkew: 1 }] }
    expect(active(placeRoot(facts({ clusters, policy, previous: new Set(['eu1', 'eu2']) })))).toEqual(['eu1', 'eu2'])
    const unusable = [cluster('a', { isDeleting: true }), cluster('b', { allowedNamespaces: [] })]
    const previous = new Set(['a', 'b'])
    const decision = placeRoot(facts({ clusters: unusable, previous, existing: previous }))
    expect(active(decision)).toEqual([])
    expect(decision.rejected.map(({ reason }) => reason)).toEqual(['ClusterDraining', 'NamespaceNotAllowed'])
  })

  it('keeps a leaf on a NoTraffic cluster without traffic', () => {
    const decision = placeRoot(facts({ clusters: [cluster('a', { taints: [{ key: 'x', effect: 'NoTraffic' }] })] }))
    expect(decision.placed).toEqual([{ name: 'a', state: 'NoTraffic' }])
  })

  it('follows the labels of Services on the hub, as the proof of concept did', () => {
    const clusters = [cluster('a'), cluster('b')]
    const backendOf = (): BackendFact => ({ state: 'missing', services: ['web'], isAnyPresent: false })
    expect(active(placeRoot(facts({ clusters, backendOf, labelledClusters: new Set(['b']) })))).toEqual(['b'])
  })

  it('spreads over a topology, and uses one domain further when the others are full', () => {
    const clusters = ['eu1', 'eu2', 'eu3', 'us1'].map((name) =>
      cluster(name, { location: { region: name.slice(0, 2) }, weight: name.startsWith('eu') ? 200 : 1 }),
    )
    const spread = [{ topologyKey: 'region', maxSkew: 1 }]
    expect(active(placeRoot(facts({ clusters, policy: { maxClusters: 2, spread } })))).toEqual(['eu1', 'us1'])
    expect(active(placeRoot(facts({ clusters, policy: { maxClusters: 3, spread } })))).toEqual(['eu1', 'eu2', 'us1'])
  })

  it('says that a cluster drains, and that an eligible one is not needed', () => {
    const clusters = [cluster('a'), cluster('b'), cluster('c', { isDraining: true })]
    const { rejected } = placeRoot(facts({ clusters, policy: { maxClusters: 1 } }))
    expect(rejected.map(({ cluster: name, reason }) => `${name} ${reason}`)).toEqual([
      'b PlacementLimitReached',
      'c ClusterDraining',
    ])
  })

  it('reports fewer clusters than the minimum and uses what exists', () => {
    const decision = placeRoot(facts({ clusters: [cluster('a')], policy: { minClusters: 2 } }))
    expect(decision).toMatchObject({ reason: 'NotEnoughClusters', placed: [{ name: 'a' }] })
  })

  const names = fc.uniqueArray(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 12 })
  const clusters = names.chain((numbers) =>
    fc.tuple(
      ...numbers.map((number) =>
        fc
          .record({
            weight: fc.integer({ min: 0, max: 3 }),
            isReady: fc.boolean(),
            isDraining: fc.boolean(),
            region: fc.constantFrom('eu', 'us', 'ap'),
          })
          .map(({ region, ...rest }) => cluster(`c${number}`, { ...rest, location: { region } })),
      ),
    ),
  )
  const policy = fc.record({
    maxClusters: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
    spread: fc.boolean().map((isSpread) => (isSpread ? [{ topologyKey: 'region', maxSkew: 1 }] : undefined)),
  })

  it('does not depend on the order of clusters', () => {
    fc.assert(
      fc.property(clusters, policy, fc.integer(), (all, changes, seed) => {
        const shuffled = all
          .toSorted((a, b) => ((a.name.length * 7919) ^ seed) - ((b.name.length * 7919) ^ seed))
          .reverse()
        expect(placeRoot(facts({ clusters: shuffled, policy: changes }))).toEqual(
          placeRoot(facts({ clusters: all, policy: changes })),
        )
      }),
    )
  })

  it('is stable: deciding again on its own result changes nothing', () => {
    fc.assert(
      fc.property(clusters, policy, (all, changes) => {
        const first = placeRoot(facts({ clusters: all, policy: changes }))
        const existing = new Set(first.placed.map(({ name }) => name))
        const previous = new Set(active(first))
        expect(placeRoot(facts({ clusters: all, policy: changes, previous, existing })).placed).toEqual(first.placed)
      }),
    )
  })

  it('moves nothing when a cluster joins, and only its own leaf when one leaves', () => {
    fc.assert(
      fc.property(clusters, policy, (all, changes) => {
        const [joining, ...others] = all
        fc.pre(joining !== undefined && others.length > 0)
        const before = active(placeRoot(facts({ clusters: others, policy: changes })))
        const state = { previous: new Set(before), existing: new Set(before) }
        const joined = active(placeRoot(facts({ clusters: all, policy: changes, ...state })))
        expect(joined).toEqual(expect.arrayContaining(before))
        const [leaving] = before
        const left = active(
          placeRoot(facts({ clusters: others.filter(({ name }) => name !== leaving), policy: changes, ...state })),
        )
        expect(left).toEqual(expect.arrayContaining(before.slice(1)))
      }),
    )
  })

  it('never places more than the limit, on a cluster that is draining, or nowhere while one is eligible', () => {
    fc.assert(
      fc.property(clusters, policy, (all, changes) => {
        const chosen = active(placeRoot(facts({ clusters: all, policy: changes })))
        expect(chosen.length).toBeLessThanOrEqual(changes.maxClusters ?? all.length)
        const usable = all.filter(({ isReady, isDraining }) => isReady && !isDraining)
        expect(usable.map(({ name }) => name)).toEqual(expect.arrayContaining(chosen))
        expect(chosen.length > 0).toBe(usable.length > 0)
      }),
    )
  })
})
