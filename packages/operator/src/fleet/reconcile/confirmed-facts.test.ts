import { type Context, Ingress, Service } from '@seamark/kube'
import { memoryCluster, type MemoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { Cluster } from '../../api/cluster.ts'
import { DEFAULT_POLICY, GlobalIngressPolicy } from '../../api/global-ingress-policy.ts'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import type { MemberViews } from '../members/member-view.ts'
import { globalIngressName, SUMMARY_ANNOTATION } from '../names.ts'
import {
  confirmBackends,
  confirmClusters,
  confirmDefaultPolicy,
  confirmGlobal,
  confirmLeaves,
  confirmPolicies,
  confirmRemotes,
} from './confirmed-facts.ts'

/** A server, and a cache that has nothing of it: as after a list that was short. */
function shortView(): { server: MemoryCluster; ctx: Context & Pick<MemoryCluster, 'informers'> } {
  const server = memoryCluster()
  const { informers, log } = memoryCluster()
  const ctx = { ...informers, informers, client: server.client, log, signal: AbortSignal.any([]) }
  return { server, ctx: ctx as unknown as Context & Pick<MemoryCluster, 'informers'> }
}

const policy = (namespace: string, name: string): GlobalIngressPolicy => ({
  metadata: { namespace, name },
  spec: DEFAULT_POLICY,
})
const named = ({ metadata }: { metadata: { name?: string } } = { metadata: {} }) => metadata.name

const leaf = {
  metadata: { namespace: 'shop', name: 'ingress-shop--eu1' },
  spec: {
    cluster: 'eu1',
    manifests: [{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { namespace: 'shop', name: 'shop' } }],
  },
  status: { phase: 'Active', admitted: true },
} as unknown as LeafIngress
const leaves = new Map([['eu1', leaf]])

/** A member whose cache is empty. */
function viewsOf(readLive: (key: string) => Promise<unknown>): MemberViews {
  return {
    find: () => undefined,
    backendOf: () => ({ state: 'missing', services: ['web'], isAnyPresent: false }),
    readLive: async (_name: string, _kind: unknown, key: string) => readLive(key),
  } as unknown as MemberViews
}

describe('what the cache has lost and the server has', () => {
  it('still counts: the policy that the root uses', async () => {
    const { server, ctx } = shortView()
    server.put(GlobalIngressPolicy, policy('shop', 'used'))
    server.put(GlobalIngressPolicy, policy('shop', 'other'))
    const used = 'GlobalIngressPolicy shop/used'
    expect((await confirmPolicies('shop', used, ctx)).map(named)).toEqual(['used'])
    expect(await confirmPolicies('shop', 'annotations', ctx)).toEqual([])
    expect(await confirmPolicies('shop', undefined, ctx)).toEqual([])
    expect(await confirmPolicies('elsewhere', used, ctx)).toEqual([])
    server.remove(GlobalIngressPolicy, 'shop/used')
    expect(await confirmPolicies('shop', used, ctx)).toEqual([])
  })

  it('still counts: the default policy of roots without one', async () => {
    const { server, ctx } = shortView()
    server.put(GlobalIngressPolicy, policy('manager', 'default'))
    const used = 'GlobalIngressPolicy manager/default'
    expect(named(await confirmDefaultPolicy('manager/default', used, ctx))).toBe('default')
    expect(await confirmDefaultPolicy('manager/default', 'annotations', ctx)).toBeUndefined()
    server.remove(GlobalIngressPolicy, 'manager/default')
    expect(await confirmDefaultPolicy('manager/default', used, ctx)).toBeUndefined()
  })

  it('still counts: the GlobalIngress of a root, with the TTLs that were published', async () => {
    const { server, ctx } = shortView()
    const globalByRoot = ctx.informers.index(GlobalIngress, 'root', () => ['shop/u1'])
    const metadata = { namespace: 'shop', name: 'web', uid: 'u1' }
    const find = async (annotations: Record<string, string>) =>
      confirmGlobal({ kind: Ingress }, { metadata: { ...metadata, annotations } }, { globalByRoot }, ctx)
    const before = { [SUMMARY_ANNOTATION]: 'ready 1/1' }
    expect(await find(before)).toBeUndefined()
    const name = globalIngressName('Ingress', 'web', 'u1')
    const formerTtls = [{ ttlSeconds: 3600, replacedAt: '2026-01-01T00:00:00Z' }]
    const spec = { ttlSeconds: 30, formerTtls } as GlobalIngress['spec']
    server.put(GlobalIngress, { metadata: { namespace: 'shop', name }, spec })
    expect((await find(before))?.spec).toEqual(spec)
    // A root that was never reported has none.
    expect(await find({})).toBeUndefined()
  })

  it('still counts: the leaves that the last status names', async () => {
    const { server, ctx } = shortView()
    const labels = { 'seamark.io/root-uid': 'uid-1' }
    for (const cluster of ['eu1', 'us1'])
      server.put(LeafIngress, {
        ...leaf,
        metadata: { namespace: 'shop', name: `ingress-shop--${cluster}`, labels },
        spec: { ...leaf.spec, cluster },
      })
    const statusOf = (...clusters: string[]) =>
      ({ status: { leaves: clusters.map((cluster) => ({ cluster })) } }) as unknown as GlobalIngress
    const clustersOf = async (uid: string, ...known: string[]) => {
      const root = { metadata: { namespace: 'shop', name: 'shop', uid } }
      return [...(await confirmLeaves({ kind: Ingress }, root, [leaf], statusOf(...known), ctx)).keys()]
    }
    expect(await clustersOf('uid-1', 'eu1', 'us1', 'deleted')).toEqual(['eu1', 'us1'])
    expect(await clustersOf('uid-1')).toEqual(['eu1'])
    // The leaf belongs to an earlier root of that name.
    expect(await clustersOf('uid-2', 'us1')).toEqual(['eu1'])
  })

  it('still counts: the Clusters of leaves', async () => {
    const { server, ctx } = shortView()
    for (const name of ['eu1', 'us1'])
      server.put(Cluster, { metadata: { name }, spec: { weight: 100, namespacePolicy: 'Require' } })
    expect((await confirmClusters(leaves, ctx)).map(named)).toEqual(['eu1'])
  })

  it('still counts: Services and objects of a member; what cannot be read is unknown', async () => {
    const { ctx } = shortView()
    const backends = { namespace: 'shop', services: ['web'] }
    const has = viewsOf(async (key) => ({ metadata: { name: key } }))
    expect((await confirmBackends(leaves, backends, has, ctx))('eu1')).toEqual({ state: 'present' })
    expect((await confirmRemotes(leaves, has, ctx))('eu1', Ingress, 'shop/shop')).toEqual({
      metadata: { name: 'shop/shop' },
    })
    const hasNot = viewsOf(async () => undefined)
    expect((await confirmBackends(leaves, backends, hasNot, ctx))('eu1').state).toBe('missing')
    expect((await confirmRemotes(leaves, hasNot, ctx))('eu1', Ingress, 'shop/shop')).toBeUndefined()
    const silent = viewsOf(async () => Promise.reject(new Error('no response')))
    expect((await confirmBackends(leaves, backends, silent, ctx))('eu1')).toEqual({ state: 'unknown' })
    expect((await confirmRemotes(leaves, silent, ctx))('eu1', Service, 'shop/shop')).toBeUndefined()
    expect((await confirmRemotes(leaves, silent, ctx))('eu1', Ingress, 'shop/shop')).toBe('unknown')
  })
})
