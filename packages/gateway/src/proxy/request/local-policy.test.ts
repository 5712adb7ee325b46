import { describe, expect, it } from 'vitest'
import { manualClock } from '../../../testing/proxy-fixture.ts'
import { RateLimits } from './local-policy.ts'

const LIMIT = { tokens: 2, burst: 3, intervalMs: 1_000, status: 429, headers: [] }

describe('local rate limits', () => {
  const taken = (limits: RateLimits, key: string) => {
    let count = 0
    while (count < 100 && limits.take(key, LIMIT)) count++
    return count
  }

  it('allow a burst, then as many requests in each interval as there are tokens, and never more than a burst', () => {
    const clock = manualClock()
    const limits = new RateLimits(clock)
    expect(taken(limits, 'a')).toBe(3)
    clock.advance(999)
    expect(taken(limits, 'a')).toBe(0)
    clock.advance(1)
    expect(taken(limits, 'a')).toBe(2)
    clock.advance(60_000)
    expect(taken(limits, 'a')).toBe(3)
  })

  it('are counted separately, and forgotten when they are gone', () => {
    const limits = new RateLimits(manualClock())
    for (const key of ['a', 'b']) expect(taken(limits, key)).toBe(3)
    limits.retain(new Set(['b']))
    expect(taken(limits, 'a')).toBe(3)
    expect(taken(limits, 'b')).toBe(0)
  })
})
