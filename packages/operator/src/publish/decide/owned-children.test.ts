import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { HTTPProxy } from '../../api/http-proxy.ts'
import { annotated, httpProxy } from '../../../testing/publish-fixture.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import { OWNED_BY } from '../annotation-keys.ts'
import { unified } from '../options.ts'
import { createSourceDecider } from './source-decision.ts'

/** A child that is marked as the source's, and not asked for any more. */
const child = (manager: string): DNSEndpoint => ({
  metadata: {
    namespace: 'ns',
    name: 'old',
    uid: 'uid-old',
    annotations: { [OWNED_BY]: 'HTTPProxy/ns/foo' },
    managedFields: [
      { manager, operation: 'Apply', apiVersion: 'externaldns.k8s.io/v1alpha1', fieldsType: 'FieldsV1', fieldsV1: {} },
    ],
  },
  spec: { endpoints: [] },
})

it.each([
  ['is deleted when our field manager applied it', FIELD_MANAGER, ['delete old']],
  ['is left alone when another field manager wrote it', 'kubectl-client-side-apply', []],
])('a child with our owner mark %s', async (_title, manager, expected) => {
  const cluster = memoryCluster()
  const decider = createSourceDecider(cluster.informers, { ...unified, sources: ['HTTPProxy'] })
  cluster.put(HTTPProxy, httpProxy(annotated({ 'seamark.io/exclude': 'dns' })))
  cluster.put(DNSEndpoint, child(manager))
  await cluster.informers.informer(HTTPProxy).synced()
  const steps = decider.decide('HTTPProxy', 'ns/foo', 0)?.plan.steps ?? []
  const deleted = steps.flatMap((step) => (step.type === 'delete' ? [`delete ${step.child.object.metadata.name}`] : []))
  expect(deleted).toEqual(expected)
})
