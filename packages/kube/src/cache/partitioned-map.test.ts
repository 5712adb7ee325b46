import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PartitionedMap } from './partitioned-map.ts'

type Step = readonly ['set', string, number] | readonly ['delete', string]

describe('a partitioned map', () => {
  it('behaves like a Map, for any number of partitions', () => {
    // Few enough keys to cause repeated operations on one key, enough for several splits.
    const key = fc.integer({ min: 0, max: 4_000 }).map((n) => `team-${n % 7}/host-${n}`)
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.tuple(fc.constant('set' as const), key, fc.nat()) },
      { weight: 1, arbitrary: fc.tuple(fc.constant('delete' as const), key) },
    )
    const property = fc.property(fc.array(step, { maxLength: 200 }), fc.nat({ max: 3_000 }), (steps: Step[], known) => {
      const [partitioned, plain] = [new PartitionedMap<number>(), new Map<string, number>()]
      for (let n = 0; n < known; n++) {
        partitioned.set(`team-${n % 7}/host-${n}`, n)
        plain.set(`team-${n % 7}/host-${n}`, n)
      }
      for (const step of steps) {
        if (step[0] === 'set') {
          partitioned.set(step[1], step[2])
          plain.set(step[1], step[2])
        } else expect(partitioned.delete(step[1])).toBe(plain.delete(step[1]))
        expect([partitioned.size, partitioned.get(step[1]), partitioned.has(step[1])]).toEqual([
          plain.size,
          plain.get(step[1]),
          plain.has(step[1]),
        ])
      }
      expect(new Map(partitioned)).toEqual(plain)
      expect([...partitioned.keys()].toSorted()).toEqual([...plain.keys()].toSorted())
      expect(partitioned.values()).toHaveLength(plain.size)
      expect(new Set(partitioned.values())).toEqual(new Set(plain.values()))
      const copied = partitioned.copy()
      partitioned.set('another/one', 1)
      expect(new Map(copied)).toEqual(plain)
    })
    fc.assert(property, { numRuns: 40 })
  })

  it('keeps partitions about the same size, for any number of entries and for similar keys', () => {
    for (const nameOf of [(i: number) => `web/app-${i}`, (i: number) => `ns-${i}/web`, (i: number) => `${i}.a.test`]) {
      const map = new PartitionedMap<number>()
      for (let i = 0; i < 30_000; i++) map.set(nameOf(i), i)
      expect(map.largestPart).toBeLessThan(4 * 128)
    }
  })

  it('keeps the order of a small set', () => {
    const map = new PartitionedMap<number>()
    for (const key of ['c', 'a', 'b']) map.set(key, 1)
    expect([...map.keys()]).toEqual(['c', 'a', 'b'])
  })
})
