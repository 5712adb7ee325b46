import { afterEach, describe, expect, it } from 'vitest'
import { defineAggregator, watching, type AggregatorOptions } from './aggregator.ts'
import type { Reader } from '../cache/cache.ts'
import { ConfigMap, Service } from '../object/kinds.ts'
import type { Next } from './reconcile-result.ts'
import { requeue } from './reconcile-result.ts'
import { memoryEnvironment } from '../testing/memory/memory-environment.ts'

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

function start(
  act: (names: string[]) => Promise<Next>,
  options: Partial<AggregatorOptions> = {},
  build = (cache: Reader) => cache.list(Service).map(({ metadata }) => metadata.name ?? ''),
  environment = memoryEnvironment(),
) {
  const controller = new AbortController()
  const aggregator = defineAggregator('proxy', { kinds: [Service], ...options }, build, act)
  const signals = { stop: controller.signal, kill: controller.signal }
  const outcome = aggregator.run(environment, signals).catch((error: unknown) => error)
  stops.push(async () => {
    controller.abort()
    await environment.clock.advance(10_000)
    await outcome
  })
  return { ...environment, outcome }
}

const service = (name: string) => ({ metadata: { name } })

describe('aggregator', () => {
  it('builds once at the start, and once after a burst of changes', async () => {
    const built: string[][] = []
    const { cluster, clock } = start(async (names) => void built.push(names))
    await clock.advance(0)
    expect(built).toEqual([[]])
    for (let index = 0; index < 100; index++) cluster.put(Service, service(`s${index}`))
    await clock.advance(49)
    expect(built).toHaveLength(1)
    await clock.advance(1)
    expect(built).toHaveLength(2)
    expect(built[1]).toHaveLength(100)
    await clock.advance(60_000)
    expect(built).toHaveLength(2)
  })

  it('is not delayed indefinitely by continuous changes', async () => {
    let builds = 0
    const { cluster, clock } = start(async () => void builds++)
    for (let ms = 0; ms < 1_000; ms += 10) {
      cluster.put(Service, service(`s${ms}`))
      await clock.advance(10)
    }
    expect(builds).toBeGreaterThanOrEqual(15)
  })

  it('builds again after a change during delivery, and never two at a time', async () => {
    const built: string[][] = []
    const releases: (() => void)[] = []
    const { cluster, clock } = start(async (names) => {
      built.push(names)
      await new Promise<void>((resolve) => releases.push(resolve))
    })
    await clock.advance(0)
    cluster.put(Service, service('late'))
    await clock.advance(1_000)
    expect(built).toEqual([[]])
    releases.shift()?.()
    await clock.advance(0)
    expect(built).toEqual([[], ['late']])
    releases.shift()?.()
  })

  it('tries again with back-off when a build or delivery fails, and a failing build delivers nothing', async () => {
    let fails = 'build'
    const delivered: number[] = []
    const { clock, cluster } = start(
      async () => {
        if (fails === 'act') throw new Error('proxy refuses')
        delivered.push(clock.monotonic())
      },
      {},
      () => {
        if (fails === 'build') throw new TypeError('broken build')
        return []
      },
    )
    await clock.advance(1_000)
    fails = 'act'
    await clock.advance(1_000)
    expect(delivered).toEqual([])
    fails = 'nothing'
    await clock.advance(10_000)
    expect(delivered).toHaveLength(1)
    expect(cluster.lines.length).toBeLessThan(40)
  })

  it('waits for its kinds, builds on request, and skips changes that its predicate rejects', async () => {
    const environment = memoryEnvironment()
    environment.cluster.setState(ConfigMap, 'syncing')
    let builds = 0
    start(
      async () => {
        builds++
        return builds === 1 ? requeue('1m') : undefined
      },
      { kinds: [Service, watching(ConfigMap, { when: ({ object }) => object.metadata.name === 'wanted' })] },
      () => [],
      environment,
    )
    await environment.clock.advance(1_000)
    expect(builds).toBe(0)
    environment.cluster.setState(ConfigMap, 'live')
    await environment.clock.advance(0)
    expect(builds).toBe(1)
    environment.cluster.put(ConfigMap, { metadata: { name: 'other' } })
    await environment.clock.advance(59_000)
    expect(builds).toBe(1)
    await environment.clock.advance(1_000)
    expect(builds).toBe(2)
    environment.cluster.put(ConfigMap, { metadata: { name: 'wanted' } })
    await environment.clock.advance(50)
    expect(builds).toBe(3)
  })

  it('refuses to be defined without kinds', () => {
    expect(() =>
      defineAggregator(
        'x',
        { kinds: [] },
        () => 1,
        async () => undefined,
      ),
    ).toThrow('watches no kind')
  })
})
