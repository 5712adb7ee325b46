import { afterEach, describe, expect, it } from 'vitest'
import { ConfigMap, Lease, Service } from '../object/kinds.ts'
import { keyOf } from '../object/object.ts'
import { memoryCluster } from '../testing/memory/memory-cluster.ts'
import { startManager, stopManagers } from '../testing/memory/started-manager.ts'

afterEach(stopManagers)

const leader = { lease: 'edge', namespace: 'sys' }
const service = (name: string) => ({ metadata: { name, namespace: 'web' } })

describe('fleet', () => {
  it('runs a controller on every member, each with its own cache and key space', async () => {
    const hub = memoryCluster('hub')
    const [east, west] = [memoryCluster('east'), memoryCluster('west')]
    for (const member of [hub, east, west]) member.put(Service, service(`in-${member.name}`))
    const seen: string[] = []
    const { mgr } = await startManager(
      (made) => {
        made.index(Service, 'name', ({ metadata }) => [metadata.name ?? ''])
        made.controller('members', Service, { clusters: 'fleet' }).reconcile(async (object, ctx) => {
          seen.push(
            `${ctx.cluster} ${ctx.key} ${ctx
              .by({ kind: Service, name: 'name' }, object.metadata.name ?? '')
              .map(keyOf)
              .join()}`,
          )
        })
        made.fleet.engage(east)
      },
      {},
      hub,
    )
    await expect.poll(() => seen).toEqual(['east web/in-east web/in-east'])
    mgr.fleet.engage(west)
    await expect.poll(() => seen).toHaveLength(2)
    expect(seen[1]).toBe('west web/in-west web/in-west')
    expect(() => mgr.fleet.engage(memoryCluster('west'))).toThrow('engaged already')
    expect([...mgr.fleet.clusters.keys()]).toEqual(['east', 'west'])
    expect(await mgr.metrics.registry.getSingleMetricAsString('seamark_cache_objects')).toMatch(
      /cluster="east",kind="[^"]*[Ss]ervice[^"]*"} [1-9]/,
    )
  })

  it('runs on a member only the controllers it was engaged for, with the caches that were declared', async () => {
    const [east, west] = [memoryCluster('east'), memoryCluster('west')]
    for (const member of [east, west]) {
      member.put(Service, service('shop'))
      member.put(ConfigMap, service('map'))
    }
    const seen: string[] = []
    await startManager((made) => {
      made.fleet.engage(east, { controllers: ['services'] })
      made.cache(Service, { labelSelector: 'app' })
      made.fleet.engage(west)
      const options = { clusters: 'fleet' } as const
      made
        .controller('services', Service, options)
        .reconcile(async (_, ctx) => void seen.push(`${ctx.cluster} service`))
      made.controller('maps', ConfigMap, options).reconcile(async (_, ctx) => void seen.push(`${ctx.cluster} map`))
    })
    await expect.poll(() => seen.toSorted()).toEqual(['east service', 'west map', 'west service'])
    for (const member of [east, west]) expect(member.informers.configured(Service)).toEqual({ labelSelector: 'app' })
    expect(east.informers.all().map(({ kind }) => kind.kind)).toEqual(['Service'])
  })

  it('aborts the reconciles of a member that leaves, drops its keys and closes it; the others continue', async () => {
    const [east, west] = [memoryCluster('east'), memoryCluster('west')]
    const running: { cluster: string; signal: AbortSignal }[] = []
    const { mgr } = await startManager((made) => {
      made
        .controller('members', Service, { clusters: 'fleet', concurrency: 1 })
        .reconcile(async (_object, { cluster, signal }) => {
          running.push({ cluster, signal })
          if (cluster === 'east')
            await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        })
      made.fleet.engage(east)
      made.fleet.engage(west)
    })
    for (const name of ['a', 'b']) east.put(Service, service(name))
    await expect.poll(() => running.length).toBe(1)
    west.put(Service, service('c'))
    await expect.poll(() => running.map(({ cluster }) => cluster)).toEqual(['east', 'west'])
    await mgr.fleet.disengage('east')
    expect(running[0]?.signal.aborted).toBe(true)
    expect(east.isClosed).toBe(true)
    east.put(Service, service('d'))
    west.put(Service, service('e'))
    await expect.poll(() => running.map(({ cluster }) => cluster)).toEqual(['east', 'west', 'west'])
    await mgr.fleet.disengage('east')
    mgr.fleet.engage(memoryCluster('east'))
  })

  it('is not delayed by an unavailable member, and restarts that member', async () => {
    const [dead, alive] = [memoryCluster('dead'), memoryCluster('alive')]
    dead.setState(Service, 'syncing')
    alive.put(Service, service('shop'))
    const seen: string[] = []
    const { stop, outcome, cluster } = await startManager(
      (made) => {
        made
          .controller('members', Service, { clusters: 'fleet' })
          .reconcile(async (_object, ctx) => void seen.push(ctx.cluster))
        made.fleet.engage(dead)
        made.fleet.engage(alive)
      },
      { syncTimeout: '50ms' },
    )
    await expect.poll(() => seen).toEqual(['alive'])
    await expect.poll(() => cluster.lines.join()).toContain('did not sync within 50 ms in cluster dead')
    dead.put(Service, service('shop'))
    dead.setState(Service, 'live')
    await expect.poll(() => seen, { timeout: 5_000 }).toEqual(['alive', 'dead'])
    stop.abort()
    expect(await outcome).toBe('stopped')
    expect([dead.isClosed, alive.isClosed]).toEqual([true, true])
  })

  it('runs on members only while this process leads', async () => {
    const cluster = memoryCluster()
    cluster.put(Lease, {
      metadata: { name: 'edge', namespace: 'sys' },
      spec: { holderIdentity: 'other', leaseDurationSeconds: 3600 },
    })
    const member = memoryCluster('member')
    member.put(Service, service('shop'))
    const seen: string[] = []
    await startManager(
      (made) => {
        made
          .controller('members', Service, { clusters: 'all' })
          .reconcile(async (_object, ctx) => void seen.push(ctx.cluster))
        made.fleet.engage(member)
      },
      { leader },
      cluster,
    )
    await expect.poll(() => cluster.requests.length).toBeGreaterThan(0)
    expect(seen).toEqual([])
  })
})
