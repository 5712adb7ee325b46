import { afterEach, describe, expect, it, vi } from 'vitest'
import type { RunnableContext } from '../controller/context.ts'
import { createLogger } from '../log.ts'
import { LeadershipLost } from '../apply/write-fence.ts'
import { ConfigMap, Lease, Service } from '../object/kinds.ts'
import { manager, untilSignalled, type Manager, type ManagerOptions } from './manager.ts'
import { keyOf } from '../object/object.ts'
import { untilAborted } from '../stop-signal.ts'
import { fakeClock } from '../testing/clock.ts'
import { memoryCluster, type MemoryCluster } from '../testing/memory-cluster.ts'

interface Started {
  mgr: Manager
  cluster: MemoryCluster
  stop: AbortController
  outcome: Promise<unknown>
}
const started: Started[] = []
afterEach(async () => {
  for (const { stop, outcome } of started.splice(0)) {
    stop.abort()
    await outcome
  }
})

async function start(
  wire: (mgr: Manager, cluster: MemoryCluster) => void,
  options: ManagerOptions = {},
  cluster = memoryCluster(),
): Promise<Started> {
  const mgr = await manager({ cluster, fieldManager: 'test', log: cluster.log, grace: '2s', ...options })
  wire(mgr, cluster)
  const stop = new AbortController()
  const outcome = mgr.run(stop.signal).then(
    () => 'stopped',
    (error: unknown) => error,
  )
  const result = { mgr, cluster, stop, outcome }
  started.push(result)
  return result
}

const leader = { lease: 'edge', namespace: 'sys' }
const service = (name: string) => ({ metadata: { name, namespace: 'web' } })
const statusOf = async (address: string | undefined, path: string) => (await fetch(`http://${address}${path}`)).status

