import { describe, expect, it } from 'vitest'
import type { Cluster } from '../cache/cluster.ts'
import { createLearnedDefaults } from './learned-defaults.ts'
import { Conflict } from '../errors.ts'
import { addFinalizer, nextFinalizerStep, removeFinalizer } from '../client/finalizer.ts'
import { ConfigMap } from '../object/kinds.ts'
import { openFence } from './write-fence.ts'
import { kind, type Obj } from '../object/object.ts'
import { memoryCluster } from '../testing/memory/memory-cluster.ts'
import { createWriter, fencedClient } from './writer.ts'

interface Route extends Obj {
  spec: { host: string }
  status?: { ready: boolean; seen?: string }
}
const Route = kind<Route>({ group: 'test', version: 'v1', kind: 'Route', plural: 'routes', namespaced: true })
const metadata = { name: 'shop', namespace: 'web' }

function setUp() {
  const cluster = memoryCluster()
  const stop = new AbortController()
  let isShut = false
  const fence = {
    check() {
      if (isShut) throw new Error('fence is shut')
    },
  }
  const deps = { cluster, fieldManager: 'test', fence, defaults: createLearnedDefaults(), signal: stop.signal }
  return { cluster, stop, writer: createWriter(deps), shut: () => (isShut = true), fence }
}

describe('writer', () => {
  it('sends an apply once, and nothing when it would change nothing', async () => {
    const { cluster, writer } = setUp()
    const intent = { metadata, data: { a: '1' } }
    const first = await writer.apply(ConfigMap, intent)
    expect(await writer.apply(ConfigMap, intent)).toBe(first)
    expect(cluster.requests.map(({ verb }) => verb)).toEqual(['apply'])
    cluster.put(ConfigMap, { ...(first as ConfigMap), data: { a: 'edited' } })
    expect((await writer.apply(ConfigMap, intent)).data).toEqual({ a: '1' })
    await writer.apply(ConfigMap, { metadata, data: { a: '1', b: '2' } })
    expect(cluster.requests).toHaveLength(3)
  })

  it('records a default missing from early responses from an apply that changed nothing', async () => {
    interface Rules extends Obj {
      spec: { rules: object[] }
    }
    const Rules = kind<Rules>({ group: 'test', version: 'v1', kind: 'Rules', plural: 'rules', namespaced: true })
    const fields = '{"f:spec":{"f:rules":{}}}'
    const defaults = createLearnedDefaults()
    while (defaults.isOpen(Rules, fields));
    let live: Rules | undefined
    let sent = 0
    const cluster = {
      informers: { get: () => live, ownFields: () => (live === undefined ? undefined : fields) },
      client: {
        apply: async (_kind: unknown, { metadata: named, spec }: Rules) => {
          sent++
          const rules = spec.rules.map((rule) => ({ weight: 1, ...rule }))
          live = { metadata: { ...named, resourceVersion: '1' }, spec: { rules } }
          return live
        },
      },
    } as unknown as Cluster
    const { signal } = new AbortController()
    const writer = createWriter({ cluster, fieldManager: 'test', fence: openFence, defaults, signal })
    for (let i = 0; i < 4; i++) await writer.apply(Rules, { metadata, spec: { rules: [{ host: 'a.test' }] } })
    expect(sent).toBe(2)
  })

  it('never sends empty labels or annotations', async () => {
    const { cluster, writer } = setUp()
    await writer.apply(ConfigMap, { metadata: { ...metadata, labels: {}, annotations: {} }, data: { a: '1' } })
    await writer.apply(ConfigMap, { metadata: { ...metadata, labels: {} }, data: { a: '1' } })
    expect(cluster.requests.map(({ body }) => body)).toEqual([{ metadata, data: { a: '1' } }])
  })

  it('lets the server decide about a kind that is not watched', async () => {
    const { cluster, writer } = setUp()
    cluster.setState(ConfigMap, 'starting')
    await writer.apply(ConfigMap, { metadata, data: { a: '1' } })
    await writer.apply(ConfigMap, { metadata, data: { a: '1' } })
    expect(cluster.requests).toHaveLength(2)
  })

  it('writes a status once, only to the same object', async () => {
    const { cluster, writer } = setUp()
    const route = cluster.put(Route, { metadata, spec: { host: 'a.test' } })
    await writer.status(route, { ready: true })
    await writer.status(route, { ready: true })
    expect(cluster.requests).toEqual([
      expect.objectContaining({
        verb: 'apply',
        subresource: 'status',
        body: { metadata: { ...metadata, uid: route.metadata.uid }, status: { ready: true } },
      }),
    ])
    await writer.status(route, { ready: false })
    expect(cluster.requests).toHaveLength(2)
    await expect(writer.status({ metadata, kind: 'Route' }, { ready: true })).rejects.toThrow(
      'the status of Route web/shop cannot be written',
    )
  })

  it('deletes only an object that a live read shows unchanged and still to be deleted', async () => {
    const { cluster, writer } = setUp()
    const old = cluster.put(ConfigMap, { metadata, data: { a: '1' } })
    const deletes = () => cluster.requests.filter(({ verb }) => verb === 'delete')
    await writer.delete(ConfigMap, old, { when: (live) => live.data?.['a'] === '2' })
    await writer.delete(ConfigMap, { ...old, metadata: { ...old.metadata, uid: 'another' } })
    expect(deletes()).toEqual([])

    const changed = cluster.put(ConfigMap, { ...old, data: { a: '2' } })
    await writer.delete(ConfigMap, old, { when: (live) => live.data?.['a'] === '2' })
    const { uid, resourceVersion } = changed.metadata
    expect(deletes().map(({ body }) => body)).toEqual([{ uid, resourceVersion }])
    await writer.delete(ConfigMap, old)
    expect(deletes()).toHaveLength(1)
  })

  it('fails a delete that raced a change, instead of deleting the changed object', async () => {
    const { cluster, writer } = setUp()
    const object = cluster.put(ConfigMap, { metadata })
    cluster.intercept = ({ verb }) => {
      if (verb === 'delete') cluster.put(ConfigMap, { ...object, data: { mine: 'now' } })
    }
    await expect(writer.delete(ConfigMap, object)).rejects.toBeInstanceOf(Conflict)
    expect(cluster.informers.get(ConfigMap, 'web/shop')?.data).toEqual({ mine: 'now' })
  })

  it('sends nothing once the fence is closed or the reconcile was stopped', async () => {
    for (const how of ['fence', 'signal'] as const) {
      const { cluster, writer, stop, shut, fence } = setUp()
      const object = cluster.put(Route, { metadata, spec: { host: 'a.test' } })
      const client = fencedClient(cluster.client, fence, stop.signal)
      if (how === 'fence') shut()
      else stop.abort(new Error('stopped'))
      const message = how === 'fence' ? 'fence is shut' : 'stopped'
      const writes = [
        () => writer.apply(Route, object),
        () => writer.status(object, { ready: true }),
        () => writer.delete(Route, object),
        () => client.create(Route, object),
        () => client.update(Route, object),
        () => client.updateStatus(Route, object),
        () => client.apply(Route, object),
        () => client.patch(Route, 'web/shop', 'merge', {}),
        () => client.delete(Route, 'web/shop'),
        () => client.deleteCollection(Route, {}),
        () => client.request({ method: 'POST', path: '/x' }),
      ]
      for (const write of writes) await expect(write()).rejects.toThrow(message)
      expect(cluster.requests).toEqual([])
    }
  })

  it('allows reads when the fence is closed', async () => {
    const { cluster, stop, shut, fence } = setUp()
    shut()
    cluster.put(ConfigMap, { metadata })
    expect(await fencedClient(cluster.client, fence, stop.signal).get(ConfigMap, 'web/shop')).toMatchObject({
      metadata,
    })
  })
})

