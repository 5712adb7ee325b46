import type { Node } from '@seamark/kube'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideWildcard, type WildcardDecision, type WildcardFacts } from './decide.ts'
import { type NodeFact, readNode } from './node-fact.ts'
import { wildcardDefaults } from './options.ts'
import { wildcardEndpoint, wildcardName } from './wildcard-endpoint.ts'

const options = wildcardDefaults

function node(name: string, address: string, isReady = true): NodeFact {
  return { name, isReady, v4: [address], v6: [] }
}

function decide(
  nodes: NodeFact[],
  changes: Partial<WildcardFacts> = {},
  settings: Partial<typeof options> = {},
): WildcardDecision {
  const facts = { nodes, published: [], lostSince: new Map(), lastWriteMs: undefined, nowMs: 0, ...changes }
  return decideWildcard(facts, { ...options, ...settings })
}

const three = [node('c', '192.0.2.3'), node('a', '192.0.2.1'), node('b', '192.0.2.2')]
const published = ['192.0.2.1', '192.0.2.2', '192.0.2.3']

describe('targets of a wildcard', () => {
  it('W01: three ready nodes are three sorted targets', () => {
    expect(decide(three).action).toEqual({ state: 'publish', v4: published, v6: [] })
  })

  it('W02, W03: a node that is not ready stays for the removal delay, then leaves', () => {
    const nodes = [node('a', '192.0.2.1', false), ...three.filter(({ name }) => name !== 'a')]
    const first = decide(nodes, { published, nowMs: 1_000 })
    expect(first.action).toEqual({ state: 'publish', v4: published, v6: [] })
    expect(first.againAtMs).toBe(46_000)
    const second = decide(nodes, { published, nowMs: 46_000, lostSince: first.lostSince })
    expect(second.action).toEqual({ state: 'publish', v4: ['192.0.2.2', '192.0.2.3'], v6: [] })
  })

  it('W02: ready again within the delay forgets the loss', () => {
    const lost = decide([node('a', '192.0.2.1', false), node('b', '192.0.2.2')], {
      published: ['192.0.2.1', '192.0.2.2'],
    })
    const back = decide([node('a', '192.0.2.1'), node('b', '192.0.2.2')], {
      published: ['192.0.2.1', '192.0.2.2'],
      lostSince: lost.lostSince,
      nowMs: 44_000,
    })
    expect(back.lostSince.size).toBe(0)
    const again = decide([node('a', '192.0.2.1', false), node('b', '192.0.2.2')], {
      published: ['192.0.2.1', '192.0.2.2'],
      lostSince: back.lostSince,
      nowMs: 50_000,
    })
    expect(again.againAtMs).toBe(95_000)
  })

  it('a node that was never in the answer is not added while it is not ready', () => {
    expect(decide([node('a', '192.0.2.1', false), node('b', '192.0.2.2')]).action).toEqual({
      state: 'publish',
      v4: ['192.0.2.2'],
      v6: [],
    })
  })

  it('W07: IPv4 and IPv6 apart', () => {
    const dual = { name: 'a', isReady: true, v4: ['192.0.2.1'], v6: ['2001:db8::1'] }
    expect(decide([dual]).action).toEqual({ state: 'publish', v4: ['192.0.2.1'], v6: ['2001:db8::1'] })
  })

  it('W08: the last ready node lost keeps the targets and warns', () => {
    const nodes = three.map((item) => ({ ...item, isReady: false }))
    const lostSince = new Map(nodes.map(({ name }) => [name, 0]))
    const decision = decide(nodes, { published, lostSince, nowMs: 60_000 })
    expect(decision.action).toEqual({ state: 'keep' })
    expect(decision.findings.map((finding) => finding.reason)).toEqual(['NoReadyNodes'])
    expect(decision.needsConfirmation).toBe(false)
    const deletion = decide(nodes, { published, lostSince, nowMs: 60_000 }, { onEmpty: 'delete' })
    expect(deletion).toMatchObject({ action: { state: 'delete' }, needsConfirmation: true })
  })

  it('nodes lost one after the other: with none ready the targets from before the outage stay', () => {
    const lose = (...names: string[]) => three.map((item) => ({ ...item, isReady: !names.includes(item.name) }))
    let lostSince: ReadonlyMap<string, number> = new Map()
    const at = (nowMs: number, nodes: NodeFact[]) => {
      const decision = decide(nodes, { published, lostSince, nowMs })
      lostSince = decision.lostSince
      return decision
    }
    expect(at(0, lose('a')).action).toMatchObject({ state: 'publish', v4: published })
    expect(at(10_000, lose('a', 'b')).action).toMatchObject({ state: 'publish', v4: published })
    for (const nowMs of [20_000, 45_000, 55_000, 64_999])
      expect(at(nowMs, lose('a', 'b', 'c'))).toMatchObject({ action: { state: 'keep' }, findings: [] })
    const late = at(65_000, lose('a', 'b', 'c'))
    expect(late).toMatchObject({ action: { state: 'keep' }, findings: [{ reason: 'NoReadyNodes' }] })
    expect(at(600_000, lose('a', 'b')).action).toEqual({ state: 'publish', v4: ['192.0.2.3'], v6: [] })
  })

  it('an empty list of nodes keeps the targets; a cluster that never had one gets nothing', () => {
    expect(decide([], { published }).action).toEqual({ state: 'keep' })
    expect(decide([])).toMatchObject({ action: { state: 'keep' }, findings: [] })
  })

  it('W09: a node that is gone leaves at once', () => {
    expect(decide(three.slice(1), { published }).action).toMatchObject({ v4: ['192.0.2.1', '192.0.2.2'] })
  })

  it('W10: equal addresses collapse', () => {
    expect(decide([node('a', '192.0.2.1'), node('b', '192.0.2.1')]).action).toMatchObject({ v4: ['192.0.2.1'] })
  })

  it('coalesces: a change after a write waits for the end of the window', () => {
    const decision = decide(three, { published: published.slice(0, 2), lastWriteMs: 1_000, nowMs: 2_000 })
    expect(decision).toMatchObject({ action: { state: 'keep' }, againAtMs: 6_000 })
    expect(decide(three, { published: published.slice(0, 2), lastWriteMs: 1_000, nowMs: 6_000 }).action.state).toBe(
      'publish',
    )
  })

  it('minTargets keeps the nodes lost last while one is ready', () => {
    const nodes = [node('a', '192.0.2.1', false), node('b', '192.0.2.2', false), node('c', '192.0.2.3')]
    const lostSince = new Map([
      ['a', 0],
      ['b', 1_000],
    ])
    const decision = decide(nodes, { published, lostSince, nowMs: 100_000 }, { minTargets: 2 })
    expect(decision.action).toMatchObject({ v4: ['192.0.2.2', '192.0.2.3'] })
    expect(decision.findings.map((finding) => finding.reason)).toEqual(['BelowMinimumNodes'])
  })

  it('asks for a fresh list when more than 30 % and 5 targets would leave at once', () => {
    const many = Array.from({ length: 20 }, (_, index) => node(`n${index}`, `192.0.2.${index}`))
    const all = many.flatMap((item) => item.v4)
    expect(decide(many.slice(0, 13), { published: all }).needsConfirmation).toBe(true)
    expect(decide(many.slice(0, 14), { published: all }).needsConfirmation).toBe(false)
    expect(decide([], { published: all }).action.state).toBe('keep')
  })

  it('whatever happens to the nodes, a published wildcard never becomes empty and settled input decides the same again', () => {
    const arbitrary = fc.array(fc.record({ index: fc.nat(6), isReady: fc.boolean() }), { maxLength: 8 })
    fc.assert(
      fc.property(fc.array(fc.tuple(arbitrary, fc.nat(60_000)), { maxLength: 12 }), (steps) => {
        let targets: readonly string[] = []
        let lostSince: ReadonlyMap<string, number> = new Map()
        let nowMs = 0
        for (const [items, elapsedMs] of steps) {
          nowMs += elapsedMs
          const nodes = [
            ...new Map(
              items.map((item) => [item.index, node(`n${item.index}`, `192.0.2.${item.index}`, item.isReady)]),
            ).values(),
          ]
          const decision = decide(nodes, { published: targets, lostSince, nowMs })
          lostSince = decision.lostSince
          expect(decision.action.state).not.toBe('delete')
          if (decision.action.state !== 'publish') continue
          const next = [...decision.action.v4, ...decision.action.v6]
          const again = decide(nodes, { published: next, lostSince, nowMs })
          expect(next).not.toEqual([])
          expect(again.action).toEqual(decision.action)
          targets = next
        }
      }),
    )
  })
})

