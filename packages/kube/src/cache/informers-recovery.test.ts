import { afterEach, describe, expect, it } from 'vitest'
import { fakeClock } from '../testing/clock.ts'
import { ConfigMap, Namespace } from '../object/kinds.ts'
import { kind } from '../object/object.ts'
import { type PeerExchange } from '../testing/index.ts'
import { clusterOn, closeClusters, configMap, refusal, serving, until } from '../testing/scripted-cluster.ts'

afterEach(closeClusters)

describe('informers whose watch fails', () => {
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

  it('are tried again at once when another request shows that an outage is over', async () => {
    const streams: PeerExchange[] = []
    const clock = fakeClock()
    let isAway = false
    const { peer, cluster, start } = await clusterOn(
      (exchange) => {
        if (isAway) return exchange.reply(503, refusal(503, 'ServiceUnavailable'))
        return serving([configMap('a', 1)], 5, streams)(exchange)
      },
      { clock, random: () => 0 },
    )
    const informer = cluster.informers.informer(ConfigMap)
    start()
    await informer.synced()
    isAway = true
    streams[0]?.reset()
    while (peer.requests.length < 8) {
      await until(() => informer.state === 'backoff')
      await clock.advance(1_000)
    }
    await until(() => informer.state === 'backoff')
    isAway = false
    await cluster.client.list(Namespace)
    await clock.advance(1)
    await until(() => streams.length === 2)
    expect(informer.state).toBe('live')
  })

  it('of a kind that is absent have no failure once the server says so again after an outage', async () => {
    let isDown = false
    const Thing = kind({ group: 'example.com', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true })
    const clock = fakeClock()
    const { cluster, start } = await clusterOn(
      (exchange) =>
        isDown ? exchange.reply(500, refusal(500, 'InternalError')) : exchange.reply(404, refusal(404, 'NotFound')),
      { clock },
    )
    const informer = cluster.informers.informer(Thing)
    start()
    await informer.synced()
    const failsAs = async (reason: string | undefined): Promise<void> => {
      await expect
        .poll(async () => {
          await clock.advance(1_000)
          return informer.failure?.reason
        })
        .toBe(reason)
    }
    isDown = true
    await failsAs('internal')
    isDown = false
    await failsAs(undefined)
    expect(informer.state).toBe('absent')
  })

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
})
