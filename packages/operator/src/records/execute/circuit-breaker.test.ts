import { fakeClock } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { createBreaker } from './circuit-breaker.ts'

it('a success clears the count, the error and the time of the first failure', async () => {
  const clock = fakeClock()
  const breaker = createBreaker(clock)
  const fail = (times: number) =>
    Array.from({ length: times }, () => breaker.failed('ProviderUnavailable', 'no answer'))
  fail(5)
  expect([breaker.allows(), breaker.waitMs, breaker.status.since]).toEqual([false, 60_000, clock.now()])
  await clock.advance(60_000)
  expect(breaker.allows()).toBe(true)
  breaker.succeeded()
  expect(breaker.status).toEqual({ isOpen: false, failures: 0, code: undefined, message: undefined, since: undefined })
  fail(4)
  expect([breaker.allows(), breaker.status.since]).toEqual([true, clock.now()])
})
