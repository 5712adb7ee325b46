import { afterEach, describe, expect, it } from 'vitest'
import { requeue } from './reconcile-result.ts'
import { Route, route, startController, stopControllers } from '../testing/memory/started-controller.ts'

afterEach(stopControllers)

describe('controller with a finalizer', () => {
  const finalizer = 'test/cleanup'

  it('adds the finalizer before the first effect, cleans up after deletion, and only then removes the finalizer', async () => {
    const log: string[] = []
    const { environment } = startController((builder) =>
      builder
        .finalizer(finalizer, async ({ metadata }) => void log.push(`cleanup ${metadata.finalizers?.join()}`))
        .reconcile(async ({ metadata }) => void log.push(`effect ${metadata.finalizers?.join()}`)),
    )
    const { cluster, clock } = environment
    await clock.advance(0)
    cluster.put(Route, route('a'))
    await clock.advance(0)
    expect(log[0]).toBe(`effect ${finalizer}`)
    log.length = 0
    await cluster.client.delete(Route, 'web/a')
    expect(cluster.informers.get(Route, 'web/a')).toBeDefined()
    await clock.advance(0)
    expect(log).toEqual([`cleanup ${finalizer}`])
    expect(cluster.informers.get(Route, 'web/a')).toBeUndefined()
  })

  it('keeps the object while cleanup fails or returns a requeue', async () => {
    const outcomes: (() => { after: number } | undefined)[] = [
      () => {
        throw new Error('provider is down')
      },
      () => requeue('1s'),
      () => undefined,
    ]
    let calls = 0
    const { environment } = startController((builder) =>
      builder.finalizer(finalizer, async () => outcomes[calls++]?.()).reconcile(async () => undefined),
    )
    const { cluster, clock } = environment
    await clock.advance(0)
    cluster.put(Route, route('a'))
    await clock.advance(0)
    await cluster.client.delete(Route, 'web/a')
    await clock.advance(10)
    expect([calls, cluster.informers.get(Route, 'web/a')?.metadata.finalizers]).toEqual([2, [finalizer]])
    await clock.advance(1_000)
    expect([calls, cluster.informers.get(Route, 'web/a')]).toEqual([3, undefined])
  })

  it('does not reconcile when the finalizer cannot be added', async () => {
    let effects = 0
    const { environment } = startController((builder) =>
      builder.finalizer(finalizer, async () => undefined).reconcile(async () => void effects++),
    )
    const { cluster, clock } = environment
    cluster.intercept = ({ verb }) => {
      if (verb === 'patch') throw new Error('refused')
    }
    cluster.put(Route, route('a'))
    await clock.advance(1_000)
    expect(effects).toBe(0)
    cluster.intercept = undefined
    await clock.advance(60_000)
    expect(effects).toBeGreaterThan(0)
  })

  it('skips an object that is being deleted without its finalizer', async () => {
    let calls = 0
    const { environment } = startController((builder) =>
      builder.finalizer(finalizer, async () => void calls++).reconcile(async () => void calls++),
    )
    const metadata = { name: 'a', namespace: 'web', finalizers: ['other'], deletionTimestamp: '2030-01-01T00:00:00Z' }
    environment.cluster.put(Route, { ...route('a'), metadata })
    await environment.clock.advance(0)
    expect([calls, environment.cluster.requests]).toEqual([0, []])
  })
})
