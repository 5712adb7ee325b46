import { afterEach, describe, expect, it } from 'vitest'
import { ConfigMap } from '../object/kinds.ts'
import { keyOf } from '../object/object.ts'
import { Terminal } from './reconcile-result.ts'
import { memoryEnvironment, type MemoryEnvironment } from '../testing/memory/memory-environment.ts'
import { Route, route, startController, stopControllers } from '../testing/memory/started-controller.ts'

afterEach(stopControllers)

describe('a watch that ignores own writes', () => {
  const child = (data: Record<string, string>) => ({ metadata: { name: 'a', namespace: 'web' }, data })

  /** Starts a controller that applies a child; returns the number of reconciles. */
  function startApplying(environment: MemoryEnvironment, ignoreOwnWrites: boolean) {
    const runs: string[] = []
    startController(
      (builder) =>
        builder
          .watches(ConfigMap, (object) => [keyOf(object)], { ignoreOwnWrites })
          .reconcile(async ({ spec }, ctx) => {
            runs.push(spec.host)
            await ctx.apply(ConfigMap, child({ host: spec.host }))
          }),
      {},
      environment,
    )
    return runs
  }

  it('does not reconcile for its own writes, but for those of other clients', async () => {
    for (const ignoreOwnWrites of [true, false]) {
      const environment = memoryEnvironment()
      const { cluster, clock } = environment
      cluster.put(Route, route('a'))
      const runs = startApplying(environment, ignoreOwnWrites)
      await clock.advance(0)
      expect(runs).toHaveLength(ignoreOwnWrites ? 1 : 2)
      cluster.put(ConfigMap, child({ host: 'foreign' }))
      await clock.advance(0)
      expect(runs).toHaveLength(ignoreOwnWrites ? 2 : 4)
      expect(cluster.informers.get(ConfigMap, 'web/a')?.data).toEqual({ host: 'a.test' })
      cluster.remove(ConfigMap, 'web/a')
      await clock.advance(0)
      expect(cluster.informers.get(ConfigMap, 'web/a')?.data).toEqual({ host: 'a.test' })
    }
  })

  it('loses no change of other clients during an own write in flight, also when that write fails', async () => {
    for (const isRefused of [true, false]) {
      const environment = memoryEnvironment()
      const { cluster, clock } = environment
      cluster.put(Route, route('a'))
      let isFirst = true
      cluster.intercept = ({ verb }) => {
        if (verb !== 'apply' || !isFirst) return
        isFirst = false
        cluster.put(ConfigMap, child({ by: 'another client' }))
        if (isRefused) throw new Terminal('refused')
      }
      const runs = startApplying(environment, true)
      await clock.advance(1_000)
      expect(runs).toHaveLength(2)
    }
  })
})
