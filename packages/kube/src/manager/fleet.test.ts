import { afterEach, describe, expect, it } from 'vitest'
import { connect, type Cluster } from '../cache/cluster.ts'
import { staticCredentials } from '../config/credentials.ts'
import { createLogger } from '../log.ts'
import { ConfigMap, Service } from '../object/kinds.ts'
import { memoryCluster } from '../testing/memory/memory-cluster.ts'
import { startPeer, type PeerExchange, type PeerOptions } from '../testing/index.ts'
import { createFleet, type FleetEvent, type RunningFleet } from './fleet.ts'
import { systemClock } from '../clock.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

/** A fleet whose members run only their caches. */
function startFleet(): RunningFleet {
  const log = createLogger({ level: 'silent' })
  const fleet = createFleet({
    run: async (cluster: Cluster, { stop }) => cluster.informers.start(stop),
    configure: () => undefined,
    connect: (config, name) => connect(config, { name, random: () => 0 }),
    clock: systemClock,
    log,
  })
  fleet.start()
  cleanups.push(async () => fleet.stop({ stop: AbortSignal.abort(), kill: AbortSignal.abort() }))
  return fleet
}

async function startServer(script: PeerOptions['script']) {
  const peer = await startPeer({ script })
  cleanups.push(peer.close)
  const configWith = (token: string, server = peer.url) => ({
    name: 'ignored',
    server,
    namespace: 'default',
    credentials: staticCredentials({ authorization: `Bearer ${token}` }, { ca: peer.caPem }),
  })
  return { peer, configWith }
}

const service = (name: string) => ({ metadata: { name, namespace: 'web' } })
const refusal = {
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code: 403,
  reason: 'Forbidden',
  message: 'User "reader" cannot list resource "configmaps"',
}

/** Rejects requests while `isRefused` returns true, otherwise serves an empty set and keeps its watch open. */
function servingAfter(isRefused: () => boolean, streams: PeerExchange[]): PeerOptions['script'] {
  return (exchange) => {
    if (isRefused()) return exchange.reply(403, refusal)
    if (exchange.url.searchParams.get('watch') !== 'true')
      return exchange.reply(200, { metadata: { resourceVersion: '5' }, items: [] })
    streams.push(exchange)
    exchange.start()
    const annotations = { 'k8s.io/initial-events-end': 'true' }
    if (exchange.url.searchParams.get('sendInitialEvents') === 'true')
      exchange.frame('BOOKMARK', { metadata: { resourceVersion: '5', annotations } })
    return undefined
  }
}

describe('a fleet', () => {
  it('watches a kind in current and future members, until they leave', async () => {
    const fleet = startFleet()
    const [east, west] = [memoryCluster('east'), memoryCluster('west')]
    east.put(Service, service('a'))
    fleet.engage(east)
    const seen: string[] = []
    const stop = fleet.watch(Service, ({ type, object }, { name }) => {
      seen.push(`${name} ${type} ${object.metadata.name}`)
    })
    west.put(Service, service('b'))
    fleet.engage(west)
    east.put(Service, service('c'))
    expect(seen).toEqual(['east added a', 'west added b', 'east added c'])
    await fleet.disengage('east')
    east.put(Service, service('d'))
    west.put(Service, service('e'))
    expect(seen.slice(3)).toEqual(['west added e'])
    stop()
    west.put(Service, service('f'))
    expect(seen).toHaveLength(4)
  })

  it('reports members that join, leave, become unreachable and reachable, with the message of the server', async () => {
    const fleet = startFleet()
    /** Without repetitions: a member that stays unreachable is reported again when the message changes. */
    const events: string[] = []
    const unsubscribe = fleet.subscribe(({ type, member }: FleetEvent) => {
      const event = `${type} ${member.name} ${member.reachability.type}`
      if (events.at(-1) !== event) events.push(event)
    })
    const streams: PeerExchange[] = []
    let isRefused = true
    const { configWith } = await startServer(servingAfter(() => isRefused, streams))
    const member = fleet.join('east', configWith('a'))
    expect(member.reachability).toEqual({ type: 'connecting' })
    fleet.watch(ConfigMap, () => undefined)
    await expect.poll(() => member.reachability.type).toBe('unreachable')
    const lost = member.reachability
    expect(lost).toMatchObject({ reason: 'denied', message: expect.stringContaining('User "reader" cannot list') })
    isRefused = false
    await expect.poll(() => member.reachability, { timeout: 10_000 }).toEqual({ type: 'reachable' })
    // A watch that breaks while the server is down makes the member unreachable again. A list may have made it reachable.
    await expect.poll(() => streams.length, { timeout: 10_000 }).toBeGreaterThan(0)
    isRefused = true
    for (const stream of streams.splice(0)) stream.reset()
    await expect.poll(() => member.reachability.type, { timeout: 10_000 }).toBe('unreachable')
    await fleet.disengage('east')
    unsubscribe()
    expect(events).toEqual([
      'engaged east connecting',
      'reachability east unreachable',
      'reachability east reachable',
      'reachability east unreachable',
      'disengaged east unreachable',
    ])
  })

  it('does not report a member unreachable because of one denied kind', async () => {
    const fleet = startFleet()
    const east = memoryCluster('east')
    const member = fleet.engage(east)
    fleet.watch(Service, () => undefined)
    fleet.watch(ConfigMap, () => undefined)
    east.setFailure(ConfigMap, { reason: 'denied', message: 'no', sinceMs: 1 })
    expect(member.reachability).toEqual({ type: 'reachable' })
    east.setFailure(Service, { reason: 'broken', message: 'gone', sinceMs: 2 })
    expect(member.reachability).toEqual({ type: 'unreachable', reason: 'broken', message: 'Service: gone', sinceMs: 2 })
  })

  it('changes the credentials of a member without interrupting its watches', async () => {
    const fleet = startFleet()
    const streams: PeerExchange[] = []
    const serve = servingAfter(() => false, streams)
    const tokens: unknown[] = []
    const { peer, configWith } = await startServer((exchange) => {
      tokens.push(exchange.headers['authorization'])
      return serve?.(exchange)
    })
    const { cluster } = fleet.join('east', configWith('old'))
    const seen: unknown[] = []
    fleet.watch(ConfigMap, ({ object }) => seen.push(object.metadata.name))
    await expect.poll(() => streams.length).toBe(1)
    expect(fleet.reconfigure('east', configWith('new'))).toBe(true)
    await cluster.client.list(Service)
    expect(tokens.at(-1)).toBe('Bearer new')
    streams[0]?.frame('ADDED', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'still-watched', namespace: 'ns', uid: 'u', resourceVersion: '6' },
    })
    await expect.poll(() => seen).toEqual(['still-watched'])
    expect([streams.length, peer.connections]).toEqual([1, 2])
    expect(fleet.reconfigure('east', configWith('new', 'https://127.0.0.1:1'))).toBe(false)
    expect(() => fleet.reconfigure('west', configWith('new'))).toThrow('not engaged')
  })
})
