import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { visibleRows } from './row-range.ts'

const heights = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 300 })

describe('the visible rows of a list', () => {
  it('are all that touch the window, and the heights of the others are kept', () => {
    fc.assert(
      fc.property(
        heights,
        fc.integer({ min: -500, max: 30_000 }),
        fc.integer({ min: 1, max: 2000 }),
        (rows, top, size) => {
          const offsets = [0]
          for (const row of rows) offsets.push((offsets.at(-1) ?? 0) + row)
          const { from, to, above, below } = visibleRows(offsets, top, top + size)
          const shown = rows.slice(from, to).reduce((sum, row) => sum + row, 0)
          expect(above + shown + below).toBe(offsets.at(-1))
          for (const [index] of rows.entries()) {
            const touches = (offsets[index] ?? 0) < top + size && (offsets[index + 1] ?? 0) > top
            if (touches) expect(index >= from && index < to).toBe(true)
          }
        },
      ),
    )
  })

  it('are few of many', () => {
    const offsets = Array.from({ length: 10_001 }, (_, index) => index * 30)
    const { from, to } = visibleRows(offsets, 150_000, 150_900)
    expect(to - from).toBeLessThan(40)
  })
})
