import { afterEach, describe, expect, it } from 'vitest'
import type { Context } from './context.ts'
import { LeadershipLost } from '../apply/write-fence.ts'
import { ConfigMap } from '../object/kinds.ts'
import { requeue, Terminal } from './reconcile-result.ts'
import { memoryEnvironment } from '../testing/memory/memory-environment.ts'
import { Route, route, startController, stopControllers, metricOf } from '../testing/memory/started-controller.ts'

afterEach(stopControllers)

describe('a controller whose reconcile fails or does not end', () => {
  it('retries with back-off after an error, not after Terminal, and after a requeue', async () => {
    const attempts: [string, number][] = []
    const { environment } = startController((builder) =>
      builder.reconcile(async (_object, { key }) => {
        attempts.push([key, environment.clock.monotonic()])
        const count = attempts.filter(([each]) => each === key).length
        if (key === 'web/failing' && count <= 3) throw new Error('not yet')
        if (key === 'web/broken' && count === 1) throw new TypeError('x is undefined')
        if (key === 'web/wrong') throw new Terminal('host is not a domain')
        if (key === 'web/later') return requeue('1s')
        return undefined
      }),
    )
    const { cluster, clock } = environment
    await clock.advance(0)
    for (const name of ['failing', 'broken', 'wrong', 'later']) cluster.put(Route, route(name))
    await clock.advance(2_500)
    const times = (name: string) => attempts.filter(([key]) => key === `web/${name}`).map(([, at]) => at)
    expect(times('failing')).toEqual([0, 5, 15, 35])
    expect(times('broken')).toEqual([0, 5])
    expect(times('wrong')).toEqual([0])
    expect(times('later')).toEqual([0, 1_000, 2_000])
    const total = await metricOf(environment, 'controller_runtime_reconcile_total')
    // The counters are updated from the samples collected since the last scrape.
    expect(await metricOf(environment, 'controller_runtime_reconcile_total')).toBe(total)
    expect(total).toContain('result="error"} 5')
    expect(total).toContain('result="success"} 2')
    expect(total).toContain('result="requeue_after"} 3')
    expect(await metricOf(environment, 'controller_runtime_reconcile_panics_total')).toContain('} 1')
    expect(await metricOf(environment, 'controller_runtime_terminal_reconcile_errors_total')).toContain('} 1')
    expect(await metricOf(environment, 'controller_runtime_reconcile_time_seconds')).toContain(
      '_count{controller="routes"} 10',
    )
  })

  it('aborts a reconcile at its timeout, and retries it', async () => {
    const aborted: unknown[] = []
    const { environment } = startController(
      (builder) =>
        builder.reconcile(async (_object, { signal }) => {
          await new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason as Error)),
          ).catch((error: unknown) => aborted.push(error))
        }),
      { timeout: '30s' },
    )
    environment.cluster.put(Route, route('a'))
    await environment.clock.advance(30_000)
    expect(aborted).toEqual([expect.objectContaining({ code: 'RECONCILE_TIMEOUT' })])
    expect(await metricOf(environment, 'controller_runtime_reconcile_timeouts_total')).toContain('} 1')
    await environment.clock.advance(40_000)
    expect(aborted).toHaveLength(2)
    // It ended when its signal aborted, so it is not abandoned.
    expect(environment.cluster.lines.join('')).not.toContain('is abandoned')
  })

  it('abandons a reconciler that never returns, frees its worker, and prevents it from writing', async () => {
    const contexts: Context[] = []
    const seen: string[] = []
    const { environment } = startController(
      (builder) =>
        builder.reconcile(async (_object, context) => {
          seen.push(context.key)
          contexts.push(context)
          if (contexts.length === 1) await new Promise(() => undefined)
        }),
      { concurrency: 1, timeout: '30s' },
    )
    const { cluster, clock } = environment
    cluster.put(Route, route('stuck'))
    await clock.advance(0)
    cluster.put(Route, route('other'))
    await clock.advance(34_999)
    expect(seen).toEqual(['web/stuck'])
    await clock.advance(1)
    await clock.advance(5)
    expect(seen).toEqual(['web/stuck', 'web/other', 'web/stuck'])
    const [zombie] = contexts
    await expect(zombie?.apply(ConfigMap, { metadata: { name: 'x' } })).rejects.toThrow('was stopped after 30000 ms')
    await expect(zombie?.client.delete(Route, 'web/other')).rejects.toThrow('was stopped')
    expect(cluster.requests).toEqual([])
  })

  it('prevents code left running by a reconcile from writing after it ended', async () => {
    let late: Context | undefined
    const { environment } = startController((builder) =>
      builder.reconcile(async (_object, context) => void (late = context)),
    )
    environment.cluster.put(Route, route('a'))
    await environment.clock.advance(0)
    await expect(late?.apply(ConfigMap, { metadata: { name: 'x' } })).rejects.toThrow('has ended')
    expect(environment.cluster.requests).toEqual([])
  })

  it('does not count or retry what stopped because leadership was lost', async () => {
    const { environment } = startController((builder) =>
      builder.reconcile(async () => {
        throw new LeadershipLost('sys/edge', 'test')
      }),
    )
    environment.cluster.put(Route, route('a'))
    await environment.clock.advance(60_000)
    expect(await metricOf(environment, 'controller_runtime_reconcile_total')).toContain('result="error"} 0')
    expect(environment.cluster.lines.join()).not.toContain('reconcile failed')
  })

  it('resets the back-off after a success and after a requeue', async () => {
    for (const how of ['success', 'requeue']) {
      const environment = memoryEnvironment()
      const { cluster, clock } = environment
      cluster.put(Route, route('a'))
      const at: number[] = []
      startController(
        (builder) =>
          builder.reconcile(async () => {
            at.push(clock.monotonic())
            if (at.length !== 5) throw new Error('fails')
            // The key is queued again while it runs: the queue keeps its state.
            if (how === 'success') cluster.put(Route, route('a', 'changed.test'))
            else return requeue('1m')
            return undefined
          }),
        {},
        environment,
      )
      await clock.advance(61_000)
      const delays = at.map((each, index) => each - (at[index - 1] ?? each))
      expect(delays.slice(0, 5)).toEqual([0, 5, 10, 20, 40])
      expect(delays.slice(5, 8), how).toEqual([how === 'success' ? 0 : 60_000, 5, 10])
    }
  })
})
