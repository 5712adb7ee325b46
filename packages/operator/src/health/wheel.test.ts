import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { createWheel, SLOT_MS } from './wheel.ts'

describe('the timing wheel', () => {
  it('runs each key once, never early and at most one slot late', async () => {
    const clock = fakeClock()
    const ran: [string, number][] = []
    const wheel = createWheel(clock, (key) => ran.push([key, clock.monotonic()]))
    for (const delayMs of [0, 10, 240, 250, 251, 1_000]) wheel.schedule(`${delayMs}`, delayMs)
    await clock.advance(3_000)
    expect(ran.map(([key]) => Number(key))).toEqual([0, 10, 240, 250, 251, 1_000])
    for (const [key, atMs] of ran) {
      expect(atMs).toBeGreaterThanOrEqual(Number(key))
      expect(atMs).toBeLessThanOrEqual(Number(key) + SLOT_MS)
    }
    expect(clock.pending).toBe(0)
  })

  it('sets timers only for slots that have keys, and runs what a key schedules while it runs', async () => {
    const clock = fakeClock()
    const ran: [string, number][] = []
    let wakes = 0
    const counting = {
      ...clock,
      after: (ms: number, run: () => void) =>
        clock.after(ms, () => {
          wakes++
          run()
        }),
    }
    const wheel = createWheel(counting, (key) => {
      ran.push([key, clock.monotonic()])
      if (key === 'first') wheel.schedule('again', 0)
    })
    wheel.schedule('late', 60_000)
    wheel.schedule('first', 1_000)
    await clock.advance(120_000)
    expect(ran.map(([key]) => key)).toEqual(['first', 'again', 'late'])
    expect(wakes).toBeLessThanOrEqual(3)
  })

  it('keeps only the last due time of a key, and none of a cancelled one', async () => {
    const clock = fakeClock()
    const ran: string[] = []
    const wheel = createWheel(clock, (key) => ran.push(key))
    wheel.schedule('a', 100)
    wheel.schedule('a', 500)
    wheel.schedule('b', 100)
    wheel.cancel('b')
    await clock.advance(400)
    expect(ran).toEqual([])
    await clock.advance(400)
    expect(ran).toEqual(['a'])
  })

  it('runs what it missed while the process was stalled, and what is scheduled after an idle time', async () => {
    const clock = fakeClock()
    const ran: string[] = []
    const wheel = createWheel(clock, (key) => ran.push(key))
    wheel.schedule('a', 100)
    wheel.schedule('b', 5_000)
    clock.stall(60_000)
    await clock.next()
    expect(ran).toEqual(['a', 'b'])
    await clock.advance(100_000)
    wheel.schedule('c', 100)
    await clock.advance(200)
    expect(ran).toEqual(['a', 'b', 'c'])
    wheel.schedule('d', 100)
    wheel.stop()
    await clock.advance(1_000)
    expect(ran).toEqual(['a', 'b', 'c'])
  })
})
