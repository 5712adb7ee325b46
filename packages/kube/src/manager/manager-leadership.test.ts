import { afterEach, describe, expect, it } from 'vitest'
import { Gauge } from 'prom-client'
import type { Context, RunnableContext } from '../controller/context.ts'
import { TransportError } from '../errors.ts'
import { keyOf } from '../object/object.ts'
import { untilAborted } from '../stop-signal.ts'
import { LeadershipLost } from '../apply/write-fence.ts'
import { ConfigMap, Lease, Service } from '../object/kinds.ts'
import type { Manager } from './manager.ts'
import { type FakeClock, fakeClock } from '../testing/clock.ts'
import { memoryCluster, type MemoryCluster } from '../testing/memory/memory-cluster.ts'
import { type StartedManager, startManager, stopManagers } from '../testing/memory/started-manager.ts'

afterEach(stopManagers)

const leader = { lease: 'edge', namespace: 'sys' }
/** As another process, or as nobody. */
function take(cluster: MemoryCluster, holderIdentity: string): void {
  const lease = cluster.informers.get(Lease, 'sys/edge') as Lease
  cluster.put(Lease, { ...lease, spec: { ...lease.spec, holderIdentity } })
}

/** Another process takes the lease, and releases it when this one has noticed. */
async function interrupt({ cluster, mgr }: StartedManager, clock: FakeClock): Promise<void> {
  take(cluster, 'other')
  for (let second = 0; mgr.isLeading && second < 10; second++) await clock.advance(1_000)
  expect(mgr.isLeading).toBe(false)
  take(cluster, '')
}

const service = (name: string) => ({ metadata: { name, namespace: 'web' } })

