import { afterEach, expect, it, vi } from 'vitest'
import { systemClock } from './clock.ts'

afterEach(() => vi.restoreAllMocks())

it('a timer longer than Node allows is limited to the maximum, not 1 ms', () => {
  const timers = vi.spyOn(globalThis, 'setTimeout')
  systemClock.after(3_000_000_000, () => undefined)()
  systemClock.after(Infinity, () => undefined)()
  systemClock.after(5, () => undefined)()
  expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([2 ** 31 - 1, 2 ** 31 - 1, 5])
})

it('a timer without a number is an error, not 1 ms', () => {
  expect(() => systemClock.after(Number.NaN, () => undefined)).toThrow('milliseconds')
})