describe('manager', () => {
  it('with many controllers and runnables causes no warning of Node about listeners', async () => {
    const warn = vi.spyOn(process, 'emitWarning')
    try {
      const { mgr, stop, outcome } = await start((each) => {
        for (let index = 0; index < 30; index++) {
          each.controller(`services-${index}`, Service).reconcile(async () => undefined)
          each.add(`runnable-${index}`, async ({ signal }) => untilAborted(signal))
        }
      })
      await expect.poll(() => mgr.isLeading).toBe(true)
      stop.abort()
      await outcome
      expect(warn).not.toHaveBeenCalled()
    } finally {
      warn.mockRestore()
    }
  })

  it('runs a controller from the first list to the stop, and sends nothing when nothing changes', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    const wire = (mgr: Manager) =>
      mgr
        .controller('services', Service)
        .owns(ConfigMap)
        .reconcile(async ({ metadata }, ctx) => {
          await ctx.apply(ConfigMap, {
            metadata: { name: `${metadata.name}-child`, namespace: 'web' },
            data: { of: metadata.name ?? '' },
          })
        })
    const first = await start(wire, { probes: '127.0.0.1:0', metrics: '127.0.0.1:0' }, cluster)
    await expect.poll(() => cluster.informers.get(ConfigMap, 'web/shop-child')?.data).toEqual({ of: 'shop' })
    expect(await statusOf(first.mgr.addresses.probes, '/readyz')).toBe(200)
    expect(await (await fetch(`http://${first.mgr.addresses.metrics}/metrics`)).text()).toContain(
      'controller_runtime_reconcile_total{controller="services",result="success"} 1',
    )
    first.stop.abort()
    expect(await first.outcome).toBe('stopped')
    expect(cluster.isClosed).toBe(true)

    cluster.requests.length = 0
    const second = await start(wire, {}, cluster)
    await expect
      .poll(async () => second.mgr.metrics.registry.getSingleMetricAsString('controller_runtime_reconcile_total'))
      .toContain('result="success"} 1')
    expect(cluster.requests).toEqual([])
  })

  it('starts and stops in order', async () => {
    const log: string[] = []
    const cluster = memoryCluster()
    const startInformers = cluster.informers.start.bind(cluster.informers)
    Object.assign(cluster.informers, {
      start: async (signal: AbortSignal) => {
        log.push('caches start')
        await startInformers(signal)
        log.push('caches stop')
      },
    })
    cluster.put(Service, service('shop'))
    cluster.setState(Service, 'syncing')
    cluster.intercept = ({ kind, verb, body }) => {
      if (!kind.startsWith('Lease')) return
      const holder = (body as Lease | undefined)?.spec?.holderIdentity
      if (verb === 'create') log.push('lease taken')
      if (holder === '') log.push('lease released')
    }
    const { mgr, stop, outcome } = await start(
      (made) => {
        made.add('runnable', async ({ signal }) => {
          log.push('runnable start')
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          log.push('runnable stop')
        })
        made.controller('services', Service).reconcile(async (_object, { signal }) => {
          log.push('reconcile start')
          // Ends after the stop has begun.
          await expect.poll(() => log).toContain('runnable stop')
          log.push(
            `reconcile end ${signal.aborted}`,
            `probes ${await statusOf(made.addresses.probes, '/healthz')} ${await statusOf(made.addresses.probes, '/readyz')}`,
          )
        })
      },
      { leader, probes: '127.0.0.1:0' },
      cluster,
    )
    await expect.poll(() => mgr.addresses.probes).toBeDefined()
    await expect.poll(async () => statusOf(mgr.addresses.probes, '/readyz')).toBe(500)
    expect(log).toEqual(['caches start'])
    cluster.setState(Service, 'live')
    await expect.poll(() => log.at(-1)).toBe('reconcile start')
    expect(await statusOf(mgr.addresses.probes, '/readyz')).toBe(200)
    expect(mgr.isLeading).toBe(true)
    stop.abort()
    expect(await outcome).toBe('stopped')
    expect(log).toEqual([
      'caches start',
      'runnable start',
      'lease taken',
      'reconcile start',
      'runnable stop',
      'reconcile end false',
      'probes 200 500',
      'caches stop',
      'lease released',
    ])
  })

  it('stops everything when one part fails, and rejects with its error', async () => {
    for (const name of ['throws', 'ends']) {
      const seen: string[] = []
      const { outcome } = await start((mgr) => {
        mgr.add('other', async ({ signal }) => {
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          seen.push('other stopped')
        })
        mgr.add(name, async () => {
          if (name === 'throws') throw new Error('broken part')
        })
      })
      expect(String(await outcome)).toContain(name === 'throws' ? 'broken part' : 'ends ended by itself')
      expect(seen).toEqual(['other stopped'])
    }
  })

  it('fails when a port is in use or a cache does not sync, and leaves nothing running', async () => {
    const first = await start(() => undefined, { probes: '127.0.0.1:0' })
    await expect.poll(() => first.mgr.addresses.probes).toBeDefined()
    const second = await start(() => undefined, { metrics: '127.0.0.1:0', probes: first.mgr.addresses.probes ?? '' })
    expect(String(await second.outcome)).toContain('cannot listen on')
    await expect(fetch(`http://${second.mgr.addresses.metrics}/metrics`)).rejects.toThrow('fetch failed')

    const cluster = memoryCluster()
    cluster.setState(Service, 'syncing')
    const third = await start(
      (mgr) => mgr.controller('c', Service).reconcile(async () => undefined),
      { syncTimeout: '20ms' },
      cluster,
    )
    expect(String(await third.outcome)).toContain('Service did not sync within 20 ms')
  })

  it('does not let a missing CRD delay other controllers or readiness', async () => {
    const cluster = memoryCluster()
    cluster.setState(ConfigMap, 'absent')
    cluster.put(Service, service('shop'))
    const seen: string[] = []
    const { mgr } = await start(
      (made) => {
        made.controller('absent', ConfigMap).reconcile(async () => void seen.push('absent'))
        made.controller('present', Service).reconcile(async () => void seen.push('present'))
      },
      { probes: '127.0.0.1:0' },
      cluster,
    )
    await expect.poll(() => seen).toEqual(['present'])
    expect(await statusOf(mgr.addresses.probes, '/readyz')).toBe(200)
  })

  it('lets a kind that the server denies delay only the controllers that need it, without a timeout', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    cluster.put(ConfigMap, { metadata: { name: 'page', namespace: 'web' } })
    cluster.setState(ConfigMap, 'syncing')
    cluster.setFailure(ConfigMap, { reason: 'denied', message: 'configmaps is forbidden', sinceMs: 1 })
    const clock = fakeClock()
    const seen: string[] = []
    const { mgr, outcome } = await start(
      (made) => {
        made.controller('denied', ConfigMap).reconcile(async () => void seen.push('denied'))
        made.controller('allowed', Service).reconcile(async () => void seen.push('allowed'))
      },
      { probes: '127.0.0.1:0', leader, clock },
      cluster,
    )
    await expect.poll(() => seen).toEqual(['allowed'])
    expect(await statusOf(mgr.addresses.probes, '/readyz')).toBe(500)
    await clock.advance(600_000)
    expect(await Promise.race([outcome, Promise.resolve('running')])).toBe('running')
    expect(cluster.lines.join()).toContain('the server denies the watch')
    cluster.setFailure(ConfigMap, undefined)
    cluster.setState(ConfigMap, 'live')
    await expect.poll(() => seen).toEqual(['allowed', 'denied'])
    expect(await statusOf(mgr.addresses.probes, '/readyz')).toBe(200)
  })

  it('limits the stop: reconciles are aborted, and abandoned, within the grace period', async () => {
    const clock = fakeClock()
    const signals: AbortSignal[] = []
    const { cluster, stop, outcome } = await start(
      (mgr) =>
        mgr.controller('stuck', Service).reconcile(async (_object, { signal }) => {
          signals.push(signal)
          await new Promise(() => undefined)
        }),
      { grace: '300ms', clock },
    )
    cluster.put(Service, service('shop'))
    await clock.advance(0)
    await expect.poll(() => signals.length).toBe(1)
    let isStopped = false
    void outcome.then(() => (isStopped = true))
    stop.abort()
    await clock.advance(299)
    expect(isStopped).toBe(false)
    await clock.advance(1)
    expect(await outcome).toBe('stopped')
    expect(signals[0]?.aborted).toBe(true)
  })

  it('aborts reconciles at once and rejects when leadership is lost, and does not release what it does not hold', async () => {
    const clock = fakeClock()
    const signals: AbortSignal[] = []
    const { cluster, outcome, mgr } = await start(
      (made) =>
        made.controller('services', Service).reconcile(async (_object, { signal }) => {
          signals.push(signal)
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        }),
      { leader, clock },
    )
    cluster.put(Service, service('shop'))
    await clock.advance(0)
    await expect.poll(() => signals.length).toBe(1)
    const lease = cluster.informers.get(Lease, 'sys/edge') as Lease
    cluster.put(Lease, { ...lease, spec: { ...lease.spec, holderIdentity: 'other' } })
    await clock.advance(4_000)
    expect(await outcome).toBeInstanceOf(LeadershipLost)
    expect(signals[0]?.aborted).toBe(true)
    expect(mgr.isLeading).toBe(false)
    expect(cluster.informers.get(Lease, 'sys/edge')?.spec?.holderIdentity).toBe('other')
    expect(await mgr.metrics.registry.getSingleMetricAsString('leader_election_master_status')).toContain(
      '{name="edge"} 0',
    )
  })

  it('lets no controller of a stalled process write after its lease expired', async () => {
    const clock = fakeClock()
    let wake: () => void = () => undefined
    const errors: unknown[] = []
    const { cluster } = await start(
      (mgr) =>
        mgr.controller('services', Service).reconcile(async (_object, ctx) => {
          await new Promise<void>((resolve) => (wake = resolve))
          // The process was stalled here for longer than the lease; no timer has run since.
          await ctx
            .apply(ConfigMap, { metadata: { name: 'x', namespace: 'web' } })
            .catch((error: unknown) => errors.push(error))
        }),
      { leader, clock },
    )
    cluster.put(Service, service('shop'))
    await clock.advance(0)
    await expect.poll(() => cluster.requests.some(({ kind }) => kind.startsWith('Lease'))).toBe(true)
    await clock.advance(0)
    clock.stall(20_000)
    wake()
    await expect.poll(() => errors).toHaveLength(1)
    expect(errors[0]).toBeInstanceOf(LeadershipLost)
    expect(cluster.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  it('runs aggregators and runnables that need no leader on every replica, the others on the leader only', async () => {
    const cluster = memoryCluster()
    const seen: string[] = []
    const wire = (who: string) => (mgr: Manager) => {
      mgr.aggregator(
        'every',
        { kinds: [Service], leader: false },
        () => 1,
        async () => void seen.push(`${who} every`),
      )
      mgr.aggregator(
        'leading',
        { kinds: [Service] },
        () => 1,
        async () => void seen.push(`${who} leading`),
      )
      mgr.add(
        'work',
        async ({ signal }) => {
          seen.push(`${who} work`)
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        },
        { leader: true },
      )
    }
    const a = await start(wire('a'), { leader }, cluster)
    await expect.poll(() => seen.toSorted()).toEqual(['a every', 'a leading', 'a work'])
    await start(wire('b'), { leader }, cluster)
    await expect.poll(() => seen.length).toBe(4)
    expect(seen.at(-1)).toBe('b every')
    expect(a.mgr.isLeading).toBe(true)
  })

  it('provides runnables with cached reads, fenced writes, events and their own log', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    const about = { apiVersion: 'v1', kind: 'Service', ...service('shop') }
    let context: RunnableContext | undefined
    const { stop, outcome } = await start(
      (mgr) => {
        mgr.cluster.informers.informer(Service)
        mgr.add(
          'work',
          async (given) => {
            context = given
            given.log.info('at work')
            given.event(about, 'Normal', 'Seen', `${given.list(Service).length} services`)
            await given.apply(ConfigMap, { metadata: { name: 'made', namespace: 'web' }, data: { a: 'b' } })
            await new Promise<void>((resolve) => given.signal.addEventListener('abort', () => resolve()))
          },
          { leader: true, reportingController: 'example.com/work' },
        )
      },
      { leader },
      cluster,
    )
    const sent = () => cluster.requests.filter(({ kind, verb }) => verb === 'create' && kind.startsWith('Event'))
    await expect.poll(() => sent().length).toBe(1)
    expect(sent()[0]?.body).toMatchObject({
      reportingController: 'example.com/work',
      note: '1 services',
      regarding: { kind: 'Service', name: 'shop' },
    })
    expect(cluster.lines.find((line) => line.includes('at work'))).toContain('"controller":"work"')
    stop.abort(new Error('enough'))
    await outcome
    cluster.requests.length = 0
    await expect(context?.apply(ConfigMap, { metadata: { name: 'late', namespace: 'web' } })).rejects.toThrow('enough')
    await expect(context?.client.get(Service, 'web/shop')).rejects.toThrow('enough')
    expect(cluster.requests).toEqual([])
  })

  it("lets the leader's runnables write only while it leads, and the others always", async () => {
    const cluster = memoryCluster()
    const clock = fakeClock()
    const contexts = new Map<string, RunnableContext>()
    const { mgr } = await start(
      (given) => {
        for (const isLeader of [true, false]) {
          const run = async (context: RunnableContext) => {
            contexts.set(isLeader ? 'leading' : 'every', context)
            await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()))
          }
          given.add(isLeader ? 'leading' : 'every', run, { leader: isLeader })
        }
      },
      { leader, clock },
      cluster,
    )
    await expect.poll(() => contexts.size).toBe(2)
    expect(mgr.isLeading).toBe(true)
    // The process was stalled for longer than the lease duration; none of its timers has run yet.
    clock.stall(60_000)
    const child = { metadata: { name: 'made', namespace: 'web' }, data: { a: 'b' } }
    await expect(contexts.get('leading')?.apply(ConfigMap, child)).rejects.toThrow(LeadershipLost)
    await contexts.get('every')?.apply(ConfigMap, child)
    expect(cluster.requests.filter(({ verb }) => verb === 'apply')).toHaveLength(1)
  })

  it('refuses to run a controller without a reconciler or an aggregator without a pass, by name', async () => {
    const controller = await start((mgr) => void mgr.controller('services', Service).owns(ConfigMap))
    expect(String(await controller.outcome)).toContain('controller services has no reconciler')
    const aggregator = await start((mgr) => void mgr.keyedAggregator('plans').watches(Service, () => 'all'))
    expect(String(await aggregator.outcome)).toContain('keyed aggregator plans has no pass')
  })

  it('runs keyed controllers and keyed aggregators on the leader, with metrics of their own', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    const passes: unknown[] = []
    const keys: string[] = []
    const { mgr } = await start(
      (given) => {
        given
          .keyedAggregator('plans', { debounce: '1ms' })
          .watches(Service, ({ object }) => [object.metadata.name ?? ''])
          .pass(async (dirty) => void passes.push(dirty === 'all' ? dirty : [...dirty]))
        given
          .keyedController('clusters')
          .watches(Service, ({ metadata }) => [`cluster ${metadata.name}`])
          .reconcile(async (key) => void keys.push(key))
      },
      { leader },
      cluster,
    )
    await expect.poll(() => [passes, keys]).toEqual([['all'], ['cluster shop']])
    cluster.put(Service, service('docs'))
    await expect
      .poll(() => [passes, keys])
      .toEqual([
        ['all', ['docs']],
        ['cluster shop', 'cluster docs'],
      ])
    const total = await mgr.metrics.registry.getSingleMetricAsString('controller_runtime_reconcile_total')
    expect(total).toContain('{controller="plans",result="success"} 2')
    expect(total).toContain('{controller="clusters",result="success"} 2')
  })

  it('rejects declarations that are late, duplicate or cannot be served', async () => {
    const { mgr, stop, outcome } = await start((made) => made.controller('a', Service).reconcile(async () => undefined))
    expect(() => mgr.controller('b', Service)).toThrow('comes too late')
    expect(() => mgr.controller('a', Service)).toThrow('exists already')
    await expect(mgr.run(stop.signal)).rejects.toThrow('runs once')
    stop.abort()
    await outcome
    const other = await manager({ cluster: memoryCluster(), log: createLogger({ level: 'silent' }) })
    other.webhook(Service, { validate: () => [] })
    await expect(other.run(stop.signal)).rejects.toThrow('no `webhooks`')
  })

  it('stops before starting when the signal has already aborted', async () => {
    const cluster = memoryCluster()
    const mgr = await manager({ cluster, log: cluster.log, probes: '127.0.0.1:0' })
    mgr.controller('a', Service).reconcile(async () => undefined)
    await mgr.run(AbortSignal.abort())
    expect([mgr.addresses, cluster.isClosed]).toEqual([{}, true])
  })

  it('stops at the first signal of the process, and leaves the default action for the second', () => {
    const before = process.listenerCount('SIGUSR2')
    const signal = untilSignalled('SIGUSR2', 'SIGWINCH')
    expect(process.listenerCount('SIGUSR2')).toBe(before + 1)
    process.emit('SIGUSR2', 'SIGUSR2')
    expect(signal.aborted).toBe(true)
    expect(String(signal.reason)).toContain('SIGUSR2')
    expect([process.listenerCount('SIGUSR2'), process.listenerCount('SIGWINCH')]).toEqual([before, 0])
  })
})

describe('fleet', () => {
  it('runs a controller on every member, each with its own cache and key space', async () => {
    const hub = memoryCluster('hub')
    const [east, west] = [memoryCluster('east'), memoryCluster('west')]
    for (const member of [hub, east, west]) member.put(Service, service(`in-${member.name}`))
    const seen: string[] = []
    const { mgr } = await start(
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
    await start((made) => {
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
    const { mgr } = await start((made) => {
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
    const { stop, outcome, cluster } = await start(
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
    await start(
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