describe('a manager with leader election', () => {
  it('aborts reconciles at once when leadership is lost, continues to serve, and leads again on the same caches', async () => {
    const clock = fakeClock()
    const contexts: Context[] = []
    const { cluster, outcome, mgr } = await startManager(
      (made) =>
        made.controller('services', Service).reconcile(async (_object, context) => {
          contexts.push(context)
          await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()))
        }),
      { leader, clock, probes: '127.0.0.1:0' },
    )
    const holder = () => cluster.informers.get(Lease, 'sys/edge')?.spec?.holderIdentity
    const master = async () => mgr.metrics.registry.getSingleMetricAsString('leader_election_master_status')
    cluster.put(Service, service('shop'))
    await clock.advance(0)
    await expect.poll(() => contexts.length).toBe(1)
    take(cluster, 'other')
    await clock.advance(4_000)
    await expect.poll(() => contexts[0]?.signal.aborted).toBe(true)
    expect([mgr.isLeading, holder()]).toEqual([false, 'other'])
    expect(await master()).toContain('{name="edge"} 0')
    const [ready] = [await fetch(`http://${mgr.addresses.probes}/readyz`)]
    expect(ready.status).toBe(200)
    // What it does not hold is not released, and taken only when the other one does not renew it.
    await clock.advance(14_000)
    expect([mgr.isLeading, holder()]).toEqual([false, 'other'])

    take(cluster, '')
    await expect
      .poll(async () => {
        await clock.advance(1_000)
        return contexts.length
      })
      .toBe(2)
    expect(mgr.isLeading).toBe(true)
    expect(await master()).toContain('{name="edge"} 1')
    const child = { metadata: { name: 'x', namespace: 'web' }, data: { a: 'b' } }
    await expect(contexts[0]?.apply(ConfigMap, child)).rejects.toThrow(LeadershipLost)
    await contexts[1]?.apply(ConfigMap, child)
    expect(cluster.requests.filter(({ verb }) => verb === 'apply')).toHaveLength(1)
    expect(await Promise.race([outcome, Promise.resolve('running')])).toBe('running')
  })

  it('begins a term only when every part of the one before has ended, and says which has not', async () => {
    const clock = fakeClock()
    let finish: () => void = () => undefined
    let starts = 0
    const started = await startManager(
      (made) =>
        made.add(
          'slow',
          async () => {
            starts++
            await new Promise<void>((resolve) => (finish = resolve))
          },
          { leader: true },
        ),
      { leader, clock },
    )
    const { cluster } = started
    await expect.poll(() => starts).toBe(1)
    await interrupt(started, clock)
    await clock.advance(40_000)
    await expect.poll(() => cluster.lines.join()).toContain('parts have not ended since leadership was lost')
    expect(cluster.lines.join()).toContain('"parts":["slow"]')
    expect(starts).toBe(1)
    finish()
    await expect
      .poll(async () => {
        await clock.advance(1_000)
        return starts
      })
      .toBe(2)
    finish()
  })

  it('declares control anew for each term: its state, subscriptions, metrics and client end with it', async () => {
    const clock = fakeClock()
    const managers: Manager[] = []
    const seen: string[] = []
    const started = await startManager(
      (made) => {
        made.control((control, ended) => {
          const term = managers.push(control)
          control.cache(Service, { projection: (object) => object })
          control.cluster.informers.informer(ConfigMap).subscribe(({ object }) => seen.push(`${term} ${keyOf(object)}`))
          new Gauge({ name: 'state', help: 'x', registers: [control.metrics.registry] }).set(term)
          control.controller('services', Service).reconcile(async () => void seen.push(`${term} reconcile`))
          ended.addEventListener('abort', () => seen.push(`${term} ended`))
        })
      },
      { leader, clock, metrics: '127.0.0.1:0' },
    )
    const { cluster, mgr } = started
    cluster.put(Service, service('shop'))
    const scrape = async () => (await fetch(`http://${mgr.addresses.metrics}/metrics`)).text()
    await expect.poll(() => seen).toEqual(['1 reconcile'])
    expect(await scrape()).toMatch(/^state 1$/m)
    expect(managers[0]?.isLeading).toBe(true)
    await interrupt(started, clock)
    await expect
      .poll(async () => {
        await clock.advance(1_000)
        return seen
      })
      .toEqual(['1 reconcile', '1 ended', '2 reconcile'])
    expect(await scrape()).toMatch(/^state 2$/m)
    expect(managers.map(({ isLeading }) => isLeading)).toEqual([false, true])
    cluster.put(ConfigMap, { metadata: { name: 'map', namespace: 'web' } })
    await expect.poll(() => seen.slice(3)).toEqual(['2 web/map'])
    const child = { metadata: { name: 'x', namespace: 'web' } }
    await expect(managers[0]?.client.create(ConfigMap, child)).rejects.toThrow(LeadershipLost)
    await managers[1]?.client.create(ConfigMap, child)
  })

  it('starts control again when the API server failed a part of it, and ends with any other failure', async () => {
    const clock = fakeClock()
    const cluster = memoryCluster()
    let isAway = true
    let hasFault = false
    const started = await startManager(
      (made) =>
        made.add(
          'installer',
          async ({ client, signal }) => {
            if (hasFault) throw new Error('a wrong setting')
            await client.find(ConfigMap, 'sys/x')
            seen.push('installed')
            await untilAborted(signal)
          },
          { leader: true },
        ),
      { leader, clock },
      Object.assign(cluster, {
        intercept: ({ kind }: { kind: string }) => {
          if (isAway && kind.startsWith('ConfigMap')) throw new TransportError('RESET', 'the server is away')
        },
      }),
    )
    const seen: string[] = []
    await expect.poll(() => cluster.lines.join()).toContain('the server is away')
    isAway = false
    const until = async (done: () => boolean) => {
      await expect
        .poll(async () => {
          await clock.advance(1_000)
          return done()
        })
        .toBe(true)
    }
    await until(() => seen.length === 1)
    hasFault = true
    await interrupt(started, clock)
    await until(() => cluster.lines.join().includes('control has ended'))
    let end: unknown
    void started.outcome.then((error) => (end = error))
    await until(() => end !== undefined)
    expect(String(end)).toContain('a wrong setting')
  })

  it('waits for watches that still fail when it leads again, and at most for a minute', async () => {
    const clock = fakeClock()
    let reconciles = 0
    const started = await startManager(
      (made) => made.controller('services', Service).reconcile(async () => void reconciles++),
      { leader, clock },
    )
    const { cluster } = started
    cluster.put(Service, service('shop'))
    await expect.poll(() => reconciles).toBe(1)
    for (const clears of [true, false]) {
      const before = reconciles
      cluster.setFailure(Service, { reason: 'broken', message: 'no answer', sinceMs: 1 })
      await interrupt(started, clock)
      for (let second = 0; second < 30; second++) await clock.advance(1_000)
      expect(reconciles).toBe(before)
      if (clears) cluster.setFailure(Service, undefined)
      await expect
        .poll(async () => {
          await clock.advance(1_000)
          return reconciles
        })
        .toBe(before + 1)
      cluster.setFailure(Service, undefined)
    }
    expect(cluster.lines.join()).toContain('kinds cannot be read since this process leads')
  })

  it('runs controllers of members again', async () => {
    const clock = fakeClock()
    const member = memoryCluster('member')
    member.put(Service, service('shop'))
    const signals: AbortSignal[] = []
    const started = await startManager(
      (made) => {
        made.control((control) =>
          control.controller('members', Service, { clusters: 'fleet' }).reconcile(async (_object, { signal }) => {
            signals.push(signal)
            await untilAborted(signal)
          }),
        )
        made.fleet.engage(member)
      },
      { leader, clock },
    )
    await expect.poll(() => signals.length).toBe(1)
    await interrupt(started, clock)
    await expect
      .poll(async () => {
        await clock.advance(1_000)
        return signals.length
      })
      .toBe(2)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
    expect(member.isClosed).toBe(false)
  })

  it('lets no controller of a stalled process write after its lease expired', async () => {
    const clock = fakeClock()
    let wake: () => void = () => undefined
    const errors: unknown[] = []
    const { cluster } = await startManager(
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
    const a = await startManager(wire('a'), { leader }, cluster)
    await expect.poll(() => seen.toSorted()).toEqual(['a every', 'a leading', 'a work'])
    await startManager(wire('b'), { leader }, cluster)
    await expect.poll(() => seen.length).toBe(4)
    expect(seen.at(-1)).toBe('b every')
    expect(a.mgr.isLeading).toBe(true)
  })

  it("lets the leader's runnables write only while it leads, and the others always", async () => {
    const cluster = memoryCluster()
    const clock = fakeClock()
    const contexts = new Map<string, RunnableContext>()
    const { mgr } = await startManager(
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

  it('runs keyed controllers and keyed aggregators on the leader, with metrics of their own', async () => {
    const cluster = memoryCluster()
    cluster.put(Service, service('shop'))
    const passes: unknown[] = []
    const keys: string[] = []
    const { mgr } = await startManager(
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
})
