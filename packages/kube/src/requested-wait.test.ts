import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_REQUESTED_WAIT_MS, requestedWaitMs, spreadWaitMs } from './requested-wait.ts'

const NOW = Date.parse('2030-01-01T00:00:00Z')

describe('a wait requested by a server', () => {
  it.each([
    [1, 1000],
    ['7', 7000],
    [' 7 ', 7000],
    [0, 0],
    [3_000_000, MAX_REQUESTED_WAIT_MS],
    ['99999999999999999999', MAX_REQUESTED_WAIT_MS],
    [Infinity, MAX_REQUESTED_WAIT_MS],
    ['Tue, 01 Jan 2030 00:00:30 GMT', 30_000],
    ['Mon, 31 Dec 2029 00:00:00 GMT', 0],
    ['Tue, 01 Jan 2999 00:00:30 GMT', MAX_REQUESTED_WAIT_MS],
    ['x', undefined],
    ['', undefined],
    ['-1', undefined],
    [-1, undefined],
    [Number.NaN, undefined],
    ['1e9', undefined],
    ['Tue, 99 Jan 2030 00:00:30 GMT', undefined],
    [null, undefined],
    [undefined, undefined],
    [{ seconds: 1 }, undefined],
    [['1'], undefined],
  ])('%j is %s ms', (value, ms) => {
    expect(requestedWaitMs(value, NOW)).toBe(ms)
  })

  it('fits a timer, for any requested value', () => {
    const value = fc.oneof(fc.anything(), fc.double(), fc.bigInt({ min: 0n }).map(String), fc.date().map(String))
    fc.assert(
      fc.property(value, fc.double({ min: 0, max: 0.999, noNaN: true }), (value, random) => {
        const ms = requestedWaitMs(value, NOW)
        fc.pre(ms !== undefined)
        const spread = spreadWaitMs(ms, random)
        expect(spread).toBeGreaterThanOrEqual(ms)
        expect(spread).toBeLessThan(2 ** 31)
      }),
    )
  })
})
