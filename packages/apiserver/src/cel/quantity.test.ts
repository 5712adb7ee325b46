import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatQuantity, parseQuantity } from './quantity.ts'

describe('the canonical text of a quantity', () => {
  it.each([
    ['4000m', '4'],
    ['0.5', '500m'],
    ['1500m', '1500m'],
    ['1024Mi', '1Gi'],
    ['1.5Gi', '1536Mi'],
    ['512', '512'],
    ['1000', '1k'],
    ['1e3', '1e3'],
    ['0', '0'],
    ['-1', '-1'],
    ['100000n', '100u'],
  ])('of %s is %s', (given, canonical) => {
    expect(formatQuantity(given)).toBe(canonical)
  })

  it('is undefined for an invalid quantity', () => {
    expect(['', 'abc', '1x', '1 Gi', '--1'].map(formatQuantity)).toEqual(Array(5).fill(undefined))
  })

  it('has the same value, and is canonical itself', () => {
    const suffix = fc.constantFrom('', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'e3', 'u')
    fc.assert(
      fc.property(fc.integer({ min: -1_000_000, max: 1_000_000 }), suffix, (number, unit) => {
        const text = formatQuantity(`${number}${unit}`) as string
        expect(parseQuantity(text)?.compare(parseQuantity(`${number}${unit}`)!)).toBe(0n)
        expect(formatQuantity(text)).toBe(text)
      }),
    )
  })
})