describe('finalizer', () => {
  const finalizer = 'test/f'
  const signal = new AbortController().signal

  it.each([
    [{}, 'add'],
    [{ finalizers: ['other'] }, 'add'],
    [{ finalizers: ['other', finalizer] }, 'reconcile'],
    [{ finalizers: [finalizer], deletionTimestamp: 'x' }, 'cleanup'],
    [{ finalizers: ['other'], deletionTimestamp: 'x' }, 'leave'],
  ] as const)('of %j: %s', (extra, step) => {
    expect(nextFinalizerStep({ metadata: { ...metadata, ...extra } }, finalizer)).toBe(step)
  })

  it('is added to an absent list and to one with other finalizers', async () => {
    const cluster = memoryCluster()
    const client = fencedClient(cluster.client, openFence, signal)
    const first = await addFinalizer(client, ConfigMap, cluster.put(ConfigMap, { metadata }), finalizer)
    expect(first.metadata.finalizers).toEqual([finalizer])
    const shared = cluster.put(ConfigMap, { metadata: { name: 'b', finalizers: ['other'] } })
    expect((await addFinalizer(client, ConfigMap, shared, finalizer)).metadata.finalizers).toEqual(['other', finalizer])
  })

  it('is neither added nor removed based on a stale object', async () => {
    const cluster = memoryCluster()
    const stale = cluster.put(ConfigMap, { metadata })
    cluster.put(ConfigMap, { metadata: { ...metadata, finalizers: ['other'] } })
    await expect(addFinalizer(cluster.client, ConfigMap, stale, finalizer)).rejects.toMatchObject({ code: 'Invalid' })

    const stored = cluster.put(ConfigMap, { metadata: { ...metadata, finalizers: [finalizer, 'other'] } })
    cluster.put(ConfigMap, { metadata: { ...metadata, finalizers: ['other', finalizer] } })
    await expect(removeFinalizer(cluster.client, ConfigMap, stored, finalizer)).rejects.toMatchObject({
      code: 'Invalid',
    })
    const recreated = { ...stored, metadata: { ...stored.metadata, uid: 'another', finalizers: ['other', finalizer] } }
    await expect(removeFinalizer(cluster.client, ConfigMap, recreated, finalizer)).rejects.toMatchObject({
      code: 'Invalid',
    })
    expect(cluster.informers.get(ConfigMap, 'web/shop')?.metadata.finalizers).toEqual(['other', finalizer])
  })

  it('of a deleted object counts as removed', async () => {
    const cluster = memoryCluster()
    const object = { metadata: { ...metadata, uid: 'u', finalizers: [finalizer] } }
    await expect(removeFinalizer(cluster.client, ConfigMap, object, finalizer)).resolves.toBeUndefined()
  })
})
