import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SortedKeys } from './sorted-keys.ts'

const key = fc.string({ minLength: 0, maxLength: 4 })

describe('SortedKeys', () => {
  it('is a sorted set after any sequence of inserts and deletes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), key), { maxLength: 1500 }), key, key, (steps, from, to) => {
        const keys = new SortedKeys()
        const model = new Set<string>()
        for (const [isAdd, one] of steps) {
          if (isAdd) keys.add(one)
          else keys.delete(one)
          if (isAdd) model.add(one)
          else model.delete(one)
        }
        const sorted = [...model].sort()
        expect([...keys.range('')]).toEqual(sorted)
        expect(keys.size).toBe(model.size)
        const expected = sorted.filter((one) => one >= from && one < to)
        expect([...keys.range(from, to)]).toEqual(expected)
        if (from <= to) expect(keys.count(from, to)).toBe(expected.length)
      }),
      { numRuns: 60 },
    )
  })

  it('keeps its order over many chunks', () => {
    const keys = new SortedKeys()
    const all = Array.from({ length: 5000 }, (_, index) => `k${(index * 7919) % 5000}`)
    for (const one of all) keys.add(one)
    expect([...keys.range('')]).toEqual([...all].sort())
    expect(keys.count('k2')).toBe(all.filter((one) => one >= 'k2').length)
  })
})
