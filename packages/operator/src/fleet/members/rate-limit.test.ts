import { describe, expect, it } from 'vitest'
import { RateLimit } from './rate-limit.ts'

describe('the limit of writes to a member', () => {
  it('lets a second of writes through at once, and then the rate', () => {
    const limit = new RateLimit(20)
    const waits = Array.from({ length: 23 }, (_, index) => limit.take(`k${index}`, 1_000))
    expect(waits).toEqual([...Array.from({ length: 20 }, () => 0), 50, 100, 150])
    // After a pause as many at once again.
    const later = Array.from({ length: 21 }, (_, index) => limit.take(`l${index}`, 60_000))
    expect(later.filter((waitMs) => waitMs === 0)).toHaveLength(20)
  })

  it('asks each of many waiting keys twice, not once for every token', () => {
    const limit = new RateLimit(20)
    const queue = Array.from({ length: 1_000 }, (_, index) => ({ key: `k${index}`, atMs: 0 }))
    let tries = 0
    let lastMs = 0
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      tries++
      const waitMs = limit.take(next.key, next.atMs)
      if (waitMs === 0) lastMs = Math.max(lastMs, next.atMs)
      else queue.push({ key: next.key, atMs: next.atMs + waitMs })
    }
    expect(tries).toBe(1_980)
    expect(lastMs).toBe(49_000)
  })

  it('gives the time of a key to that key alone, until it is released', () => {
    const limit = new RateLimit(1)
    expect([limit.take('a', 0), limit.take('b', 0), limit.waitMs('b', 400)]).toEqual([0, 1_000, 600])
    expect([limit.take('b', 400), limit.take('c', 1_000), limit.take('b', 1_000)]).toEqual([600, 1_000, 0])
    limit.release('c')
    expect([limit.waitMs('c', 1_500), limit.take('c', 9_000)]).toEqual([0, 0])
  })
})
