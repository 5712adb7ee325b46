import { type Context, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { httpProxy, options } from '../../../testing/publish-fixture.ts'
import type { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { createSourceDecider } from '../decide/source-decision.ts'
import { CONDITION_TYPE } from '../watches.ts'
import { confirmRetargets } from './omitted-children.ts'

interface Given {
  /** Targets of the record that the server has and no cache does. */
  readonly live?: readonly string[]
  /** Whether the source has our condition. */
  readonly isReported?: boolean
}

/** Whether the record is retargeted, and how often the server was read. */
async function decideWith({ live, isReported = true }: Given) {
  const settings = options({ sources: ['HTTPProxy'], children: ['DNSEndpoint'], prune: true, conditions: true })
  const cluster = memoryCluster()
  cluster.put(Service, {
    metadata: { namespace: 'test-ns', name: 'test-svc' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  })
  const conditions = [{ type: CONDITION_TYPE, status: 'True' as const, reason: 'Published' }]
  cluster.put(HTTPProxy, { ...httpProxy(), ...(isReported && { status: { conditions } }) })
  const decided = createSourceDecider(cluster.informers, settings).decide('HTTPProxy', 'ns/foo', 0)
  if (decided === undefined) throw new Error('no source')
  const [dns] = decided.plan.steps.flatMap((step) =>
    step.type === 'apply' ? [step.desired.object as DNSEndpoint] : [],
  )
  let reads = 0
  const find = async () => {
    reads++
    if (live === undefined || dns === undefined) return undefined
    return { ...dns, spec: { endpoints: dns.spec.endpoints.map((each) => ({ ...each, targets: [...live] })) } }
  }
  const client = { ...cluster.client, find } as unknown as Context['client']
  const confirmed = await confirmRetargets(
    decided,
    { client, signal: new AbortController().signal },
    {
      options: settings,
      informers: cluster.informers,
    },
  )
  const steps = confirmed.plan.steps.flatMap((step) => (step.type === 'apply' ? [step.isRetarget] : []))
  return { isRetarget: steps, reads }
}

it('a record that only the server has, with other targets, is retargeted and not created', async () => {
  expect(await decideWith({ live: ['203.0.113.9'] })).toEqual({ isRetarget: [true], reads: 1 })
})

it('a record that the server lacks, or has with the same targets, is no retarget', async () => {
  expect(await decideWith({})).toEqual({ isRetarget: [false], reads: 1 })
  expect(await decideWith({ live: ['192.0.2.1'] })).toEqual({ isRetarget: [false], reads: 1 })
})

it('nothing is read for a source that was never published', async () => {
  expect(await decideWith({ live: ['203.0.113.9'], isReported: false })).toEqual({ isRetarget: [false], reads: 0 })
})
