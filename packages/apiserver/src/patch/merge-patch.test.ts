import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyMergePatch } from './merge-patch.ts'

describe('merge patch', () => {
  // The examples of RFC 7386, appendix A.
  it.each<[unknown, unknown, unknown]>([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j with %j is %j', (document, patch, expected) => {
    expect(applyMergePatch(document, patch)).toEqual(expected)
  })

  it('is idempotent, and changes neither argument', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (document, patch) => {
        const before = JSON.stringify([document, patch])
        const once = applyMergePatch(document, patch)
        expect(applyMergePatch(once, patch)).toEqual(once)
        expect(JSON.stringify([document, patch])).toBe(before)
      }),
    )
  })

  it('treats __proto__ as an ordinary key', () => {
    const result = applyMergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}')) as object
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
    expect(JSON.stringify(result)).toBe('{"__proto__":{"polluted":true}}')
  })
})
