import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { owned, plan, record, source, want } from '../../../../testing/plan-fixture.ts'
import { deferChanges, takeFairShare } from './fair-share.ts'

/** `a/3`: the name 3 of namespace a; several namespaces: `a+b/3`; none: `/3`. */
const tenantsOf = (name: string): string[] => (name.split('/')[0] ?? '').split('+').filter((tenant) => tenant !== '')
const named = (tenants: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${tenants}/${index}`)
const countOf = (names: ReadonlySet<string>, tenant: string): number =>
  [...names].filter((name) => tenantsOf(name).includes(tenant)).length

describe('a fair share', () => {
  it('has every name exactly once, and an equal part for each namespace', () => {
    const loads = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', ''), fc.nat({ max: 60 }))
    fc.assert(
      fc.property(loads, fc.integer({ min: 4, max: 40 }), (load, size) => {
        const names = new Set(Object.entries(load).flatMap(([tenant, count]) => named(tenant, count)))
        const { now, later } = takeFairShare(names, tenantsOf, size)
        expect([...now, ...later].toSorted()).toEqual([...names].toSorted())
        expect(countOf(later, '')).toBe(0)
        const tenants = Object.entries(load).filter(([tenant, count]) => tenant !== '' && count > 0)
        for (const [tenant, count] of tenants)
          expect(countOf(now, tenant)).toBeGreaterThanOrEqual(Math.min(count, Math.floor(size / tenants.length)))
        expect([...now].filter((name) => tenantsOf(name).length > 0).length).toBeLessThanOrEqual(
          Math.max(size, names.size <= size ? names.size : 0),
        )
      }),
    )
  })

  it('includes the few names of one namespace although another has a hundred thousand', () => {
    const names = new Set([...named('greedy', 100_000), ...named('shop', 3)])
    const { now, later } = takeFairShare(names, tenantsOf, 5_000)
    expect([countOf(now, 'shop'), now.size, later.size]).toEqual([3, 5_000, 95_003])
  })

  it('is not delayed by a namespace that requests the names of another', () => {
    const { now } = takeFairShare(new Set([...named('greedy', 1_000), ...named('greedy+shop', 3)]), tenantsOf, 10)
    expect(countOf(now, 'shop')).toBe(3)
  })

  it('takes one name of each namespace when there are more namespaces than places', () => {
    const names = new Set(Array.from({ length: 30 }, (_, index) => named(`t${index}`, 2)).flat())
    expect(takeFairShare(names, tenantsOf, 10).now.size).toBe(30)
  })
})

describe('a plan over a whole zone', () => {
  const creates = (tenant: string, count: number) =>
    Array.from({ length: count }, (_, index) =>
      want(record(`${tenant}${index}`, 'A', ['192.0.2.1']), source(`${tenant}-${index}`)),
    )
  const tenantOf = (uid: string) => uid.split('-')[0]

  it('is written in shares; what waits is not counted as owned, and deletions stay', () => {
    const old = record('old', 'A', ['192.0.2.9'])
    const whole = plan({
      observed: owned(old, { source: 'gone-1' }),
      desired: [...creates('greedy', 50), ...creates('shop', 2)],
      sources: { present: new Set(), gone: new Set(['gone-1']) },
    })
    expect(whole.changes).toHaveLength(53)
    const { plan: part, later } = deferChanges(whole, tenantOf, 10)
    expect(part.changes.map(({ op }) => op).toSorted()).toEqual([...Array<string>(10).fill('create'), 'delete'])
    expect(part.changes.filter(({ source: uid }) => uid.startsWith('shop'))).toHaveLength(2)
    expect(later.size).toBe(42)
    expect([whole.state.ownedNames, part.state.ownedNames]).toEqual([52, 10])
    expect([whole.state.ownedSources, part.state.ownedSources]).toEqual([52, 10])
  })

  it('is unchanged when it is small', () => {
    const whole = plan({ desired: creates('shop', 5) })
    expect(deferChanges(whole, tenantOf, 5).plan).toBe(whole)
  })
})
