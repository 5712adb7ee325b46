import { type Context, Ingress } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { Cluster } from '../../api/cluster.ts'
import { DEFAULT_POLICY } from '../../api/global-ingress-policy.ts'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { PlannedLeaves } from '../members/planned-leaves.ts'
import { SyncResults } from '../members/sync-results.ts'
import { ROOT_UID_LABEL } from '../../hosts/root.ts'
import { ingressRoot } from '../roots/ingress.ts'
import { createRootIndexes } from '../roots/root-indexes.ts'
import { type RootPassDeps, startPass } from './root-pass.ts'

it('the addresses of a leaf are those that its Cluster allows, also if the cache has lost the Cluster', async () => {
  const server = memoryCluster()
  server.put(Cluster, {
    metadata: { name: 'eu1' },
    spec: { weight: 100, namespacePolicy: 'Require', ingress: { excludeAddresses: ['10.0.0.1'] } },
  })
  const root: Ingress = {
    metadata: { namespace: 'shop', name: 'shop', uid: 'u1' },
    spec: { rules: [{ host: 'shop.example.com' }] },
  }
  const cache = memoryCluster()
  cache.put(LeafIngress, {
    metadata: { namespace: 'shop', name: 'ingress-shop--eu1', labels: { [ROOT_UID_LABEL]: 'u1' } },
    spec: {
      cluster: 'eu1',
      manifests: [
        { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: { namespace: 'shop', name: 'shop' } },
      ],
    },
  } as unknown as LeafIngress)
  const remote = { ...root, status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { ip: '10.0.0.1' }] } } }
  const deps = {
    views: { find: () => remote, backendOf: () => ({ state: 'present' }), endpointsReady: () => 1 },
    indexes: createRootIndexes(cache.informers as never, true),
    options: { hubId: 'hub', leafAnnotations: [], dns: true },
    results: new SyncResults(),
    planned: new PlannedLeaves(),
    hubUid: async () => 'hub',
    labelledClusters: () => undefined,
  } as unknown as RootPassDeps
  const ctx = {
    ...cache.informers,
    client: server.client,
    clock: { now: () => 0 },
    signal: AbortSignal.any([]),
    apply: (async (kind, object) => server.client.apply(kind, object)) as Context['apply'],
  } as unknown as Context
  const claimed = { owned: ['shop.example.com'], owners: new Map(), refused: [], isGivenUp: false }
  const policy = { spec: DEFAULT_POLICY, source: 'annotations' }
  const { leaves } = await startPass(ingressRoot, root, { policy, claimed }, deps, ctx)
  expect(leaves.get('eu1')?.seen.addresses.map(({ value }) => value)).toEqual(['192.0.2.1'])
})
