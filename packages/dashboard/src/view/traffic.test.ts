import { expect, it } from 'vitest'
import { type AnswerCounts, TrafficRates } from './traffic.ts'

it('requests and errors a second follow the counters, also over a restart and a stop', () => {
  let counts: AnswerCounts | undefined = new Map([['2xx', 100]])
  const rates = new TrafficRates(() => new Map([['eu1', counts]]))
  const step = (atMs: number, next: AnswerCounts | undefined) => {
    counts = next
    return [[...rates.take(atMs)], rates.of('eu1')]
  }
  expect(step(0, counts)).toEqual([[], undefined])
  const first = { requestsPerSecond: 20, errorsPerSecond: 0 }
  expect(step(2_000, new Map([['2xx', 140]]))).toEqual([['eu1'], first])
  // Too soon for another rate, and the same rate.
  expect(step(3_000, new Map([['2xx', 200]]))).toEqual([[], first])
  expect(step(4_000, new Map([['2xx', 180]]))).toEqual([[], first])
  const failing = { requestsPerSecond: 1.7, errorsPerSecond: 0.7 }
  expect(
    step(
      7_000,
      new Map([
        ['2xx', 183],
        ['5xx', 2],
      ]),
    ),
  ).toEqual([['eu1'], failing])
  const restarted = { requestsPerSecond: 5, errorsPerSecond: 5 }
  expect(step(9_000, new Map([['5xx', 10]]))).toEqual([['eu1'], restarted])
  expect(step(11_000, undefined)).toEqual([['eu1'], undefined])
})
