import { afterEach, describe, expect, it } from 'vitest'
import { Service } from '../object/kinds.ts'
import { memoryEnvironment, type MemoryEnvironment } from '../testing/memory/memory-environment.ts'
import type { Context } from './context.ts'
import {
  defineKeyedAggregator,
  type DirtyKeys,
  type KeyedAggregatorBuilder,
  type KeyedAggregatorOptions,
  type PassResult,
} from './keyed-aggregator.ts'

type Pass = (keys: DirtyKeys, context: Context) => Promise<PassResult | void>

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

function start(
  pass: Pass,
  options: KeyedAggregatorOptions = {},
  wire: (builder: KeyedAggregatorBuilder) => void = (builder) =>
    void builder.watches(Service, ({ object }) => [object.metadata.name ?? '']),
  environment: MemoryEnvironment = memoryEnvironment(),
) {
  const controller = new AbortController()
  const { builder, aggregator } = defineKeyedAggregator('records', options)
  wire(builder)
  builder.pass(pass)
  const ended = aggregator.run(environment, { stop: controller.signal, kill: controller.signal })
  const stop = async () => {
    controller.abort(new Error('stop'))
    await environment.clock.advance(10_000)
    await ended
  }
  stops.push(stop)
  return { ...environment, environment, stop }
}

/** Passes as arrays, for comparison. */
const listed = (keys: DirtyKeys) => (keys === 'all' ? keys : [...keys])
const service = (name: string) => ({ metadata: { name } })
const metric = async ({ metrics }: MemoryEnvironment, name: string) => metrics.registry.getSingleMetricAsString(name)

