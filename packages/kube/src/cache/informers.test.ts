import { afterEach, describe, expect, it } from 'vitest'
import { staticCredentials } from '../config/credentials.ts'
import { connect, type Cluster, type ConnectOptions } from './cluster.ts'
import { Conflict, NotSynced } from '../errors.ts'
import type { Change } from './informer.ts'
import { ConfigMap } from '../object/kinds.ts'
import { kind, type Obj } from '../object/object.ts'
import { startPeer, type Peer, type PeerExchange, type PeerOptions } from '../testing/index.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const configMap = (name: string, version: number, data: Record<string, string> = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: String(version) },
  data,
})
const endMark = (version: number) => ({
  metadata: { resourceVersion: String(version), annotations: { 'k8s.io/initial-events-end': 'true' } },
})
const refusal = (code: number, reason: string) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  reason,
  message: reason,
})

async function clusterOn(
  script: PeerOptions['script'],
  options: ConnectOptions = {},
): Promise<{ peer: Peer; cluster: Cluster; start: () => void }> {
  const peer = await startPeer({ script })
  const config = {
    name: 'test',
    server: peer.url,
    namespace: 'default',
    credentials: staticCredentials({}, { ca: peer.caPem }),
  }
  const cluster = connect(config, { random: () => 0, ...options })
  const stop = new AbortController()
  let running: Promise<void> | undefined
  cleanups.push(peer.close, async () => {
    stop.abort()
    await running
    await cluster.close()
  })
  const start = () => {
    running = cluster.informers.start(stop.signal)
  }
  return { peer, cluster, start }
}

