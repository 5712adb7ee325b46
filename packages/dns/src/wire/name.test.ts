import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DnsError } from '../error.ts'
import {
  compareNames,
  fqdn,
  isSubdomain,
  labelsOf,
  nameToText,
  nameToWire,
  parentOf,
  parseName,
  toUnicode,
  wireToFqdn,
} from './name.ts'

const label = fc.uint8Array({ minLength: 1, maxLength: 63 })
const wireName = fc.array(label, { maxLength: 6 }).map((labels) => {
  const kept = labels.filter((_, i) => labels.slice(0, i + 1).reduce((sum, each) => sum + each.length + 1, 1) <= 255)
  return Uint8Array.from([...kept.flatMap((each) => [each.length, ...each]), 0])
})

describe('names', () => {
  it('come back from text as they were, whatever octets their labels hold', () => {
    fc.assert(
      fc.property(wireName, (wire) => {
        expect(nameToWire(nameToText(wire))).toEqual(wire)
      }),
    )
  })

  it('have one canonical form that is its own canonical form', () => {
    fc.assert(
      fc.property(wireName, (wire) => {
        const name = wireToFqdn(wire)
        expect(fqdn(name)).toBe(name)
        expect(fqdn(nameToText(wire))).toBe(name)
        expect(labelsOf(name).length).toBe(name === '.' ? 0 : labelsOf(parentOf(name)!).length + 1)
      }),
    )
  })

  it.each([
    ['WWW.Example.Test', 'www.example.test.'],
    ['www.example.test.', 'www.example.test.'],
    ['.', '.'],
    ['*.a', '*.a.'],
    ['_acme-challenge.a', '_acme-challenge.a.'],
    ['a\\.b.c', 'a\\.b.c.'],
    ['\\065.b', 'a.b.'],
    ['a b', 'a\\032b.'],
    ['bücher.example', 'xn--bcher-kva.example.'],
    ['BÜCHER。example', 'xn--bcher-kva.example.'],
  ])('%s is %s', (text, canonical) => {
    expect(fqdn(text)).toBe(canonical)
  })

  it.each([
    '',
    'a..b',
    '.a',
    'a.b..',
    `${'x'.repeat(64)}.test`,
    `${'x'.repeat(63)}.`.repeat(4),
    'a\\',
    'a\\256.b',
    'ü/x.test',
    'ü%41.test',
  ])('%j is refused as a value', (text) => {
    const result = parseName(text)
    expect(result).toBeInstanceOf(DnsError)
    expect(() => fqdn(text)).toThrow(/bad name/)
  })

  it('may have 255 octets and not one more', () => {
    const longest = `${`${'x'.repeat(63)}.`.repeat(3)}${'y'.repeat(61)}`
    expect(nameToWire(longest).length).toBe(255)
    expect(() => nameToWire(`${longest}z`)).toThrow(/longer than 255/)
    expect(() => nameToWire('z', nameToWire(longest))).toThrow(/with its origin/)
  })

  it('know what is below what, escaped dots included', () => {
    expect(isSubdomain(fqdn('a.example.test'), fqdn('example.test'))).toBe(true)
    expect(isSubdomain(fqdn('example.test'), fqdn('example.test'))).toBe(true)
    expect(isSubdomain(fqdn('aexample.test'), fqdn('example.test'))).toBe(false)
    expect(isSubdomain(fqdn('a\\.example.test'), fqdn('example.test'))).toBe(false)
    expect(isSubdomain(fqdn('a\\\\.example.test'), fqdn('example.test'))).toBe(true)
    expect(isSubdomain(fqdn('x'), fqdn('.'))).toBe(true)
  })

  it('sort by their labels from the root', () => {
    const names = ['b.a.', 'a.', 'z.a.', 'a.b.a.', '.'].map((text) => fqdn(text))
    expect(names.sort(compareNames)).toEqual(['.', 'a.', 'b.a.', 'a.b.a.', 'z.a.'])
  })

  it('are displayed in Unicode', () => {
    expect(toUnicode(fqdn('bücher.example'))).toBe('bücher.example.')
  })
})
