import { afterEach, describe, expect, it } from 'vitest'
import { Service } from '../object/kinds.ts'
import { memoryEnvironment } from '../testing/memory/memory-environment.ts'
import { Route, route, startController, stopControllers } from '../testing/memory/started-controller.ts'

afterEach(stopControllers)

describe('a controller that starts or stops', () => {
  it('starts no reconcile before every kind is synced', async () => {
    const environment = memoryEnvironment()
    environment.cluster.setState(Service, 'syncing')
    environment.cluster.put(Route, route('a'))
    const seen: string[] = []
    startController(
      (builder) =>
        builder
          .watches(Service, () => [])
          .reconcile(async (_object, context) => {
            context.list(Service)
            seen.push(context.key)
          }),
      {},
      environment,
    )
    await environment.clock.advance(100_000)
    expect(seen).toEqual([])
    environment.cluster.setState(Service, 'live')
    await environment.clock.advance(0)
    expect(seen).toEqual(['web/a'])
  })

  it('fails when a kind does not sync within two minutes', async () => {
    const environment = memoryEnvironment()
    environment.cluster.setState(Service, 'backoff')
    environment.cluster.setState(Service, 'syncing')
    const { outcome } = startController(
      (builder) => builder.watches(Service, () => []).reconcile(async () => undefined),
      {},
      environment,
    )
    await environment.clock.advance(120_000)
    expect(String(await outcome)).toContain('Service did not sync within 120000 ms in cluster local')
  })

  it('waits for a missing CRD without a timeout, unless the watch is optional', async () => {
    for (const optional of [false, true]) {
      const environment = memoryEnvironment()
      environment.cluster.setState(Service, 'absent')
      environment.cluster.put(Route, route('a'))
      const seen: string[] = []
      startController(
        (builder) =>
          builder
            .watches(Service, () => ['web/a'], { optional })
            .reconcile(async (_object, { key }) => void seen.push(key)),
        {},
        environment,
      )
      await environment.clock.advance(600_000)
      expect(seen).toEqual(optional ? ['web/a'] : [])
      environment.cluster.setState(Service, 'live')
      environment.cluster.put(Service, { metadata: { name: 's' } })
      await environment.clock.advance(1_000)
      expect(seen.length).toBe(optional ? 2 : 1)
    }
  })

  it('lets running reconciles end after stop, starts no new ones, and aborts them on kill', async () => {
    let finish: () => void = () => undefined
    const seen: string[] = []
    const signals: AbortSignal[] = []
    const { environment, outcome, stop, kill } = startController(
      (builder) =>
        builder.reconcile(async (_object, { key, signal }) => {
          seen.push(key)
          signals.push(signal)
          await new Promise<void>((resolve) => {
            if (key === 'web/first') finish = resolve
            signal.addEventListener('abort', () => resolve())
          })
        }),
      { concurrency: 2 },
    )
    for (const name of ['first', 'second', 'third']) environment.cluster.put(Route, route(name))
    await environment.clock.advance(0)
    stop()
    await environment.clock.advance(0)
    finish()
    await environment.clock.advance(0)
    expect(seen).toEqual(['web/first', 'web/second'])
    expect(signals[1]?.aborted).toBe(false)
    expect(await Promise.race([outcome, Promise.resolve('running')])).toBe('running')
    kill()
    await environment.clock.advance(0)
    expect(await outcome).toBe('stopped')
    expect(environment.cluster.lines.join()).not.toContain('reconcile failed')
  })
})
