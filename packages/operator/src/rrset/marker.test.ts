import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isFieldText, type Marker, markedSet, markerName, printMarker, readMarker } from './marker.ts'

const subject = { name: 'www.a.test.', type: 'A' }
const marker: Marker = { owner: 'prod', cluster: 'c-1', source: 's-1', plan: 42 }
const field = fc
  .string({ unit: fc.constantFrom(...'abcXYZ019-._:/@'.split('')), minLength: 1, maxLength: 40 })
  .filter(isFieldText)

const markers: fc.Arbitrary<Marker> = fc.record(
  {
    owner: field,
    cluster: field,
    source: field,
    plan: fc.nat(),
    revision: field,
    from: field,
    resource: field,
    part: fc.array(fc.ipV4(), { maxLength: 20 }),
  },
  { requiredKeys: ['owner', 'cluster', 'source', 'plan'] },
)

describe('a marker', () => {
  it('has its fields in one fixed order', () => {
    const full = {
      ...marker,
      part: ['192.0.2.1', '192.0.2.2'],
      from: 'external-dns/x',
      resource: 'crd/web/shop',
      revision: '7',
    }
    expect(printMarker(subject, full)).toBe(
      '"v=seamark1,owner=prod,cluster=c-1,source=s-1,plan=42,rev=7,from=external-dns/x,resource=crd/web/shop,part=192.0.2.1|192.0.2.2"',
    )
  })

  it('is parsed back as it was written, with and without a key', () => {
    fc.assert(
      fc.property(
        markers,
        fc.option(fc.uint8Array({ minLength: 1, maxLength: 40 }), { nil: undefined }),
        (value, key) => {
          expect(readMarker(subject, printMarker(subject, value, key), key)).toMatchObject({
            kind: 'marker',
            marker: value,
          })
        },
      ),
    )
  })

  it('never throws on any text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(['unreadable', 'newer', 'marker']).toContain(readMarker(subject, `"v=seamark1,${text}"`).kind)
        expect(readMarker(subject, text).kind).toBe('unreadable')
      }),
    )
  })

  it('of a newer version is distinguished from invalid text', () => {
    expect(readMarker(subject, '"v=seamark2,whatever"').kind).toBe('newer')
    expect(readMarker(subject, '"v=spf1 -all"').kind).toBe('unreadable')
  })

  it('with fields in another order is not a marker', () => {
    expect(readMarker(subject, '"v=seamark1,cluster=c,owner=o,source=s,plan=1"').kind).toBe('unreadable')
    expect(readMarker(subject, '"v=seamark1,owner=o,owner=p,cluster=c,source=s,plan=1"').kind).toBe('unreadable')
  })

  it('is forged when unsigned, signed with another key, changed, or copied to another name', () => {
    const key = Buffer.from('secret')
    const signed = printMarker(subject, marker, key)
    expect(readMarker(subject, signed, key).kind).toBe('marker')
    expect(readMarker(subject, printMarker(subject, marker), key).kind).toBe('forged')
    expect(readMarker(subject, printMarker(subject, marker, Buffer.from('other')), key).kind).toBe('forged')
    expect(readMarker(subject, signed.replace('plan=42', 'plan=43'), key).kind).toBe('forged')
    expect(readMarker({ ...subject, name: 'evil.a.test.' }, signed, key).kind).toBe('forged')
    expect(readMarker({ ...subject, type: 'AAAA' }, signed, key).kind).toBe('forged')
  })
})

describe('the name of a marker', () => {
  it.each([
    ['www.a.test.', 'A', '_seamark-a.www.a.test.'],
    ['*.a.test.', 'CNAME', '_seamark-cname._any.a.test.'],
    ['a.test.', 'AAAA', '_seamark-aaaa.a.test.'],
  ])('of %s %s is %s, and is reversible', (name, type, expected) => {
    expect(markerName(name, type)).toBe(expected)
    expect(markedSet(expected)).toEqual({ name, type })
  })

  it('is undefined for any other name', () => {
    expect(markedSet('www.a.test.')).toBeUndefined()
    expect(markedSet('_seamark-a')).toBeUndefined()
  })
})
