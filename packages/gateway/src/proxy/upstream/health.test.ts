import { describe, expect, it } from 'vitest'
import { CLOSED, irOf, manualClock } from '../../../testing/proxy-fixture.ts'
import type { Endpoint } from '../../ir/endpoint.ts'
import { Clusters } from './clusters.ts'
import { HealthChecks } from './health.ts'
import { guardedLookup } from './guarded-lookup.ts'

const TIMEOUT_MS = 500

/** Health checks of one cluster, taken out after three failures; every probe fails. */
function setUp() {
  let endpoints: readonly Endpoint[] = [CLOSED]
  let finished = 0
  const clock = manualClock()
  const after = (ms: number, run: () => void) => {
    const cancel = clock.after(ms, run)
    return () => {
      // The timeout of a probe is cancelled in the turn in which its result is recorded.
      if (ms === TIMEOUT_MS) finished++
      cancel()
    }
  }
  const healthCheck = {
    path: '/',
    host: 'h',
    intervalMs: 1_000,
    timeoutMs: TIMEOUT_MS,
    unhealthyThreshold: 3,
    healthyThreshold: 1,
    expectedStatuses: [],
  }
  const { clusters: all } = irOf([], [{ name: 'one', healthCheck }])
  const clusters = new Clusters(() => endpoints)
  const checks = new HealthChecks(
    clusters,
    { ...clock, after },
    guardedLookup(() => undefined),
  )
  const apply = (isConfigured: boolean) => {
    clusters.update(isConfigured ? all : [])
    checks.update()
  }
  const results = async (count: number) => {
    await expect.poll(() => finished).toBe(count)
  }
  const isHealthy = () => clusters.get('one')?.unhealthy.size === 0
  return { apply, results, isHealthy, clock, checks, setEndpoints: (list: Endpoint[]) => void (endpoints = list) }
}

describe('health checks', () => {
  it('take an endpoint out after as many failures in a row as the policy says', async () => {
    const { apply, results, isHealthy, clock, checks } = setUp()
    apply(true)
    for (const count of [1, 2, 3]) {
      await results(count)
      expect(isHealthy()).toBe(count < 3)
      clock.advance(1_000)
    }
    await results(4)
    checks.close()
    expect(clock.pending()).toBe(0)
  })

  it('count from the beginning for an endpoint that was gone', async () => {
    const { apply, results, isHealthy, clock, checks, setEndpoints } = setUp()
    apply(true)
    await results(1)
    clock.advance(1_000)
    await results(2)
    setEndpoints([])
    clock.advance(1_000)
    setEndpoints([CLOSED])
    clock.advance(1_000)
    await results(3)
    expect(isHealthy()).toBe(true)
    checks.close()
  })

  it('count from the beginning for a cluster that was removed, and end with it', async () => {
    const { apply, results, isHealthy, clock, checks } = setUp()
    apply(true)
    await results(1)
    clock.advance(1_000)
    await results(2)
    apply(false)
    expect(clock.pending()).toBe(0)
    apply(true)
    await results(3)
    expect(isHealthy()).toBe(true)
    checks.close()
  })
})

describe('the clusters of a namespace with thousands of endpoints', () => {
  it('are probed 100 times a second together, and those of others when their policy says', () => {
    const healthCheck = {
      path: '/',
      host: 'h',
      intervalMs: 1_000,
      timeoutMs: TIMEOUT_MS,
      unhealthyThreshold: 3,
      healthyThreshold: 1,
      expectedStatuses: [],
    }
    const names = ['other/web/80', ...Array.from({ length: 50 }, (_, index) => `team/web/80/${index}`)]
    const { clusters: all } = irOf(
      [],
      names.map((name) => ({ name, healthCheck })),
    )
    let probed = 0
    const source = (name: string): readonly Endpoint[] =>
      Array.from({ length: name.startsWith('team/') ? 40 : 1 }, (_, index) => ({ ...CLOSED, port: index + 1 }))
    const clusters = new Clusters(source)
    const clock = manualClock()
    // Each probe has one timer with its timeout, and one waits for as long before it begins; no result is waited for.
    const after = (ms: number, run: () => void) => {
      if (ms === TIMEOUT_MS) probed++
      return clock.after(ms, run)
    }
    const checks = new HealthChecks(
      clusters,
      { ...clock, after },
      guardedLookup(() => undefined),
    )
    clusters.update(all)
    checks.update()
    for (let second = 0; second < 10; second++) {
      // 100, and one of the other namespace.
      expect(probed).toBeGreaterThan(95)
      expect(probed).toBeLessThanOrEqual(102)
      probed = 0
      for (let step = 0; step < 100; step++) clock.advance(10)
    }
    checks.close()
  })
})
