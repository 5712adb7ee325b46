import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findMember, newMember, skipValue } from './json-bytes.ts'

const pretty = fc.tuple(fc.jsonValue(), fc.constantFrom(undefined, 2, '\t'))

describe('scanning JSON without parsing it', () => {
  it('ends every value where JSON.parse would', () => {
    fc.assert(
      fc.property(pretty, fc.constantFrom('', ',', '}', ' ,1]'), ([value, space], rest) => {
        const text = JSON.stringify(value, undefined, space)
        const bytes = Buffer.from(text + (rest === '' && typeof value === 'number' ? ',' : rest))
        expect(skipValue(bytes, 0, bytes.length)).toBe(Buffer.byteLength(text))
      }),
    )
  })

  it('finds the member that JSON.parse finds', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 })
    fc.assert(
      fc.property(object, fc.nat(), fc.constantFrom(undefined, 2), (value, pick, space) => {
        // A key with escapes does not match its unescaped form; the keys that the code looks for have none.
        const keys = Object.keys(value).filter((key) => JSON.stringify(key) === `"${key}"`)
        const key = keys[pick % Math.max(1, keys.length)]
        fc.pre(key !== undefined)
        const bytes = Buffer.from(JSON.stringify(value, undefined, space))
        const at = findMember(bytes, 0, bytes.length, Buffer.from(`"${key}"`), newMember())
        const found: unknown = JSON.parse(bytes.toString('utf8', at, skipValue(bytes, at, bytes.length)))
        expect(found).toEqual(JSON.parse(JSON.stringify(value[key])))
      }),
    )
  })

  it('returns -1 for truncated text, at every byte', () => {
    const bytes = Buffer.from('{"a":[1,{"b":"c\\"}"}],"d":{"e":null}}')
    for (let end = 1; end < bytes.length; end++) expect(skipValue(bytes, 0, end)).toBe(-1)
    expect(skipValue(bytes, 0, bytes.length)).toBe(bytes.length)
  })
})