describe('a node', () => {
  const everything = () => true
  const make = (changes: Partial<Node> = {}): Node => ({
    metadata: { name: 'n', labels: { role: 'router' } },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      addresses: [
        { type: 'Hostname', address: 'n' },
        { type: 'InternalIP', address: '10.0.0.1' },
        { type: 'ExternalIP', address: '203.0.113.1' },
      ],
    },
    ...changes,
  })

  it('W04: Unknown, False and absent are not ready', () => {
    for (const status of ['False', 'Unknown'] as const) {
      expect(
        readNode(make({ status: { ...make().status, conditions: [{ type: 'Ready', status }] } }), everything, options)
          ?.isReady,
      ).toBe(false)
    }
    expect(
      readNode(make({ status: { addresses: make().status?.addresses ?? [] } }), everything, options)?.isReady,
    ).toBe(false)
  })

  it('W05: a cordoned node is out, unless the switch keeps it', () => {
    const cordoned = make({ spec: { unschedulable: true } })
    expect(readNode(cordoned, everything, options)).toBeUndefined()
    expect(readNode(cordoned, everything, { ...options, excludeUnschedulable: false })).toBeDefined()
  })

  it('W06: external before internal address, per family; internal only by permission', () => {
    expect(readNode(make(), everything, options)).toMatchObject({ v4: ['203.0.113.1'], v6: [] })
    const internal = make({
      status: {
        ...make().status,
        addresses: [
          { type: 'InternalIP', address: '10.0.0.1' },
          { type: 'ExternalIP', address: '2001:DB8::1' },
        ],
      },
    })
    expect(readNode(internal, everything, options)).toMatchObject({ v4: ['10.0.0.1'], v6: ['2001:db8::1'] })
    expect(readNode(internal, everything, { ...options, allowInternal: false })).toMatchObject({
      v4: [],
      v6: ['2001:db8::1'],
    })
  })

  it('is out when deleted, not selected, excluded by label, or without an address', () => {
    expect(
      readNode(make({ metadata: { name: 'n', deletionTimestamp: '2026-01-01T00:00:00Z' } }), everything, options),
    ).toBeUndefined()
    expect(readNode(make(), (labels) => labels['role'] === 'infra', options)).toBeUndefined()
    expect(
      readNode(
        make({ metadata: { name: 'n', labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } } }),
        everything,
        options,
      ),
    ).toBeUndefined()
    expect(
      readNode(
        make({
          status: {
            addresses: [
              { type: 'ExternalIP', address: '0.0.0.0' },
              { type: 'Hostname', address: 'n' },
            ],
          },
        }),
        everything,
        options,
      ),
    ).toBeUndefined()
  })
})