describe('keyed aggregator', () => {
  it('runs one pass over all keys at the start, and then one over the keys that a burst marked', async () => {
    const passes: unknown[] = []
    const { cluster, clock } = start(async (keys) => void passes.push(listed(keys)), { debounce: '200ms' })
    await clock.advance(0)
    expect(passes).toEqual(['all'])
    cluster.put(Service, service('a'))
    await clock.advance(150)
    cluster.put(Service, service('b'))
    cluster.put(Service, service('a'))
    await clock.advance(49)
    expect(passes).toHaveLength(1)
    await clock.advance(1)
    expect(passes).toEqual(['all', ['a', 'b']])
    await clock.advance(600_000)
    expect(passes).toHaveLength(2)
  })

  it('has replayed the caches before the first pass', async () => {
    const environment = memoryEnvironment()
    for (let index = 0; index < 100; index++) environment.cluster.put(Service, service(`s${index}`))
    const indexed = new Set<string>()
    const sizes: number[] = []
    const { clock } = start(
      async () => void sizes.push(indexed.size),
      {},
      (builder) =>
        void builder.watches(Service, ({ object }) => {
          indexed.add(object.metadata.name ?? '')
          return []
        }),
      environment,
    )
    await clock.advance(1_000)
    expect(sizes).toEqual([100])
  })

  it('processes keys marked during a pass in the next one', async () => {
    const passes: unknown[] = []
    const releases: (() => void)[] = []
    const { cluster, clock } = start(async (keys) => {
      passes.push(listed(keys))
      await new Promise<void>((resolve) => releases.push(resolve))
    })
    await clock.advance(0)
    cluster.put(Service, service('late'))
    await clock.advance(1_000)
    expect(passes).toEqual(['all'])
    releases.shift()?.()
    await clock.advance(0)
    expect(passes).toEqual(['all', ['late']])
    releases.shift()?.()
  })

  it('retries failed keys with a per-key back-off, and resets it after a success', async () => {
    const at: number[] = []
    let isFailing = true
    const { cluster, clock } = start(
      async (keys) => {
        if (keys === 'all' || !keys.has('bad')) return {}
        at.push(clock.monotonic())
        return isFailing ? { failed: ['bad'] } : {}
      },
      { debounce: '0s', backoff: { base: '1s', limit: '4s' } },
    )
    await clock.advance(0)
    const begin = clock.monotonic()
    cluster.put(Service, service('bad'))
    cluster.put(Service, service('good'))
    await clock.advance(11_000)
    expect(at.map((each) => each - begin)).toEqual([0, 1_000, 3_000, 7_000, 11_000])
    isFailing = false
    await clock.advance(60_000)
    expect(at).toHaveLength(6)
    isFailing = true
    at.length = 0
    const again = clock.monotonic()
    cluster.put(Service, service('bad'))
    await clock.advance(1_000)
    expect(at.map((each) => each - again)).toEqual([0, 1_000])
  })

  it('treats every key of a pass that throws or times out as failed, and counts the failure', async () => {
    const passes: unknown[] = []
    const failures = [new Error('provider down'), 'timeout']
    const { cluster, clock, environment } = start(
      async (keys) => {
        passes.push(listed(keys))
        if (keys === 'all') return
        const failure = failures.shift()
        if (failure instanceof Error) throw failure
        if (failure === 'timeout') await new Promise(() => undefined)
      },
      { timeout: '10s' },
    )
    await clock.advance(0)
    cluster.put(Service, service('a'))
    await clock.advance(50)
    expect(passes).toEqual(['all', ['a']])
    await clock.advance(1_000)
    expect(passes).toEqual(['all', ['a'], ['a']])
    await clock.advance(30_000)
    expect(passes).toEqual(['all', ['a'], ['a'], ['a']])
    await clock.advance(600_000)
    expect(passes).toHaveLength(4)
    expect(await metric(environment, 'controller_runtime_reconcile_errors_total')).toContain('{controller="records"} 2')
  })

  it('repeats a pass over all keys that failed', async () => {
    const passes: unknown[] = []
    const { clock } = start(async (keys) => {
      passes.push(listed(keys))
      return passes.length === 1 ? { failed: keys } : {}
    })
    await clock.advance(1_000)
    expect(passes).toEqual(['all', 'all'])
  })

  it('requeues keys after their time, once, unless they were processed meanwhile', async () => {
    const passes: unknown[] = []
    const { cluster, clock } = start(
      async (keys) => {
        passes.push(listed(keys))
        if (passes.length !== 2) return {}
        return {
          requeue: [
            { keys: ['a'], after: '1m' },
            { keys: ['b'], after: '1m' },
          ],
        }
      },
      { debounce: '0s' },
    )
    await clock.advance(0)
    cluster.put(Service, service('a'))
    await clock.advance(30_000)
    cluster.put(Service, service('b'))
    await clock.advance(29_999)
    expect(passes).toEqual(['all', ['a'], ['b']])
    await clock.advance(1)
    expect(passes).toEqual(['all', ['a'], ['b'], ['a']])
    await clock.advance(600_000)
    expect(passes).toHaveLength(4)
  })

  it('marks keys from triggers and timers, until it stops', async () => {
    const passes: unknown[] = []
    let mark: (keys: 'all' | readonly string[]) => void = () => undefined
    const { clock, stop } = start(
      async (keys) => void passes.push(listed(keys)),
      { startWithAll: false },
      (builder) =>
        void builder
          .triggers((given) => {
            mark = given
            return () => passes.push('unsubscribed')
          })
          .every('1m', () => ['swept']),
    )
    await clock.advance(0)
    expect(passes).toEqual([])
    mark(['x'])
    await clock.advance(50)
    mark([])
    await clock.advance(1_000)
    expect(passes).toEqual([['x']])
    await clock.advance(60_000)
    expect(passes).toEqual([['x'], ['swept']])
    await stop()
    mark('all')
    await clock.advance(600_000)
    expect(passes).toEqual([['x'], ['swept'], 'unsubscribed'])
  })

  it('handles no change and keeps no timer once it has stopped', async () => {
    const mapped: unknown[] = []
    const { cluster, clock, stop } = start(
      async () => ({ failed: ['a'], requeue: [{ keys: ['b'], after: '1h' }] }),
      {},
      (builder) =>
        void builder.watches(Service, ({ object }) => {
          mapped.push(object.metadata.name)
          return []
        }),
    )
    await clock.advance(0)
    cluster.put(Service, service('before'))
    await clock.advance(0)
    expect(clock.pending).toBeGreaterThan(0)
    await stop()
    expect(clock.pending).toBe(0)
    cluster.put(Service, service('after'))
    await clock.advance(0)
    expect(mapped).toEqual(['before'])
  })

  it('runs a pass over all keys when those of a change are not known', async () => {
    const passes: unknown[] = []
    const { cluster, clock } = start(
      async (keys) => void passes.push(listed(keys)),
      { startWithAll: false },
      (builder) =>
        void builder.watches(Service, () => {
          throw new TypeError('broken')
        }),
    )
    await clock.advance(0)
    cluster.put(Service, service('a'))
    await clock.advance(50)
    expect(passes).toEqual(['all'])
  })

  it('names itself when it was declared without a pass', () => {
    const { aggregator } = defineKeyedAggregator('records', {})
    expect(aggregator.incomplete).toContain('keyed aggregator records has no pass')
  })
})
