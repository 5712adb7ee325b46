import { afterEach, describe, expect, it } from 'vitest'
import { NotSynced } from '../errors.ts'
import type { Change } from './informer.ts'
import { ConfigMap } from '../object/kinds.ts'
import { kind } from '../object/object.ts'
import { type PeerExchange } from '../testing/index.ts'
import { clusterOn, closeClusters, configMap, serving, until } from '../testing/scripted-cluster.ts'

afterEach(closeClusters)

describe('informers', () => {
  it('share one watch per kind, selector, namespace and projection', async () => {
    const { peer, cluster, start } = await clusterOn(serving([configMap('a', 1)], 5))
    const { informers } = cluster
    const first = informers.informer(ConfigMap)
    expect(informers.informer(kind({ ...ConfigMap }))).toBe(first)
    // A controller names its own field manager; an informer without the option shares that watch.
    expect(informers.informer(ConfigMap, { keepManagedFieldsOf: 'seamark' })).toBe(first)
    expect(informers.all()).toEqual([first])
    const others = [
      informers.informer(ConfigMap, { namespace: 'ns' }),
      informers.informer(ConfigMap, { labelSelector: 'a=b' }),
      informers.informer(ConfigMap, { projection: 'metadata' }),
    ]
    expect(new Set([first, ...others]).size).toBe(4)
    start()
    await Promise.all([first, ...others].map(async (informer) => informer.synced()))
    expect(peer.requests).toHaveLength(4)
  })

  it('refuse reads before the first sync and of kinds that are not watched: unknown is not empty', async () => {
    const { cluster, start } = await clusterOn(serving([configMap('a', 1)], 5))
    expect(() => cluster.informers.list(ConfigMap)).toThrow(NotSynced)
    const informer = cluster.informers.informer(ConfigMap)
    expect(informer.state).toBe('starting')
    expect([informer.size, informer.estimateBytes(), informer.lastReceivedAt]).toEqual([0, 0, undefined])
    expect(() => cluster.informers.get(ConfigMap, 'ns/a')).toThrow(NotSynced)
    const startedAt = performance.now()
    start()
    await informer.synced()
    expect(cluster.informers.get(ConfigMap, 'ns/a')?.metadata.uid).toBe('uid-a')
    expect(cluster.informers.get(ConfigMap, 'ns/b')).toBeUndefined()
    expect(informer.state).toBe('live')
    expect(informer.size).toBe(1)
    expect(informer.estimateBytes()).toBe(JSON.stringify(cluster.informers.get(ConfigMap, 'ns/a')).length)
    expect(informer.lastReceivedAt).toBeGreaterThan(startedAt)
    expect(informer.lastReceivedAt).toBeLessThanOrEqual(performance.now())
  })

  it('replay the cache to a late subscriber and keep the order of each key', async () => {
    const streams: PeerExchange[] = []
    const many = Array.from({ length: 200 }, (_, index) => configMap(`m${index}`, index + 1))
    const { cluster, start } = await clusterOn(serving(many, 500, streams))
    const informer = cluster.informers.informer(ConfigMap)
    start()
    await informer.synced()
    const seen: string[] = []
    const label = (change: Change<ConfigMap>) =>
      `${change.type}${change.type === 'added' && change.initial ? '!' : ''} ${change.object.metadata.name} ${change.object.metadata.resourceVersion}`
    informer.subscribe((change) => seen.push(label(change)))
    streams[0]?.frame('MODIFIED', configMap('m199', 600))
    streams[0]?.frame('DELETED', configMap('m199', 601))
    streams[0]?.frame('ADDED', configMap('new', 602))
    await until(() => seen.includes('added new 602'))
    expect(seen.filter((entry) => entry.includes('!'))).toHaveLength(200)
    expect(seen.filter((entry) => entry.includes(' m199 '))).toEqual([
      'added! m199 200',
      'updated m199 600',
      'deleted m199 601',
    ])
  })

  it('mark the watch event of an own write, whether it precedes or follows the response, and no other change', async () => {
    const streams: PeerExchange[] = []
    let version = 10
    let answer: () => void = () => undefined
    const serve = serving([configMap('a', 1)], 5, streams)
    const { cluster, start } = await clusterOn((exchange) => {
      if (exchange.method !== 'PATCH') return serve?.(exchange)
      const written = configMap('a', ++version)
      answer = () => exchange.reply(200, written)
      return undefined
    })
    const { informers, client } = cluster
    const informer = informers.informer(ConfigMap)
    const ownWrites = informers.ownWrites(ConfigMap)
    ownWrites.track()
    const changes: string[] = []
    informer.subscribe((change) => {
      const { resourceVersion = '' } = change.object.metadata
      if (change.type === 'deleted' || change.isOwnWrite === true) return void changes.push(`own ${resourceVersion}`)
      const resume = () => changes.push(`foreign ${resourceVersion}`)
      if (!ownWrites.defer('ns/a', resourceVersion, resume)) resume()
      return undefined
    })
    start()
    await informer.synced()
    await until(() => streams.length > 0 && informer.state === 'live')
    const stream = streams.at(-1)
    changes.length = 0

    // The response arrives before the watch event.
    let writing = client.patch(ConfigMap, 'ns/a', 'merge', {})
    await until(() => version === 11)
    answer()
    await writing
    stream?.frame('MODIFIED', configMap('a', 11))
    await until(() => changes.length === 1)
    expect(changes).toEqual(['own 11'])

    // The watch event arrives before the response, with two events of another client.
    writing = client.patch(ConfigMap, 'ns/a', 'merge', {})
    await until(() => version === 12)
    stream?.frame('MODIFIED', configMap('a', 12))
    stream?.frame('MODIFIED', configMap('a', 115))
    stream?.frame('MODIFIED', configMap('a', 120))
    await until(() => informers.get(ConfigMap, 'ns/a')?.metadata.resourceVersion === '120')
    expect(changes).toEqual(['own 11'])
    answer()
    await writing
    expect(changes).toEqual(['own 11', 'foreign 115', 'foreign 120'])

    stream?.frame('MODIFIED', configMap('a', 130))
    await until(() => changes.length === 4)
    expect(changes.at(-1)).toBe('foreign 130')
  })

  it('cache a kind as configured wherever it is watched, and refuse different options', async () => {
    const trim = (object: ConfigMap): ConfigMap => ({ metadata: object.metadata })
    const paths: string[] = []
    const serve = serving([configMap('a', 1, { k: 'v' })], 5)
    const { cluster, start } = await clusterOn((exchange) => {
      paths.push(exchange.path)
      return serve?.(exchange)
    })
    const { informers } = cluster
    informers.configure(ConfigMap, { labelSelector: 'app=shop', projection: trim })
    informers.configure(ConfigMap, { projection: trim, labelSelector: 'app=shop' })
    expect(informers.informer(ConfigMap)).toBe(informers.informer(ConfigMap, { projection: trim }))
    expect(() => informers.configure(ConfigMap, { labelSelector: 'app=docs' })).toThrow('configured already')
    const Secret = kind({ group: '', version: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true })
    informers.informer(Secret)
    expect(() => informers.configure(Secret, {})).toThrow('is watched already')
    start()
    await informers.informer(ConfigMap).synced()
    expect(informers.get(ConfigMap, 'ns/a')?.data).toBeUndefined()
    const requested = paths.filter((path) => path.startsWith('/api/v1/configmaps'))
    expect(requested.length).toBeGreaterThan(0)
    expect(requested.filter((path) => !path.includes('labelSelector=app%3Dshop'))).toEqual([])
  })

  it('watch a kind in several namespaces as one', async () => {
    const streams: PeerExchange[] = []
    const inNamespace = (exchange: PeerExchange) => /namespaces\/([^/]+)/.exec(exchange.url.pathname)?.[1] ?? ''
    const { cluster, start } = await clusterOn((exchange) => {
      const namespace = inNamespace(exchange)
      const object = configMap('same', namespace === 'one' ? 1 : 2)
      object.metadata.namespace = namespace
      return serving([object], 5, streams)?.(exchange)
    })
    const { informers } = cluster
    informers.configure(ConfigMap, { namespaces: ['one', 'two'] })
    const informer = informers.informer(ConfigMap)
    expect(informers.informer(ConfigMap)).toBe(informer)
    expect(informers.all()).toHaveLength(2)
    const seen: string[] = []
    informer.subscribe(({ type, object }) => seen.push(`${type} ${object.metadata.namespace}`))
    start()
    await informer.synced()
    expect(informer.size).toBe(2)
    expect(informers.get(ConfigMap, 'two/same')?.metadata.resourceVersion).toBe('2')
    expect(informers.list(ConfigMap)).toHaveLength(2)
    await until(() => informer.state === 'live')
    const two = streams.find((exchange) => inNamespace(exchange) === 'two')
    two?.frame('DELETED', { ...configMap('same', 6), metadata: { ...configMap('same', 6).metadata, namespace: 'two' } })
    await until(() => seen.length === 3)
    expect(seen.toSorted()).toEqual(['added one', 'added two', 'deleted two'])
    const late = await new Promise<number>((resolve) => {
      let count = 0
      informer.subscribe(() => count++, { onReplayed: () => resolve(count) })
    })
    expect(late).toBe(1)
  })

  it('notify a late subscriber after the replay of the cache, also when the replay is long', async () => {
    const objects = Array.from({ length: 500 }, (_, index) => configMap(`c${index}`, index + 1))
    const { cluster, start } = await clusterOn(serving(objects, 600))
    const informer = cluster.informers.informer(ConfigMap)
    start()
    await informer.synced()
    let seen = 0
    const seenAtReplay = await new Promise<number>((resolve) => {
      informer.subscribe(() => seen++, { onReplayed: () => resolve(seen) })
    })
    expect(seenAtReplay).toBe(500)
    const empty = cluster.informers.informer(ConfigMap, { namespace: 'other' })
    await new Promise<void>((resolve) => empty.subscribe(() => undefined, { onReplayed: resolve }))
  })

  it('remove a handler that throws, call its onError, and continue with the others', async () => {
    const streams: PeerExchange[] = []
    const { cluster, start } = await clusterOn(serving([configMap('a', 1)], 5, streams))
    const informer = cluster.informers.informer(ConfigMap)
    const errors: unknown[] = []
    const seen: string[] = []
    let calls = 0
    informer.subscribe(
      () => {
        calls++
        throw new Error('handler')
      },
      { onError: (error) => errors.push(error) },
    )
    informer.subscribe((change) => seen.push(change.object.metadata.name ?? ''))
    start()
    await informer.synced()
    streams[0]?.frame('ADDED', configMap('b', 6))
    await until(() => seen.length === 2)
    expect([calls, errors.length, seen]).toEqual([1, 1, ['a', 'b']])
    expect(streams).toHaveLength(1)
  })

  it('read by index and by namespace', async () => {
    const { cluster, start } = await clusterOn(
      serving([configMap('a', 1, { host: 'x' }), configMap('b', 2, { host: 'x' }), configMap('c', 3)], 5),
    )
    const informer = cluster.informers.informer(ConfigMap)
    const byHost = cluster.informers.index(ConfigMap, 'host', ({ data }) =>
      data?.['host'] === undefined ? [] : [data['host']],
    )
    start()
    await informer.synced()
    const names = (found: readonly { metadata: { name?: string } }[]) => found.map(({ metadata }) => metadata.name)
    expect(names(cluster.informers.by(byHost, 'x'))).toEqual(['a', 'b'])
    expect(names(cluster.informers.list(ConfigMap, 'ns'))).toEqual(['a', 'b', 'c'])
    expect(cluster.informers.list(ConfigMap, 'other')).toEqual([])
  })

  it('return frozen objects', async () => {
    const { cluster, start } = await clusterOn(serving([configMap('a', 1, { host: 'x' })], 5))
    const informer = cluster.informers.informer(ConfigMap)
    start()
    await informer.synced()
    const object = cluster.informers.get(ConfigMap, 'ns/a') as ConfigMap
    expect(() => {
      object.data = {}
    }).toThrow(TypeError)
    expect(() => Object.assign(object.metadata, { labels: {} })).toThrow(TypeError)
  })
})