async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`not within 20 s: ${String(isTrue)}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Responds to WatchList and list requests with these objects, and collects the open streams for further events. */
function serving(objects: Obj[], version: number, streams: PeerExchange[] = []): PeerOptions['script'] {
  return (exchange) => {
    if (exchange.url.searchParams.get('watch') !== 'true') {
      return exchange.reply(200, { metadata: { resourceVersion: String(version) }, items: objects })
    }
    streams.push(exchange)
    exchange.start()
    if (exchange.url.searchParams.get('sendInitialEvents') !== 'true') return undefined
    for (const object of objects) exchange.frame('ADDED', object)
    return exchange.frame('BOOKMARK', endMark(version))
  }
}

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

  it('report a watch that is denied with the message of the server, until a request succeeds', async () => {
    let isDenied = true
    const message = 'configmaps is forbidden: User "reader" cannot list resource "configmaps"'
    const serve = serving([configMap('a', 1)], 5)
    const restarts: unknown[] = []
    const observer = { request: () => undefined, restart: (event: unknown) => restarts.push(event) }
    const { cluster, start } = await clusterOn(
      (exchange) => (isDenied ? exchange.reply(403, { ...refusal(403, 'Forbidden'), message }) : serve?.(exchange)),
      { observer },
    )
    const informer = cluster.informers.informer(ConfigMap)
    const health: unknown[] = []
    cluster.informers.onHealthChange(({ kind: { plural }, failure }) => health.push([plural, failure?.reason]))
    start()
    await expect.poll(() => informer.failure).toBeDefined()
    expect(informer.failure).toMatchObject({ reason: 'denied', message: expect.stringContaining(message) })
    expect(informer.hasSynced).toBe(false)
    expect(restarts).toContainEqual({ kind: 'ConfigMap', reason: 'denied' })
    isDenied = false
    await informer.synced()
    expect(informer.failure).toBeUndefined()
    expect(health).toEqual([
      ['configmaps', 'denied'],
      ['configmaps', undefined],
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

  it('resume from the last version after a truncated frame, without losing events', async () => {
    const streams: PeerExchange[] = []
    const { cluster, start } = await clusterOn(serving([configMap('a', 1)], 5, streams))
    const informer = cluster.informers.informer(ConfigMap)
    const seen: string[] = []
    informer.subscribe((change) =>
      seen.push(`${change.object.metadata.name}@${change.object.metadata.resourceVersion}`),
    )
    start()
    await informer.synced()
    streams[0]?.frame('ADDED', configMap('b', 6))
    streams[0]?.write('{"type":"ADDED","object":{"metadata":{"na')
    streams[0]?.end()
    await until(() => streams.length === 2)
    expect(streams[1]?.url.searchParams.get('resourceVersion')).toBe('6')
    streams[1]?.frame('ADDED', configMap('c', 7))
    await until(() => seen.length === 3)
    expect(seen).toEqual(['a@1', 'b@6', 'c@7'])
  })

  it('restart from the last version after a malformed frame: it is never skipped', async () => {
    const streams: PeerExchange[] = []
    const { cluster, start } = await clusterOn(serving([], 5, streams))
    const informer = cluster.informers.informer(ConfigMap)
    start()
    await informer.synced()
    streams[0]?.frame('ADDED', configMap('b', 6))
    streams[0]?.write('{"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":"7"},,}}\n')
    streams[0]?.frame('ADDED', configMap('c', 8))
    await until(() => streams.length === 2)
    expect(streams[1]?.url.searchParams.get('resourceVersion')).toBe('6')
    expect(cluster.informers.list(ConfigMap).map(({ metadata }) => metadata.name)).toEqual(['b'])
  })

  it('list again after 410 in the stream, and delete the objects removed in the meantime', async () => {
    const streams: PeerExchange[] = []
    let isLater = false
    const { cluster, start } = await clusterOn((exchange) => {
      const objects = isLater ? [configMap('b', 8)] : [configMap('a', 1)]
      return serving(objects, isLater ? 9 : 5, streams)(exchange)
    })
    const informer = cluster.informers.informer(ConfigMap)
    const seen: string[] = []
    informer.subscribe((change) => seen.push(`${change.type} ${change.object.metadata.name}`))
    start()
    await informer.synced()
    isLater = true
    streams[0]?.frame('ERROR', refusal(410, 'Expired'))
    await until(() => seen.length === 3)
    expect(seen).toEqual(['added a', 'deleted a', 'added b'])
    expect(streams[1]?.url.searchParams.get('sendInitialEvents')).toBe('true')
  })

  it('page a list when WatchList is not supported, and watch from its version', async () => {
    const { peer, cluster, start } = await clusterOn(
      (exchange) => {
        const { searchParams } = exchange.url
        if (searchParams.has('sendInitialEvents')) return exchange.reply(422, refusal(422, 'Invalid'))
        if (searchParams.get('watch') === 'true') return exchange.start()
        const isSecond = searchParams.get('continue') === 'next'
        const metadata = isSecond ? { resourceVersion: '77' } : { resourceVersion: '77', continue: 'next' }
        return exchange.reply(200, {
          kind: 'ConfigMapList',
          apiVersion: 'v1',
          metadata,
          items: [configMap(isSecond ? 'b' : 'a', 1)],
        })
      },
      { pageSize: 1 },
    )
    const informer = cluster.informers.informer(ConfigMap)
    start()
    await informer.synced()
    expect(cluster.informers.list(ConfigMap).map(({ metadata }) => metadata.name)).toEqual(['a', 'b'])
    await until(() => peer.requests.length === 4)
    expect(peer.requests.slice(1, 3)).toEqual([
      'GET /api/v1/configmaps?limit=1',
      'GET /api/v1/configmaps?limit=1&continue=next',
    ])
    expect(peer.requests[3]).toContain('resourceVersion=77')
  })

  it.each([429, 500, 503, 403])(
    'keep a synced cache when the watch breaks and the server then responds %i',
    async (code) => {
      const streams: PeerExchange[] = []
      let isBroken = false
      const { peer, cluster, start } = await clusterOn((exchange) => {
        if (isBroken) return exchange.reply(code, refusal(code, 'Trouble'))
        return serving([configMap('a', 1)], 5, streams)(exchange)
      })
      const informer = cluster.informers.informer(ConfigMap)
      start()
      await informer.synced()
      isBroken = true
      streams[0]?.reset()
      await until(() => peer.requests.length === 2 && informer.state === 'backoff')
      expect(cluster.informers.get(ConfigMap, 'ns/a')?.metadata.name).toBe('a')
      isBroken = false
      await until(() => streams.length === 2)
      expect(cluster.informers.list(ConfigMap)).toHaveLength(1)
    },
  )

  it('wait for a kind whose CRD is absent, and sync it when the CRD is created', async () => {
    const Thing = kind({ group: 'example.test', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true })
    let isServed = false
    const definitions: PeerExchange[] = []
    const { cluster, start } = await clusterOn((exchange) => {
      if (exchange.url.pathname.endsWith('/customresourcedefinitions')) return serving([], 5, definitions)(exchange)
      if (!isServed) return exchange.reply(404, refusal(404, 'NotFound'))
      if (exchange.url.pathname === '/apis/example.test/v1')
        return exchange.reply(200, { resources: [{ name: 'things' }] })
      return serving([configMap('t', 8)], 9)(exchange)
    })
    const informer = cluster.informers.informer(Thing)
    start()
    await informer.synced()
    expect([informer.state, cluster.informers.list(Thing)]).toEqual(['absent', []])
    const added = new Promise((resolve) => informer.subscribe(resolve))
    await until(() => definitions.length === 1)
    isServed = true
    definitions[0]?.frame('ADDED', { metadata: { name: 'things.example.test', resourceVersion: '8' } })
    await added
    expect([informer.state, cluster.informers.list(Thing).length]).toEqual(['live', 1])
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
