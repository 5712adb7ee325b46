import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalName, canonicalSet, digestOf, isInvalid, txtText, txtValue } from './rrset.ts'

const set = (type: string, ...values: string[]) => canonicalSet({ name: 'a.test', type, ttl: 60, values })

describe('a canonical name', () => {
  it.each([
    ['WWW.Example.Test', 'www.example.test.'],
    ['www.example.test.', 'www.example.test.'],
    ['*.example.test', '*.example.test.'],
    ['bücher.test', 'xn--bcher-kva.test.'],
    ['*.bücher.test', '*.xn--bcher-kva.test.'],
    ['_acme-challenge.a.test', '_acme-challenge.a.test.'],
    [`${'a'.repeat(63)}.test`, `${'a'.repeat(63)}.test.`],
  ])('of %s is %s', (text, expected) => {
    expect(canonicalName(text)).toBe(expected)
  })

  it.each([
    '',
    '.',
    'a..test',
    'a.*.test',
    '**.test',
    '*a.test',
    '-a.test',
    'a-.test',
    `${'a'.repeat(64)}.test`,
    `${'a.'.repeat(127)}test`,
    'a b.test',
    'a\r\nb.test',
    'a\0.test',
    'a\u007f.test',
    'a%2e.test',
    'a/b.test',
    'a"b.test',
    '192.0.2.1',
    '\u202ea.test',
    'a'.repeat(100_000),
  ])('is refused for %j', (text) => {
    expect(isInvalid(canonicalName(text))).toBe(true)
  })
})

describe('a canonical set', () => {
  it('sorts values and removes duplicates', () => {
    expect(set('A', '192.0.2.2', '192.0.2.1', '192.0.2.2')).toMatchObject({ values: ['192.0.2.1', '192.0.2.2'] })
  })

  it.each([
    ['AAAA', '2001:DB8:0:0::1', '2001:db8::1'],
    ['CNAME', 'LB.Example.TEST', 'lb.example.test.'],
    ['MX', '010  Mail.test', '10 mail.test.'],
    ['SRV', '0 5 443 b.test', '0 5 443 b.test.'],
    ['TXT', 'plain "text"', '"plain \\"text\\""'],
    ['TXT', '"a" "b"', '"a" "b"'],
    ['TXT', 'ü', '"\\195\\188"'],
  ])('of type %s has for %s the canonical form %s', (type, value, expected) => {
    expect(set(type, value)).toMatchObject({ values: [expected] })
  })

  it.each([
    ['A', '2001:db8::1'],
    ['A', '192.0.2.256'],
    ['A', '0x7f.1'],
    ['A', '192.0.2.1\n'],
    ['AAAA', '192.0.2.1'],
    ['AAAA', 'fe80::1%eth0'],
    ['CNAME', '192.0.2.1'],
    ['CNAME', 'a..b'],
    ['MX', 'mail.test'],
    ['MX', '70000 mail.test'],
    ['SRV', '0 5 b.test'],
    ['TXT', '"open'],
  ])('of type %s is refused for %j', (type, value) => {
    expect(isInvalid(set(type, value))).toBe(true)
  })

  it.each([-1, 0.5, 2 ** 31, Number.NaN, Number.POSITIVE_INFINITY])('is refused for the TTL %s', (ttl) => {
    expect(isInvalid(canonicalSet({ name: 'a.test', type: 'A', ttl, values: [] }))).toBe(true)
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('A', 'AAAA', 'CNAME', 'MX', 'TXT'),
        fc.array(fc.string(), { maxLength: 3 }),
        (type, values) => {
          const once = canonicalSet({ name: 'a.test', type, ttl: 5, values })
          fc.pre(!isInvalid(once))
          expect(canonicalSet(once)).toEqual(once)
        },
      ),
    )
  })
})

it('the text of a TXT value is restored', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii', maxLength: 600 }), (text) => {
      expect(txtText(txtValue(text))).toBe(text)
    }),
  )
})

it('a digest depends neither on the order nor on the serial', () => {
  const a = { name: 'a.test.', type: 'A', ttl: 5, values: ['192.0.2.1'] }
  const b = { name: 'b.test.', type: 'A', ttl: 5, values: ['192.0.2.1'] }
  const soa = { name: 'test.', type: 'SOA', ttl: 5, values: ['ns. h. 1 2 3 4 5'] }
  expect(digestOf([a, b, soa])).toBe(digestOf([b, a]))
  expect(digestOf([a])).not.toBe(digestOf([{ ...a, ttl: 6 }]))
})
