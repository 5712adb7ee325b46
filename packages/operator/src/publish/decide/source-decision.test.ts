/** What counts as a child of a source: its owner mark alone is not enough, since any user can write an annotation. */
import { Service } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { HTTPProxy } from '@seamark/kube/contour'
import { httpProxy, options } from '../../../testing/publish-fixture.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import { createSourceDecider } from './source-decision.ts'

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
