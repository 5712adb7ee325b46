import { expect, it } from 'vitest'
import { subjectsOf } from './underscore-names.ts'

it.each<[string, string[]]>([
  ['shop.a.test.', []],
  ['*.a.test.', []],
  ['a_b.a.test.', []],
  ['_acme-challenge.shop.a.test.', ['shop.a.test.']],
  ['_acme-challenge.a.test.', ['a.test.']],
  ['_443._tcp.shop.a.test.', ['_tcp.shop.a.test.', 'shop.a.test.']],
  ['s1._domainkey.shop.a.test.', ['_domainkey.shop.a.test.', 'shop.a.test.']],
  ['x.y._domainkey.a.test.', ['_domainkey.a.test.', 'a.test.']],
  ['*._report._dmarc.a.test.', ['_report._dmarc.a.test.', '_dmarc.a.test.', 'a.test.']],
  ['_a.b._c.d.a.test.', ['_c.d.a.test.', 'd.a.test.']],
])('%s is about %j', (name, subjects) => {
  expect(subjectsOf(name, 'a.test.')).toEqual(subjects)
  expect(subjectsOf(name)).toEqual(subjects)
})

it('labels of the name of the zone do not count in it', () => {
  expect(subjectsOf('key._domainkey.a.test.', '_domainkey.a.test.')).toEqual([])
  expect(subjectsOf('_x.key._domainkey.a.test.', '_domainkey.a.test.')).toEqual(['key._domainkey.a.test.'])
})
