import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { memoryEnvironment } from '../testing/memory/memory-environment.ts'
import type { Context } from './context.ts'
import { createWorkers } from './workers.ts'
import type { Next } from './reconcile-result.ts'

function startWorkers(run: (context: Context) => Promise<Next>, kill = new AbortController()) {
  const environment = memoryEnvironment()
  const workers = createWorkers({ name: 'test', concurrency: 2, timeoutMs: 60_000, run }, environment)
  const stop = new AbortController()
  const running = workers.run({ stop: stop.signal, kill: kill.signal })
  return { clock: environment.clock, queue: workers.queue, stop, kill, running }
}

describe('workers', () => {
  it('leave no timer behind a reconcile, and no listener behind themselves', async () => {
    const { clock, queue, stop, kill, running } = startWorkers(async () => undefined)
    for (const key of ['a', 'b', 'c']) queue.add(key)
    await clock.advance(0)
    expect([queue.tracked, clock.pending]).toEqual([0, 0])
    stop.abort()
    await running
    expect(getEventListeners(kill.signal, 'abort')).toHaveLength(0)
  })

  it('abort what runs when they are stopped after they were killed', async () => {
    const kill = new AbortController()
    kill.abort(new Error('killed'))
    const reasons: unknown[] = []
    const { clock, queue, stop, running } = startWorkers(
      async ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason)
            resolve(undefined)
          })
        }),
      kill,
    )
    queue.add('a')
    await clock.advance(0)
    stop.abort()
    await clock.advance(0)
    expect(reasons).toEqual([new Error('killed')])
    await running
  })
})
