import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deduplicate } from './deduplicate.ts'
import { orderItems } from './element-order.ts'

/** kube-apiserver's algorithm, step by step: an insertion sort whose comparison is "less" for unknown items. */
function sortSlowly(items: readonly string[], order: readonly string[]): string[] {
  const isLess = (a: string, b: string): boolean =>
    order.includes(a) && order.includes(b) ? order.indexOf(a) < order.indexOf(b) : true
  const result = [...items]
  for (let i = 1; i < result.length; i += 1) {
    for (let j = i; j > 0 && isLess(result[j] as string, result[j - 1] as string); j -= 1)
      [result[j - 1], result[j]] = [result[j] as string, result[j - 1] as string]
  }
  return result
}

function deduplicateSlowly(list: readonly string[]): string[] {
  const items = [...list]
  for (let i = 0; i < items.length; i += 1) {
    for (let j = i + 1; j < items.length;) {
      if (items[i] !== items[j]) {
        j += 1
        continue
      }
      const last = items.pop() as string
      if (j < items.length) items[j] = last
    }
  }
  return items
}

const words = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g'), { maxLength: 12 })

describe('order of merged lists', () => {
  it('is that of an insertion sort with the comparison of kube-apiserver', () => {
    fc.assert(
      fc.property(words, words, (items, order) => {
        expect(orderItems(items, [], order, [], undefined)).toEqual(sortSlowly(items, order))
        expect(orderItems([], items, [], order, undefined)).toEqual(sortSlowly(items, order))
      }),
      { numRuns: 2000 },
    )
  })

  it('moves the last item to the position of a repeated one', () => {
    fc.assert(
      fc.property(words, (list) => {
        expect(deduplicate(list)).toEqual(deduplicateSlowly(list))
      }),
      { numRuns: 2000 },
    )
  })
})
