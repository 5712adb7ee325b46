import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  checkRegistryKind,
  checkRegistryOptions,
  parseAesKey,
  printRegistryValue,
  readRegistryValue,
  registryNames,
} from './external-dns-registry.ts'
import { isInvalid } from './rrset.ts'

const aesKey = Buffer.from('0123456789abcdef0123456789abcdef')

describe('the names of registry entries', () => {
  it.each([
    ['plain', {}, 'www.a.test.', 'A', ['a-www.a.test.', 'www.a.test.', 'cname-www.a.test.']],
    ['AAAA, which has no old form', {}, 'www.a.test.', 'AAAA', ['aaaa-www.a.test.', 'cname-www.a.test.']],
    ['a prefix', { prefix: 'xd.' }, 'www.a.test.', 'CNAME', ['xd.cname-www.a.test.', 'xd.www.a.test.']],
    ['a suffix', { suffix: '-xd' }, 'www.a.test.', 'CNAME', ['cname-www-xd.a.test.', 'www-xd.a.test.']],
    [
      'a type in the prefix',
      { prefix: '%{record_type}.xd.' },
      'www.a.test.',
      'CNAME',
      ['cname.xd.www.a.test.', '.xd.www.a.test.'],
    ],
    [
      'a type in the suffix',
      { suffix: '-%{record_type}' },
      'www.a.test.',
      'CNAME',
      ['www-cname.a.test.', 'www-.a.test.'],
    ],
    ['a replaced wildcard', { wildcardReplacement: 'any' }, '*.a.test.', 'CNAME', ['cname-any.a.test.', 'any.a.test.']],
    ['a kept wildcard', {}, '*.a.test.', 'CNAME', ['cname-*.a.test.', '*.a.test.']],
  ])('with %s', (_title, options, name, type, expected) => {
    expect(registryNames(name, type, options)).toEqual(expected)
  })
})

describe('a registry value', () => {
  it('is read in plain form', () => {
    const value = '"heritage=external-dns,external-dns/owner=prod-a,external-dns/resource=ingress/web/shop"'
    expect(readRegistryValue(value, {})).toEqual({
      kind: 'entry',
      entry: { owner: 'prod-a', resource: 'ingress/web/shop' },
    })
  })

  it('is printed as ExternalDNS prints it, plain and encrypted', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z0-9-]{1,20}$/),
        fc.uint8Array({ minLength: 12, maxLength: 12 }),
        (owner, nonce) => {
          const entry = { owner, resource: 'service/a/b' }
          expect(readRegistryValue(printRegistryValue(entry, {}), {})).toEqual({ kind: 'entry', entry })
          const sealed = printRegistryValue(entry, { aesKey }, nonce)
          expect(readRegistryValue(sealed, { aesKey })).toEqual({ kind: 'entry', entry })
        },
      ),
    )
  })

  it('encrypted with an unknown key is unknown, and never free', () => {
    const sealed = printRegistryValue({ owner: 'x' }, { aesKey }, Buffer.alloc(12, 7))
    expect(readRegistryValue(sealed, {}).kind).toBe('unknown')
    expect(readRegistryValue(sealed, { aesKey: Buffer.alloc(32, 1) }).kind).toBe('unknown')
  })

  it('of another heritage, or without an owner, is unknown', () => {
    expect(readRegistryValue('"heritage=other-dns,other-dns/owner=x"', {}).kind).toBe('unknown')
    expect(readRegistryValue('"heritage=external-dns"', {}).kind).toBe('unknown')
  })

  it('of any other text is an ordinary record', () => {
    expect(readRegistryValue('"v=spf1 -all"', {}).kind).toBe('none')
    expect(readRegistryValue('not quoted', {}).kind).toBe('none')
  })
})

it('a registry that is not in the zone is refused', () => {
  expect(checkRegistryKind('txt')).toBeUndefined()
  for (const kind of ['dynamodb', 'aws-sd', 'crd', 'anything']) expect(checkRegistryKind(kind)?.invalid).toContain(kind)
})

it('options that exclude each other, and keys of a wrong length, are refused', () => {
  expect(checkRegistryOptions({ prefix: 'a', suffix: 'b' })).toBeDefined()
  expect(checkRegistryOptions({ prefix: 'a', aesKey })).toBeUndefined()
  expect(isInvalid(parseAesKey('short'))).toBe(true)
  expect(parseAesKey(aesKey.toString('base64'))).toEqual(aesKey)
})
