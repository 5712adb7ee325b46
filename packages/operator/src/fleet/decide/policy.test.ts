import { describe, expect, it } from 'vitest'
import { DEFAULT_POLICY, type GlobalIngressPolicy } from '../../api/global-ingress-policy.ts'
import { type PolicyFacts, resolvePolicy } from './policy.ts'

const policy = (
  name: string,
  spec: Partial<GlobalIngressPolicy['spec']>,
  creationTimestamp = '2026-01-01T00:00:00Z',
): GlobalIngressPolicy => ({
  metadata: { name, namespace: 'web', creationTimestamp },
  spec: { ...DEFAULT_POLICY, ...spec },
})

function resolve(changes: Partial<PolicyFacts> = {}, annotations: Record<string, string> = {}) {
  const root = { metadata: { name: 'shop', namespace: 'web', labels: { tier: 'prod' }, annotations } }
  return resolvePolicy({
    root,
    group: 'networking.k8s.io',
    kind: 'Ingress',
    policies: [],
    defaultPolicy: undefined,
    ...changes,
  })
}

const target = { group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }

describe('the policy of a root', () => {
  it('is the one that names it, then the oldest that selects it, then the default, then annotations', () => {
    const named = policy('named', { targetRefs: [target] })
    const selected = policy('selected', { selector: { matchLabels: { tier: 'prod' } } })
    const older = policy('older', { selector: { matchLabels: { tier: 'prod' } } }, '2025-01-01T00:00:00Z')
    const fallback = policy('default', {})
    expect(resolve({ policies: [selected, named], defaultPolicy: fallback }).source).toContain('web/named')
    expect(resolve({ policies: [selected, older], defaultPolicy: fallback }).source).toContain('web/older')
    expect(resolve({ defaultPolicy: fallback }).source).toContain('web/default')
    expect(resolve()).toMatchObject({ source: 'annotations', spec: { traffic: { strategy: 'roundRobin' } } })
  })

  it('is read from annotations', () => {
    const annotations = {
      'seamark.io/clusters': 'eu1, us1',
      'seamark.io/weight.eu1': '30',
      'seamark.io/ttl': '5',
      'seamark.io/drain-seconds': '7',
      'seamark.io/health-path': '/up',
      'seamark.io/cluster-selector': 'tier=prod',
    }
    expect(resolve({}, annotations)).toMatchObject({
      spec: {
        placement: { clusters: ['eu1', 'us1'], clusterSelector: { matchLabels: { tier: 'prod' } } },
        traffic: { strategy: 'weighted', weights: { eu1: 30 }, ttlSeconds: 5 },
        migration: { drainSeconds: 7 },
        health: { path: '/up' },
      },
    })
    expect(resolve({}, { 'seamark.io/primary': 'eu1' })).toMatchObject({
      spec: { traffic: { strategy: 'failover', order: ['eu1'] } },
    })
  })

  it('names the field that is wrong and ignores none', () => {
    const bad = policy('bad', { targetRefs: [target], traffic: { ...DEFAULT_POLICY.traffic, ttlSeconds: 0 } })
    expect(resolve({ policies: [bad] })).toMatchObject({ message: expect.stringContaining('spec.traffic.ttlSeconds') })
    expect(resolve({}, { 'seamark.io/ttl': 'soon' })).toMatchObject({
      message: expect.stringContaining('seamark.io/ttl: "soon"'),
    })
    expect(resolve({}, { 'seamark.io/strategy': 'magic' })).toMatchObject({
      message: expect.stringContaining('spec.traffic.strategy'),
    })
    expect(resolve({}, { 'seamark.io/cluster-selector': 'tier' })).toMatchObject({
      message: expect.stringContaining('cluster-selector'),
    })
  })

  it('has at most 64 KiB of patches, which are all refused beyond that', () => {
    const overrides = (octets: number) => [
      { cluster: 'eu1', patches: [{ op: 'add' as const, path: '/x', value: 'v'.repeat(octets) }] },
    ]
    const fitting = policy('fitting', { targetRefs: [target], overrides: overrides(65_000) })
    expect(resolve({ policies: [fitting] })).toHaveProperty('spec')
    const large = policy('large', { targetRefs: [target], overrides: [...overrides(33_000), ...overrides(33_000)] })
    expect(resolve({ policies: [large] })).toMatchObject({
      message: 'GlobalIngressPolicy web/large: spec.overrides has more than 65536 octets; make the patches smaller',
    })
    const deep: unknown = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)
    const nested = [{ cluster: 'eu1', patches: [{ op: 'add' as const, path: '/x', value: deep }] }]
    expect(resolve({ policies: [policy('deep', { targetRefs: [target], overrides: nested })] })).toMatchObject({
      message: expect.stringContaining('spec.overrides'),
    })
  })
})
