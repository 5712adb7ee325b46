import { describe, expect, it } from 'vitest'
import { Pace } from './pace.ts'

/** Times at which something that is always wanted happens, looked at each `tickMs`. */
function timesOf(pace: Pace, tickMs: number, untilMs: number): number[] {
  const times: number[] = []
  for (let now = 0; now < untilMs; now += tickMs) {
    if (!pace.isOpen(now)) continue
    pace.note(now)
    times.push(now)
  }
  return times
}

describe('a pace', () => {
  it('lets a burst pass at once, then one in each period', () => {
    expect(timesOf(new Pace(2, 250), 10, 1_000)).toEqual([0, 10, 250, 500, 750])
  })

  it('has the burst again after a quiet time', () => {
    const pace = new Pace(2, 250)
    timesOf(pace, 10, 1_000)
    expect(pace.isOpen(1_500)).toBe(true)
    pace.note(1_500)
    expect(pace.isOpen(1_500)).toBe(true)
    pace.note(1_500)
    expect(pace.isOpen(1_500)).toBe(false)
  })

  it.each([1, 7, 25, 50, 90])('passes at most five in any second, looked at each %d ms', (tickMs) => {
    const times = timesOf(new Pace(2, 260), tickMs, 20_000)
    const most = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))
    expect(most).toBeLessThanOrEqual(5)
  })
})
