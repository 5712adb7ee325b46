import { afterEach, describe, expect, it } from 'vitest'
import type { RunnableContext } from '../controller/context.ts'
import { LeadershipLost } from '../apply/write-fence.ts'
import { ConfigMap, Lease, Service } from '../object/kinds.ts'
import type { Manager } from './manager.ts'
import { fakeClock } from '../testing/clock.ts'
import { memoryCluster } from '../testing/memory/memory-cluster.ts'
import { startManager, stopManagers } from '../testing/memory/started-manager.ts'

afterEach(stopManagers)

const leader = { lease: 'edge', namespace: 'sys' }
const service = (name: string) => ({ metadata: { name, namespace: 'web' } })

describe('a manager with leader election', () => {
  it('aborts reconciles at once and rejects when leadership is lost, and does not release what it does not hold', async () => {
    const clock = fakeClock()
    const signals: AbortSignal[] = []
    const { cluster, outcome, mgr } = await startManager(
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
