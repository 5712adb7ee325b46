import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createQueue, LOW_PRIORITY, type Queue } from './queue.ts'
import { fakeClock } from '../testing/clock.ts'

function drain(queue: Queue): string[] {
  const keys: string[] = []
  for (let key = queue.take(); key !== undefined; key = queue.take()) {
    keys.push(key)
    queue.done(key)
  }
  return keys
}

describe('queue', () => {
  it('returns a key once however often it was added, in FIFO order', () => {
    const queue = createQueue({ clock: fakeClock() })
    for (const key of ['b', 'a', 'b', 'c', 'a']) queue.add(key)
    expect(queue.size).toBe(3)
    expect(drain(queue)).toEqual(['b', 'a', 'c'])
  })

  it('never returns a key that is being processed, and runs it again when it was added meanwhile', () => {
    const queue = createQueue({ clock: fakeClock() })
    queue.add('a')
    expect(queue.take()).toBe('a')
    queue.add('a')
    queue.add('a')
    expect(queue.take()).toBeUndefined()
    queue.done('a')
    expect(queue.take()).toBe('a')
    queue.done('a')
    expect(queue.take()).toBeUndefined()
  })

  it('keeps the position of a key added while it was being processed', () => {
    const queue = createQueue({ clock: fakeClock() })
    queue.add('a')
    queue.take()
    queue.add('a')
    queue.add('b')
    queue.done('a')
    expect(drain(queue)).toEqual(['a', 'b'])
  })

  it('serves the highest priority first, and an add raises but never lowers it', () => {
    const queue = createQueue({ clock: fakeClock() })
    queue.add('listed', { priority: LOW_PRIORITY })
    queue.add('changed', { priority: LOW_PRIORITY })
    queue.add('urgent', { priority: 10 })
    queue.add('normal')
    queue.add('changed')
    queue.add('urgent', { priority: LOW_PRIORITY })
    expect(drain(queue)).toEqual(['urgent', 'normal', 'changed', 'listed'])
  })

  it('waits for the earliest requested time', async () => {
    const clock = fakeClock()
    let woken = 0
    const queue = createQueue({ clock, onReady: () => woken++ })
    queue.add('a', { afterMs: 100 })
    queue.add('a', { afterMs: 50 })
    queue.add('a', { afterMs: 200 })
    queue.add('b', { afterMs: 60 })
    await clock.advance(49)
    expect([queue.take(), woken]).toEqual([undefined, 0])
    await clock.advance(1)
    expect([queue.size, woken]).toEqual([1, 1])
    expect(drain(queue)).toEqual(['a'])
    await clock.advance(200)
    expect(drain(queue)).toEqual(['b'])
    expect(queue.tracked).toBe(0)
  })

  it('keeps the higher priority of a delayed key that is added with an earlier time', () => {
    const queue = createQueue({ clock: fakeClock() })
    queue.add('normal')
    queue.add('high', { priority: 5, afterMs: 100 })
    queue.add('high', { priority: LOW_PRIORITY })
    expect(drain(queue)).toEqual(['high', 'normal'])
  })

  it('supports delays longer than the maximum of a Node timer', async () => {
    const clock = fakeClock()
    const limitMs = 2 ** 31 - 1
    const delays: number[] = []
    const after = (ms: number, run: () => void) => {
      delays.push(ms)
      return clock.after(ms, run)
    }
    const queue = createQueue({ clock: { ...clock, after } })
    queue.add('a', { afterMs: 2 * limitMs })
    await clock.advance(limitMs)
    expect(queue.take()).toBeUndefined()
    await clock.advance(limitMs)
    expect(queue.take()).toBe('a')
    expect(Math.max(...delays)).toBe(limitMs)
  })

  it('backs off 5 ms doubling to 1000 s, and starts again after a success', () => {
    const clock = fakeClock()
    const queue = createQueue({ clock })
    const delays: number[] = []
    queue.add('a')
    for (let failure = 0; failure < 20; failure++) {
      expect(queue.take()).toBe('a')
      const delayMs = queue.retry('a')
      queue.done('a')
      clock.stall(delayMs - 1)
      expect(queue.take()).toBeUndefined()
      clock.stall(1)
      delays.push(delayMs)
    }
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40])
    expect(delays.at(-1)).toBe(1_000_000)
    expect(queue.take()).toBe('a')
    queue.forget('a')
    expect(queue.retry('a')).toBe(5)
  })

  it('runs a failing key at once when something about it changed', () => {
    const queue = createQueue({ clock: fakeClock() })
    queue.add('a')
    queue.take()
    queue.add('a')
    queue.retry('a')
    queue.done('a')
    expect(queue.take()).toBe('a')
  })

  it('keeps the priority of a run for its retry and its requeue', () => {
    const clock = fakeClock()
    const queue = createQueue({ clock })
    queue.add('low', { priority: LOW_PRIORITY })
    queue.add('high', { priority: 5 })
    expect(queue.take()).toBe('high')
    queue.add('high', { priority: LOW_PRIORITY, afterMs: 5 })
    queue.retry('high')
    queue.done('high')
    expect(queue.take()).toBe('low')
    queue.requeue('low', 5)
    queue.done('low')
    queue.add('normal', { afterMs: 5 })
    clock.stall(10)
    expect(drain(queue)).toEqual(['high', 'normal', 'low'])
  })

  it('removes keys that are done, also failed ones, so that memory is bounded by pending keys', () => {
    const queue = createQueue({ clock: fakeClock() })
    for (let index = 0; index < 1000; index++) queue.add(`k${index}`)
    for (let key = queue.take(); key !== undefined; key = queue.take()) {
      if (key === 'k7') queue.retry(key)
      queue.done(key)
    }
    expect(queue.tracked).toBe(1)
  })

  it('drops pending keys when closed, and returns no more', async () => {
    const clock = fakeClock()
    const queue = createQueue({ clock })
    queue.add('out')
    queue.take()
    queue.add('ready')
    queue.add('later', { afterMs: 5 })
    queue.close()
    queue.add('new')
    queue.retry('out')
    expect([queue.tracked, clock.pending]).toEqual([1, 0])
    queue.done('out')
    await clock.advance(10)
    expect([queue.take(), queue.tracked]).toEqual([undefined, 0])
  })

  it('reports its depth and how long keys have been processed', () => {
    const clock = fakeClock()
    const seen: (string | number)[] = []
    const queue = createQueue({
      clock,
      observer: {
        added: () => seen.push('added'),
        retried: () => seen.push('retried'),
        taken: (waitedMs) => seen.push('taken', waitedMs),
        finished: (workedMs) => seen.push('finished', workedMs),
      },
    })
    queue.add('a')
    queue.add('a')
    clock.stall(3)
    queue.take()
    clock.stall(4)
    queue.add('b', { priority: LOW_PRIORITY })
    expect(queue.stats()).toEqual({ depth: new Map([[LOW_PRIORITY, 1]]), unfinishedMs: 4, longestMs: 4 })
    queue.retry('a')
    queue.done('a')
    expect(seen).toEqual(['added', 'taken', 3, 'added', 'added', 'retried', 'finished', 4])
  })

  it('holds its guarantees under any sequence of calls', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd')
    const step = fc.oneof(
      fc.record({ type: fc.constant('add' as const), key, priority: fc.constantFrom(-100, 0, 7), afterMs: fc.nat(20) }),
      fc.record({ type: fc.constant('take' as const) }),
      fc.record({ type: fc.constant('done' as const), key, outcome: fc.constantFrom('ok', 'fail', 'later') }),
      fc.record({ type: fc.constant('wait' as const), ms: fc.nat(30) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const clock = fakeClock()
        const queue = createQueue({ clock })
        const out = new Set<string>()
        /** Earliest time at which each key must run. */
        const owed = new Map<string, number>()
        const owe = (key: string, afterMs: number) => {
          owed.set(key, Math.min(owed.get(key) ?? Infinity, clock.monotonic() + afterMs))
        }
        const take = () => {
          const taken = queue.take()
          const due = [...owed].filter(([key, at]) => at <= clock.monotonic() && !out.has(key))
          expect(taken === undefined ? due : []).toEqual([])
          if (taken === undefined) return
          expect(out.has(taken)).toBe(false)
          expect(owed.get(taken)).toBeLessThanOrEqual(clock.monotonic())
          owed.delete(taken)
          out.add(taken)
        }
        const finish = (key: string, outcome: string) => {
          if (!out.delete(key)) return
          if (outcome === 'fail') owe(key, queue.retry(key))
          else queue.forget(key)
          if (outcome === 'later') {
            queue.requeue(key, 10)
            owe(key, 10)
          }
          queue.done(key)
        }
        for (const step of steps) {
          if (step.type === 'add') {
            queue.add(step.key, step)
            owe(step.key, step.afterMs)
          } else if (step.type === 'take') take()
          else if (step.type === 'done') finish(step.key, step.outcome)
          else clock.stall(step.ms)
          expect(queue.tracked).toBe(new Set([...out, ...owed.keys()]).size)
        }
        for (const key of out) finish(key, 'ok')
        clock.stall(2_000_000)
        for (let left = owed.size; left > 0; left--) take()
        expect(owed.size).toBe(0)
      }),
      { numRuns: 300 },
    )
  })
})
