import { ConfigMap, CustomResourceDefinition, Event, manager, Service } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { expect, it, onTestFinished } from 'vitest'
import { reportDeniedWatches } from './denied-watches.ts'

const DENIED = { reason: 'denied', message: 'User "seamark" cannot list resource "services"', sinceMs: 1 } as const

/** A running manager with a watch of Services and of CRDs. */
async function started() {
  const cluster = memoryCluster()
  const clock = fakeClock()
  cluster.informers.informer(Service)
  cluster.informers.informer(CustomResourceDefinition)
  const mgr = await manager({ cluster, clock, fieldManager: 'test', log: cluster.log, grace: '1s' })
  reportDeniedWatches(mgr, 'seamark')
  const stop = new AbortController()
  const running = mgr.run(stop.signal)
  onTestFinished(async () => {
    stop.abort()
    await running
  })
  const events = () => cluster.requests.filter(({ verb, kind }) => verb === 'create' && kind.startsWith('Event'))
  await clock.advance(1_000)
  return { cluster, clock, events }
}

it('a denied watch is logged and reported as an Event on the configuration object', async () => {
  const { cluster, clock, events } = await started()
  cluster.setFailure(Service, DENIED)
  await clock.advance(1_000)
  const [{ body } = { body: undefined }] = events()
  const { regarding, reason, type, note } = body as Event
  expect({ regarding, reason, type }).toEqual({
    regarding: { apiVersion: ConfigMap.version, kind: 'ConfigMap', name: 'seamark', namespace: 'seamark' },
    reason: 'WatchForbidden',
    type: 'Warning',
  })
  expect(note).toContain('services cannot be listed and watched')
  expect(note).toContain(DENIED.message)
  expect(cluster.lines.join()).toContain('WatchForbidden')
})

it('a denied watch is reported once, again after half an hour, and no more once it is allowed', async () => {
  const { cluster, clock, events } = await started()
  cluster.setFailure(Service, DENIED)
  await clock.advance(60_000)
  expect(events()).toHaveLength(1)
  await clock.advance(30 * 60_000)
  expect(events()).toHaveLength(2)
  cluster.setFailure(Service, undefined)
  await clock.advance(60 * 60_000)
  expect(events()).toHaveLength(2)
  expect(cluster.lines.join()).toContain('the watch is allowed again')
})

it.each([
  ['the watch of definitions, which is optional', CustomResourceDefinition, DENIED],
  ['a server that does not answer', Service, { ...DENIED, reason: 'broken' as const }],
])('%s is not reported', async (_name, kind, failure) => {
  const { cluster, clock, events } = await started()
  cluster.setFailure(kind, failure)
  await clock.advance(60_000)
  expect(events()).toEqual([])
})
