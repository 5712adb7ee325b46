import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Fqdn, fqdn } from '../wire/name.ts'
import type { RRset } from '../wire/record.ts'
import { createZone, type ZoneChange } from './zone-table.ts'

const ORIGIN = fqdn('example.test')
const SOA: RRset = { name: ORIGIN, type: 'SOA', ttl: 60, values: ['ns.example.test. host.example.test. 1 2 3 4 5'] }

const set = (name: string, type: string, ...values: string[]): RRset => ({
  name: fqdn(name, ORIGIN),
  type,
  ttl: 60,
  values,
})
const put = (each: RRset): ZoneChange => ({ kind: 'put', set: each })
const drop = (name: string, type: string): ZoneChange => ({ kind: 'delete', name: fqdn(name, ORIGIN), type })

/** All sets but the SOA, whose serial moves, in one order. */
const content = (zone: { sets(): Iterable<RRset> }): string[] =>
  [...zone.sets()]
    .filter((each) => each.type !== 'SOA')
    .map((each) => `${each.name} ${each.type} ${each.values.join(',')}`)
    .sort()

describe('a zone', () => {
  it('gives back the sets it was made of', () => {
    const zone = createZone(ORIGIN, [SOA, set('www', 'A', '192.0.2.1', '192.0.2.2'), set('a.b.c', 'TXT', '"x"')])
    expect(zone.find(fqdn('www.example.test'), 'A')?.values).toEqual(['192.0.2.1', '192.0.2.2'])
    expect([...zone.sets()]).toHaveLength(3)
    expect(zone.names).toBe(5) // apex, www, a.b.c, and the empty b.c and c
    expect(zone.hasName(fqdn('b.c.example.test'))).toBe(true)
    expect(zone.hasName(fqdn('x.c.example.test'))).toBe(false)
  })

  it('stays as it was while a changed copy has the next serial', () => {
    const before = createZone(ORIGIN, [SOA, set('www', 'A', '192.0.2.1')])
    const after = before.with([put(set('www', 'A', '192.0.2.9'))])
    expect(before.find(fqdn('www.example.test'), 'A')?.values).toEqual(['192.0.2.1'])
    expect(after.find(fqdn('www.example.test'), 'A')?.values).toEqual(['192.0.2.9'])
    expect([before.serial, after.serial]).toEqual([1, 2])
  })

  it('is the same object when nothing would change', () => {
    const zone = createZone(ORIGIN, [SOA, set('www', 'A', '192.0.2.1', '192.0.2.2')])
    expect(zone.with([put(set('www', 'A', '192.0.2.2', '192.0.2.1')), drop('nope', 'A')])).toBe(zone)
  })

  it('skips serial zero when it wraps', () => {
    const zone = createZone(ORIGIN, [{ ...SOA, values: ['ns.test. host.test. 4294967295 2 3 4 5'] }])
    expect(zone.with([put(set('a', 'A', '192.0.2.1'))]).serial).toBe(1)
  })

  it('drops empty names on the way up when the last name below goes', () => {
    const zone = createZone(ORIGIN, [SOA, set('a.b.c', 'A', '192.0.2.1'), set('x.c', 'A', '192.0.2.1')])
    const after = zone.with([drop('a.b.c', 'A')])
    expect(after.hasName(fqdn('b.c.example.test'))).toBe(false)
    expect(after.hasName(fqdn('c.example.test'))).toBe(true)
    expect(after.with([drop('x.c', 'A')]).names).toBe(1)
  })

  it('shares what a change does not touch', () => {
    const many = Array.from({ length: 5000 }, (_, i) => set(`h${i}`, 'A', '192.0.2.1'))
    const zone = createZone(ORIGIN, [SOA, ...many])
    const after = zone.with([put(set('h7', 'A', '192.0.2.9'))])
    const same = zone.directory.filter((shard, i) => shard === after.directory[i])
    expect(zone.directory.length - same.length).toBeLessThanOrEqual(2)
  })

  it.each([
    ['a name outside', [set('www.other.test.', 'A', '192.0.2.1')], /not in zone/],
    ['a name that only ends alike', [set('xexample.test.', 'A', '192.0.2.1')], /not in zone/],
    ['CNAME beside other data', [set('a', 'CNAME', 'b.test.'), set('a', 'A', '192.0.2.1')], /CNAME and A/],
    ['two CNAMEs', [set('a', 'CNAME', 'b.test.', 'c.test.')], /2 CNAME/],
    ['a second SOA', [{ ...SOA, name: fqdn('a.example.test') }], /not the apex/],
    ['a bad value', [set('a', 'A', 'nope')], /IPv4/],
  ])('refuses %s, made or changed', (_, sets, reason) => {
    expect(() => createZone(ORIGIN, [SOA, ...sets])).toThrow(reason)
    expect(() => createZone(ORIGIN, [SOA]).with(sets.map(put))).toThrow(reason)
  })

  it('needs a SOA and keeps it', () => {
    expect(() => createZone(ORIGIN, [set('www', 'A', '192.0.2.1')])).toThrow(/SOA/)
    expect(() => createZone(ORIGIN, [SOA]).with([drop('example.test.', 'SOA')])).toThrow(/cannot be deleted/)
  })

  it('after any changes equals a zone made afresh, whatever was split and merged', () => {
    const name = fc
      .array(fc.constantFrom('a', 'b', 'c', 'd', '*', 'e1', 'e2', 'e3'), { minLength: 1, maxLength: 4 })
      .map((labels) => labels.join('.'))
    const change = fc.oneof(
      fc
        .tuple(name, fc.constantFrom('A', 'TXT'), fc.nat(5))
        .map(([owner, type, n]) => put(set(owner, type, type === 'A' ? `192.0.2.${n}` : `"${n}"`))),
      fc.tuple(name, fc.constantFrom('A', 'TXT')).map(([owner, type]) => drop(owner, type)),
    )
    fc.assert(
      fc.property(fc.array(fc.array(change, { maxLength: 60 }), { maxLength: 8 }), (batches) => {
        let zone = createZone(ORIGIN, [SOA])
        const model = new Map<string, RRset>()
        for (const batch of batches) {
          zone = zone.with(batch)
          for (const each of batch) {
            if (each.kind === 'put') model.set(`${each.set.name} ${each.set.type}`, each.set as RRset)
            else model.delete(`${each.name} ${each.type}`)
          }
        }
        const fresh = createZone(ORIGIN, [SOA, ...model.values()])
        expect(content(zone)).toEqual(content(fresh))
        expect([zone.names, zone.rrsets, zone.wildcards]).toEqual([fresh.names, fresh.rrsets, fresh.wildcards])
      }),
      { numRuns: 60 },
    )
  })

  it('grows from one name to thousands by splitting shards, and every name is found', () => {
    let zone = createZone(ORIGIN, [SOA])
    const names: Fqdn[] = []
    for (let batch = 0; batch < 30; batch++) {
      const sets = Array.from({ length: 100 }, (_, i) => set(`n${batch}-${i}`, 'A', '192.0.2.1'))
      names.push(...sets.map((each) => each.name))
      zone = zone.with(sets.map(put))
    }
    expect(zone.names).toBe(3001)
    expect(zone.directory.length).toBeGreaterThan(8)
    expect(names.every((each) => zone.find(each, 'A') !== undefined)).toBe(true)
  })
})