describe('the DNSEndpoint of a wildcard', () => {
  it('W15: the name without the trailing dot of the zone, lower-case', () => {
    expect(wildcardName('Fra1', 'Clusters.Example.com.')).toEqual({ name: '*.fra1.clusters.example.com' })
    expect(wildcardName('a', '')).toEqual({ fault: 'no zone is configured' })
    expect(wildcardName('a'.repeat(64), 'example.com')).toHaveProperty('fault')
    expect(wildcardName('a_b', 'example.com')).toHaveProperty('fault')
  })

  it('has the cluster as owner, TTL 60, A before AAAA, and the apex when asked', () => {
    const place = { cluster: 'fra1', namespace: 'seamark', secret: { name: 'fra1', uid: 'u' } }
    const object = wildcardEndpoint(
      place,
      '*.fra1.example.com',
      { v4: ['192.0.2.1'], v6: ['2001:db8::1'] },
      { ...options, apex: true },
    )
    expect(object.metadata).toMatchObject({
      name: 'fra1-wildcard',
      namespace: 'seamark',
      ownerReferences: [{ kind: 'Secret', name: 'fra1', uid: 'u' }],
    })
    expect(
      object.spec.endpoints.map(({ dnsName, recordType, recordTTL }) => `${dnsName} ${recordTTL} ${recordType}`),
    ).toEqual([
      '*.fra1.example.com 60 A',
      '*.fra1.example.com 60 AAAA',
      'fra1.example.com 60 A',
      'fra1.example.com 60 AAAA',
    ])
  })
})
