import type { Ingress } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import { planFactsOf, readyCluster } from '../../../testing/root-plan-fixture.ts'
import type { Cluster } from '../../api/cluster.ts'
import { DEFAULT_POLICY, parsePolicySpec } from '../../api/global-ingress-policy.ts'
import type { GlobalIngressSpec } from '../../api/global-ingress.ts'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { type PlanFacts, planRoot } from './plan.ts'

const HOST = 'shop.example.com'

const root: Ingress = {
  metadata: { namespace: 'shop', name: 'shop', uid: 'u1' },
  spec: { rules: [{ host: HOST }] },
}

const plan = (changes: Partial<PlanFacts<Ingress>> = {}) =>
  planRoot<Ingress>({ ...planFactsOf(root, [readyCluster('eu1')]), ...changes })

const leafOf = (cluster: string, spec: Partial<LeafIngress['spec']> = {}) =>
  new Map([
    [
      cluster,
      {
        metadata: { namespace: 'shop', name: `ingress-shop--${cluster}` },
        spec: { cluster, lifecycle: 'Active', manifests: [], specHash: 'before', ...spec },
      } as LeafIngress,
    ],
  ])

describe('the plan of a root', () => {
  it('keeps the manifests of a leaf that leaves it, and of one that cannot be rendered any more', () => {
    const left = plan({ clusters: [], leaves: leafOf('eu1') })
    expect(left.leaves).toMatchObject([{ cluster: 'eu1', spec: { lifecycle: 'Draining', specHash: 'before' } }])
    const refused = plan({ ownedHosts: [], leaves: leafOf('eu1') })
    expect(refused.leaves).toMatchObject([{ cluster: 'eu1', spec: { lifecycle: 'Active', specHash: 'before' } }])
    expect(refused.refused).toMatchObject([{ cluster: 'eu1', reason: 'HostsNotOwned' }])
    expect(refused.spec.clusters).toMatchObject([{ name: 'eu1', state: 'Active' }])
  })

  it('lets leaves go whose namespace may use none of the hosts any more, and plans none', () => {
    const gone = plan({ ownedHosts: [], isGivenUp: true, leaves: leafOf('eu1') })
    expect(gone.leaves).toMatchObject([{ cluster: 'eu1', spec: { lifecycle: 'Draining', specHash: 'before' } }])
    expect(plan({ ownedHosts: [], isGivenUp: true }).leaves).toEqual([])
  })

  it('has no cluster for which no leaf could be rendered', () => {
    const { leaves, spec } = plan({ ownedHosts: [] })
    expect([leaves, spec.clusters, spec.published]).toEqual([[], [], false])
  })

  it('has expected statuses as codes, or as ranges when there is one', () => {
    const healthOf = (expectedStatus: string[]) => {
      const parsed = parsePolicySpec({ health: { expectedStatus } })
      if (!('spec' in parsed)) throw new Error(parsed.message)
      return plan({ policy: parsed.spec }).spec.health
    }
    expect(healthOf(['200', '204'])).toMatchObject({ statusCodes: [200, 204] })
    const { statusCodes, expectedStatus } = healthOf(['200-299', '401'])
    expect([statusCodes, expectedStatus]).toEqual([undefined, ['200-299', '401']])
  })

  it('stays published once it was, and is published first when a leaf can serve', () => {
    const { spec } = plan({ canPublish: false })
    expect(spec.published).toBe(false)
    expect(plan({ previous: spec }).spec.published).toBe(true)
    expect(plan({ canPublish: false, previous: { ...spec, published: true } }).spec.published).toBe(true)
  })

  it('places a draining cluster as a new one: not before it is ready', () => {
    const notReady: Cluster = { ...readyCluster('eu1'), status: { servedKinds: ['Ingress'] } }
    const previous = (state: 'Active' | 'Draining') =>
      ({ ...plan().spec, clusters: [{ name: 'eu1', state }] }) as GlobalIngressSpec
    const stateOf = (state: 'Active' | 'Draining') =>
      plan({ clusters: [notReady], previous: previous(state), leaves: leafOf('eu1') }).leaves[0]?.spec.lifecycle
    expect(stateOf('Active')).toBe('Active')
    expect(stateOf('Draining')).toBe('Draining')
  })

  it('takes over fields and objects of others, and creates namespaces, only where that is requested', () => {
    const [plain] = plan().leaves
    expect([plain?.spec.force, plain?.spec.adopt, plain?.spec.namespacePolicy]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    const spec = { weight: 100, namespacePolicy: 'Create' } as const
    const [requested] = plan({
      policy: { ...DEFAULT_POLICY, conflict: 'Force' },
      root: { ...root, metadata: { ...root.metadata, annotations: { 'seamark.io/adopt': 'true' } } },
      clusters: [{ ...readyCluster('eu1'), spec }],
    }).leaves
    expect(requested?.spec).toMatchObject({ force: true, adopt: true, namespacePolicy: 'Create' })
  })
})
