import { afterEach, describe, expect, it } from 'vitest'
import { Conflict } from '../errors.ts'
import { ConfigMap } from '../object/kinds.ts'
import { clusterOn, closeClusters, configMap, refusal, serving } from '../testing/scripted-cluster.ts'

afterEach(closeClusters)

describe('writes through the client', () => {
  it('are visible in the cache at once, including deletions, but not dry runs', async () => {
    const watching = serving([configMap('a', 1)], 5)
    const { cluster, start } = await clusterOn((exchange) => {
      if (exchange.method === 'GET') return watching(exchange)
      if (exchange.url.searchParams.has('dryRun')) return exchange.reply(200, configMap('a', 90))
      if (exchange.method === 'DELETE') {
        return exchange.reply(200, { kind: 'Status', apiVersion: 'v1', status: 'Success', details: { uid: 'uid-a' } })
      }
      return exchange.reply(200, configMap('a', 10, { x: '1' }))
    })
    const informer = cluster.informers.informer(ConfigMap)
    start()
    await informer.synced()
    await cluster.client.apply(ConfigMap, configMap('a', 1), { dryRun: true })
    expect(cluster.informers.get(ConfigMap, 'ns/a')?.metadata.resourceVersion).toBe('1')
    await cluster.client.apply(ConfigMap, { metadata: { name: 'a', namespace: 'ns' }, data: { x: '1' } })
    expect(cluster.informers.get(ConfigMap, 'ns/a')?.data).toEqual({ x: '1' })
    await cluster.client.delete(ConfigMap, 'ns/a')
    expect(cluster.informers.get(ConfigMap, 'ns/a')).toBeUndefined()
  })

  it('are cached with the projection applied, and returned in full', async () => {
    const watching = serving([], 5)
    const { cluster, start } = await clusterOn((exchange) =>
      exchange.method === 'GET' ? watching(exchange) : exchange.reply(200, configMap('a', 10, { x: '1' })),
    )
    const withoutData = (object: ConfigMap): ConfigMap => {
      delete object.data
      return object
    }
    const informer = cluster.informers.informer(ConfigMap, { projection: withoutData })
    start()
    await informer.synced()
    const written = await cluster.client.apply(ConfigMap, {
      metadata: { name: 'a', namespace: 'ns' },
      data: { x: '1' },
    })
    expect(written.data).toEqual({ x: '1' })
    expect(cluster.informers.get(ConfigMap, 'ns/a')).toEqual({ ...configMap('a', 10), data: undefined })
  })

  it('are visible in every informer of their kind, also when the returned object is shared with the cache', async () => {
    const watching = serving([], 5)
    const { cluster, start } = await clusterOn((exchange) =>
      exchange.method === 'GET' ? watching(exchange) : exchange.reply(200, configMap('a', 10, { x: '1' })),
    )
    const watches = ['ns', 'ns-of-others'].map((namespace) => cluster.informers.informer(ConfigMap, { namespace }))
    const wide = cluster.informers.informer(ConfigMap)
    start()
    await Promise.all([...watches, wide].map(async (informer) => informer.synced()))
    const written = await cluster.client.apply(ConfigMap, configMap('a', 1), { isLean: true })
    expect(cluster.informers.get(ConfigMap, 'ns/a')).toBe(written)
    expect([...watches, wide].map(({ size }) => size)).toEqual([1, 0, 1])
  })

  it('do not touch the cache when the server rejects them', async () => {
    const watching = serving([configMap('a', 1)], 5)
    const { cluster, start } = await clusterOn((exchange) =>
      exchange.method === 'GET' ? watching(exchange) : exchange.reply(409, refusal(409, 'Conflict')),
    )
    const informer = cluster.informers.informer(ConfigMap)
    start()
    await informer.synced()
    await expect(cluster.client.update(ConfigMap, configMap('a', 1))).rejects.toBeInstanceOf(Conflict)
    expect(cluster.informers.get(ConfigMap, 'ns/a')?.metadata.resourceVersion).toBe('1')
  })
})
