import { exampleState } from '../../../testing/example.ts'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { flowOf } from './flow-blocks.ts'
import { columnsOf, type Lengths, layoutOf, lengthsOf } from './flow-layout.ts'

const { blocks } = flowOf(exampleState.hosts)
const NAMES = ['name', 'answer', 'word', 'cluster', 'gateway', 'service'] as const

describe('the layout of the flow', () => {
  it('keeps its columns in order, apart, and within the width', () => {
    const length = fc.integer({ min: 1, max: 253 })
    const lengths: fc.Arbitrary<Lengths> = fc.record({
      name: length,
      answer: length,
      word: length,
      cluster: length,
      gateway: length,
      service: length,
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 330, max: 3000 }),
        fc.double({ min: 6, max: 9, noNaN: true }),
        lengths,
        (width, charPx, longest) => {
          const columns = columnsOf(width, charPx, longest)
          let end = 0
          for (const name of NAMES) {
            const span = columns[name]
            if (span === undefined) continue
            expect(span.x).toBeGreaterThanOrEqual(end)
            end = span.x + span.width
          }
          expect(end).toBeLessThanOrEqual(Math.max(width, 330) + 1)
        },
      ),
    )
  })

  it('shows every column at the width of a desk, and the name above the bands at that of a phone', () => {
    const desk = columnsOf(698, 7.2, lengthsOf(blocks))
    expect(NAMES.filter((name) => desk[name] === undefined)).toEqual([])
    const phone = columnsOf(336, 7.2, lengthsOf(blocks))
    expect(phone.isStacked).toBe(true)
    expect(NAMES.filter((name) => phone[name] !== undefined)).toEqual(['answer', 'word', 'cluster'])
  })

  it('makes bands as wide as their shares; dashed when held, hatched when in caches', () => {
    const columns = columnsOf(698, 7.2, lengthsOf(blocks))
    const [held, shop] = blocks.map((block) => layoutOf(block, columns))
    expect(held?.paths.every(({ isHeld }) => isHeld)).toBe(true)
    const looks = shop?.paths.map(({ look, width }) => [look, width])
    expect(looks).toEqual([
      ['answered', 6.9],
      ['answered', 6.9],
      ['draining', 4.1],
      ['draining', 4.1],
      ['cached', 0],
      ['cached', 0],
    ])
  })
})
