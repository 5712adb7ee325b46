import { describe, expect, it } from 'vitest'
import { originalMarkerName, originalMarkerSet, readOriginalMarker, withoutLegacyMarker } from './original-marker.ts'

const txt = (name: string, ...values: string[]) => ({ name, type: 'TXT', ttl: 600, values })

describe("the original's ownership records", () => {
  it.each([
    ['www.example.com.', 'comment-www.example.com.'],
    ['*.example.com.', '*.comment-example.com.'],
    [`${'a'.repeat(56)}.example.com.`, undefined],
  ])('of %s is at %s', (name, marker) => {
    expect(originalMarkerName(name)).toBe(marker)
  })

  it('is read back as it was written, with the host names that were resolved', () => {
    const set = originalMarkerSet('www.example.com.', 'GardenRing', ['b.example.net.', 'a.example.net'])
    expect(set).toEqual(
      txt(
        'comment-www.example.com.',
        '"cnames=a.example.net,b.example.net"',
        '"owner=GardenRing"',
        '"prefix=comment-"',
      ),
    )
    expect(readOriginalMarker(set!)).toEqual({ name: 'www.example.com.', owner: 'GardenRing', isLegacy: false })
    const wildcard = originalMarkerSet('*.example.com.', 'x', [])
    expect(readOriginalMarker(wildcard!)).toEqual({ name: '*.example.com.', owner: 'x', isLegacy: false })
  })

  it.each([
    ['the first release: a bare value at the name', txt('a.test.', '"GardenRing"'), 'GardenRing'],
    ['beside an SPF record', txt('a.test.', '"GardenRing"', '"v=spf1 -all"'), 'GardenRing'],
    ['an SPF record alone', txt('a.test.', '"v=spf1 -all"'), undefined],
    ['a sentence', txt('a.test.', '"hello fixture"'), undefined],
    ['two bare values', txt('a.test.', '"a"', '"b"'), undefined],
    ['a prefix that is not in the name', txt('a.test.', '"owner=x"', '"prefix=comment-"'), undefined],
  ])('%s', (_case, set, owner) => {
    expect(readOriginalMarker(set)?.owner).toBe(owner)
  })

  it('loses its legacy form without losing other values', () => {
    expect(withoutLegacyMarker(txt('a.test.', '"me"'), 'me')).toBeUndefined()
    expect(withoutLegacyMarker(txt('a.test.', '"me"', '"v=spf1 -all"'), 'me')?.values).toEqual(['"v=spf1 -all"'])
  })
})
