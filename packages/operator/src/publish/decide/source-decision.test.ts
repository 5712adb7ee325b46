/** What counts as a child of a source: its owner mark alone is not enough, since any user can write an annotation. */
import { Service } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { HTTPProxy } from '@seamark/kube/contour'
import { httpProxy, options } from '../../../testing/publish-fixture.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import { createSourceDecider, keepsHost } from './source-decision.ts'

/** The children that are deleted when the source no longer requests the one called `old`. */
async function deletedOf(manager: string) {
  const cluster = memoryCluster()
  const decider = createSourceDecider(cluster.informers, options({ sources: ['HTTPProxy'], prune: true }))
  const annotations = { 'contour-plus.cybozu.com/owned-by': 'ns/foo' }
  cluster.put(Service, {
    metadata: { namespace: 'test-ns', name: 'test-svc' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  })
  cluster.put(HTTPProxy, httpProxy())
  const { uid = '' } = cluster.informers.get(HTTPProxy, 'ns/foo')?.metadata ?? {}
  const owner = { apiVersion: 'projectcontour.io/v1', kind: 'HTTPProxy', name: 'foo', uid, controller: true }
  cluster.put(DNSEndpoint, {
    metadata: {
      namespace: 'ns',
      name: 'old',
      annotations,
      ownerReferences: [owner],
      managedFields: [{ manager, operation: 'Apply', apiVersion: 'externaldns.k8s.io/v1alpha1', fieldsV1: {} }],
    },
    spec: { endpoints: [] },
  })
  const steps = decider.decide('HTTPProxy', 'ns/foo', 0)?.plan.steps ?? []
  return steps.flatMap((step) => (step.type === 'delete' ? [step.child.object.metadata.name] : []))
}

it('deletes a child that we applied and the source no longer requests', async () => {
  expect(await deletedOf(FIELD_MANAGER)).toEqual(['old'])
})

it('does not delete an object with our owner mark that another field manager applied', async () => {
  expect(await deletedOf('kubectl')).toEqual([])
})

/** Owners whose host `ns/foo` claims, when a child of `other/first` with that host exists and no list contains its owner. */
function unconfirmedOwners(manager: string) {
  const cluster = memoryCluster()
  const decider = createSourceDecider(cluster.informers, options({ sources: ['HTTPProxy'], arbitrateHosts: true }))
  cluster.put(HTTPProxy, httpProxy())
  const [host = ''] = decider.sources.find('HTTPProxy', 'ns/foo')?.source.hosts ?? []
  cluster.put(DNSEndpoint, {
    metadata: {
      namespace: 'other',
      name: 'first',
      annotations: { 'contour-plus.cybozu.com/owned-by': 'other/first' },
      managedFields: [{ manager, operation: 'Apply', apiVersion: 'externaldns.k8s.io/v1alpha1', fieldsV1: {} }],
    },
    spec: { endpoints: [{ dnsName: host.toUpperCase(), recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }] },
  })
  return decider.decide('HTTPProxy', 'ns/foo', 0)?.unconfirmed.map(({ kind, key }) => `${kind} ${key}`)
}

it('names the owner of a published host that no list contains, so that it is read before the host is taken', () => {
  expect(unconfirmedOwners(FIELD_MANAGER)).toEqual(['HTTPProxy other/first'])
})

it('does not wait for the owner of a child that we did not publish', () => {
  expect(unconfirmedOwners('kubectl')).toEqual([])
})

it.each([
  ['is older and names the host', {}, true],
  ['is younger', { createdAt: '2031-01-01T00:00:00Z' }, false],
  ['names another host now', { hosts: ['other.example.com'] }, false],
  ['is being deleted', { isDeleting: true }, false],
  ['has no grant', { namespace: 'stranger' }, false],
])('a former owner that %s', (_what, change, keeps) => {
  const cluster = memoryCluster()
  const settings = options({ sources: ['HTTPProxy'], grants: [{ namespace: 'ns', domains: ['example.com'] }] })
  const decider = createSourceDecider(cluster.informers, settings)
  cluster.put(HTTPProxy, httpProxy())
  const found = decider.sources.find('HTTPProxy', 'ns/foo')
  if (found === undefined) throw new Error('there is no source')
  const [host = ''] = found.source.hosts
  const source = { ...found.source, uid: 'young', createdAt: '2030-06-01T00:00:00Z' }
  const owner = { ...found.source, uid: 'old', createdAt: '2030-01-01T00:00:00Z', ...change }
  expect(keepsHost(owner, source, host, settings)).toBe(keeps)
})
