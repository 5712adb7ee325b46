import { ConfigMap, manager } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { httpProxy, options } from '../../../testing/publish-fixture.ts'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import { createSourceDecider } from '../decide/source-decision.ts'
import { STATE_NAME } from './baseline.ts'
import { addBaselineController } from './baseline-store.ts'
import type { HeldObjects } from '../../safety/held-objects.ts'
import { createMassGuard } from '../../safety/mass-guard.ts'
import { DEFAULT_MASS_LIMITS } from '../../safety/mass-limits.ts'
import { OmittedSources } from './omitted-sources.ts'

const settings = options({ sources: ['HTTPProxy'], children: ['DNSEndpoint'], prune: true })

/** A cluster with children of these owners, whose caches have no source; `live` are those that the server has. */
function clusterWith(owners: readonly string[], live: Set<string>, manager: string = FIELD_MANAGER) {
  const cluster = memoryCluster()
  for (const owner of owners) {
    const [namespace = '', name = ''] = owner.split('/')
    cluster.put(DNSEndpoint, {
      metadata: {
        namespace,
        name,
        annotations: { 'contour-plus.cybozu.com/owned-by': owner },
        managedFields: [{ manager, operation: 'Apply', apiVersion: 'externaldns.k8s.io/v1alpha1', fieldsV1: {} }],
      },
      spec: { endpoints: [] },
    })
  }
  const read: string[] = []
  const find = async (kind: unknown, key: string) => {
    if (kind !== HTTPProxy) return cluster.client.find(kind as never, key)
    read.push(key)
    return live.has(key) ? httpProxy() : undefined
  }
  const decider = createSourceDecider(cluster.informers, settings)
  const client = { ...cluster.client, find: find as typeof cluster.client.find }
  return { cluster: { ...cluster, client }, decider, read, live }
}

const { signal } = new AbortController()

describe('sources that no cache contains', () => {
  it('may exist while the server has one of them, and each is read until it is deleted', async () => {
    const live = new Set(['ns/b'])
    const { cluster, decider, read } = clusterWith(['ns/a', 'ns/b'], live)
    const omitted = new OmittedSources()
    expect(await omitted.mayExist(decider, cluster.client, signal)).toBe(true)
    live.clear()
    expect(await omitted.mayExist(decider, cluster.client, signal)).toBe(false)
    expect(await omitted.mayExist(decider, cluster.client, signal)).toBe(false)
    expect(read).toEqual(['ns/a', 'ns/b', 'ns/b'])
  })

  it('are read a few at a time', async () => {
    const owners = Array.from({ length: 45 }, (_, index) => `ns/p${index}`)
    const { cluster, decider, read } = clusterWith(owners, new Set())
    const omitted = new OmittedSources()
    const found: boolean[] = []
    for (let call = 0; call < 3; call++) found.push(await omitted.mayExist(decider, cluster.client, signal))
    expect(found).toEqual([true, true, false])
    expect(read).toHaveLength(45)
  })

  it('are not looked for because of a child that another field manager applied', async () => {
    const { cluster, decider, read } = clusterWith(['ns/a'], new Set(['ns/a']), 'kubectl')
    expect(await new OmittedSources().mayExist(decider, cluster.client, signal)).toBe(false)
    expect(read).toEqual([])
  })

  it('keep the guard on: the configuration is not stored as the one that published', async () => {
    const { cluster, decider, live } = clusterWith(['ns/a'], new Set(['ns/a']))
    const clock = fakeClock()
    const mgr = await manager({ cluster, clock, fieldManager: 'test', log: cluster.log, grace: '1s' })
    const guard = createMassGuard({
      clock,
      limits: DEFAULT_MASS_LIMITS,
      idPrefix: 'p',
      cause: '',
      countPublished: () => decider.countPublished(),
    })
    const baseline = { isGuarded: true }
    addBaselineController(mgr, { decider, guard }, baseline, {
      options: settings,
      namespace: 'manager',
      clock,
      isWriting: () => true,
      heldObjects: {} as HeldObjects,
      notify: () => undefined,
    })
    const stop = new AbortController()
    const running = mgr.run(stop.signal)
    onTestFinished(async () => {
      stop.abort()
      await running
    })
    const stored = () => cluster.informers.get(ConfigMap, `manager/${STATE_NAME}`)
    await clock.advance(60_000)
    expect([baseline.isGuarded, stored()]).toEqual([true, undefined])
    live.clear()
    await clock.advance(60_000)
    expect([baseline.isGuarded, stored() !== undefined]).toEqual([false, true])
  })
})
