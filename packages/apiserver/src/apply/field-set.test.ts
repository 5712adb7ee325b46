import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FieldSet } from './field-set.ts'
import { elementText, keyElement, parseElement, valueElement } from './path-element.ts'

const element = fc.oneof(
  fc.constantFrom('a', 'b', 'c').map((name) => `f:${name}`),
  fc.constantFrom<string | number>('x', 'y&', 1).map(valueElement),
  fc.constantFrom('m', 'n').map((name) =>
    keyElement([
      ['name', name],
      ['at', 1],
    ]),
  ),
)
const paths = fc.array(fc.array(element, { minLength: 1, maxLength: 3 }), { maxLength: 8 })
const sets = paths.map((list) => {
  const set = new FieldSet()
  for (const path of list) set.insert(path)
  return set
})

function texts(set: FieldSet): string[] {
  return [...set.paths()].map((path) => path.join(' ')).toSorted()
}

function only(set: FieldSet, test: (path: string) => boolean): string[] {
  return texts(set).filter(test)
}

describe('field sets', () => {
  it('round-trip through FieldsV1', () => {
    fc.assert(
      fc.property(sets, (set) => {
        const wire: unknown = JSON.parse(JSON.stringify(set.toFieldsV1()))
        expect(texts(FieldSet.fromFieldsV1(wire))).toEqual(texts(set))
      }),
    )
  })

  it('implement union, intersection and difference of path sets', () => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        const inB = new Set(texts(b))
        expect(texts(a.union(b))).toEqual([...new Set([...texts(a), ...inB])].toSorted())
        expect(texts(a.intersection(b))).toEqual(only(a, (path) => inB.has(path)))
        expect(texts(a.difference(b))).toEqual(only(a, (path) => !inB.has(path)))
        const isBelow = (path: string): boolean => [...inB].some((top) => path === top || path.startsWith(`${top} `))
        expect(texts(a.differenceWithBelow(b))).toEqual(only(a, (path) => !isBelow(path)))
        for (const path of a.paths()) expect(a.has(path)).toBe(true)
      }),
    )
  })

  it('write "." for a node that is owned and has children', () => {
    const set = new FieldSet()
    set.insert(['f:a'])
    set.insert(['f:a', 'f:b'])
    set.insert(['f:c', 'f:d'])
    expect(set.toFieldsV1()).toEqual({ 'f:a': { '.': {}, 'f:b': {} }, 'f:c': { 'f:d': {} } })
  })

  it('treat keys in any order as one element', () => {
    expect(parseElement('k:{"port":80,"name":"a"}')).toBe(parseElement('k:{"name":"a","port":80}'))
    expect(elementText('k:{"name":"a","port":80}')).toBe('[name="a",port=80]')
    expect(elementText(valueElement('x'))).toBe('[="x"]')
    expect(() => parseElement('x')).toThrow(SyntaxError)
    expect(parseElement('z:1')).toBeUndefined()
  })
})
