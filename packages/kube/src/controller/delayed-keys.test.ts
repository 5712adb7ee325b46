import { describe, expect, it } from 'vitest'
import { fakeClock } from '../testing/clock.ts'
import { DelayedKeys } from './delayed-keys.ts'

function setUp() {
  const clock = fakeClock()
  const due: string[] = []
  const keys = new DelayedKeys({
    clock,
    backoffBaseMs: 100,
    backoffLimitMs: 1_000,
    onDue: (together) => due.push(`${clock.monotonic()} ${together.join(' ')}`),
  })
  return { clock, due, keys }
}

describe('delayed keys', () => {
  it('are due once, at the earlier of two times', async () => {
    const { clock, due, keys } = setUp()
    keys.add(['a', 'b'], 500)
    keys.add(['a', 'c'], 200)
    keys.add(['a'], 900)
    await clock.advance(5_000)
    expect(due).toEqual(['200 a c', '500 b'])
  })

  it('are not due after they were processed', async () => {
    const { clock, due, keys } = setUp()
    keys.add(['a', 'b'], 100)
    keys.clear('a')
    await clock.advance(1_000)
    expect(due).toEqual(['100 b'])
  })

  it('double their back-off up to its limit, until they are forgotten', () => {
    const { keys } = setUp()
    expect([1, 2, 3, 4, 5, 6].map(() => keys.retry(['a']))).toEqual([100, 200, 400, 800, 1_000, 1_000])
    keys.forget('a')
    expect(keys.retry(['a'])).toBe(100)
  })

  it('forget the back-off of every key that did not fail', () => {
    const { keys } = setUp()
    keys.retry(['a', 'b'])
    keys.forgetExcept(new Set(['a']))
    expect([keys.retry(['a']), keys.retry(['b'])]).toEqual([200, 100])
  })

  it('have no timer after close, and take no key', async () => {
    const { clock, due, keys } = setUp()
    keys.add(['a'], 100)
    keys.close()
    keys.add(['b'], 100)
    keys.retry(['c'])
    expect(clock.pending).toBe(0)
    await clock.advance(1_000)
    expect(due).toEqual([])
  })
})
