import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HostClaim } from '../../api/host-claim.ts'
import {
  type Claimant,
  type ClaimDecision,
  type ClaimFacts,
  claimName,
  decideClaim,
  newClaim,
  overlaps,
  withoutOwner,
} from './host-claim.ts'

const root = (namespace: string, name: string, createdAt = '2026-01-01T00:00:00Z'): Claimant => ({
  kind: 'Ingress',
  namespace,
  name,
  uid: `${namespace}-${name}`,
  createdAt,
})

const shop = root('shop', 'web')

function decide(changes: Partial<ClaimFacts> = {}): ClaimDecision {
  return decideClaim({
    host: 'shop.example.com',
    root: shop,
    claim: undefined,
    overlapping: [],
    rivals: [],
    managedDomain: 'apps.example.net',
    isVerified: undefined,
    findNameFault: () => undefined,
    ...changes,
  })
}

describe('host claims', () => {
  it('go to the oldest root that names the host', () => {
    expect(decide()).toEqual({ state: 'create' })
    expect(decide({ rivals: [shop, root('evil', 'web', '2026-02-01T00:00:00Z')] })).toEqual({ state: 'create' })
    const older = decide({ rivals: [root('first', 'web', '2025-01-01T00:00:00Z')] })
    expect(older).toMatchObject({ state: 'refused', reason: 'HostConflict' })
    expect(JSON.stringify(older)).toContain('Ingress first/web')
  })

  it('are shared within a namespace and refused to others, naming the owner', () => {
    const claim = newClaim('shop.example.com', shop)
    expect(decide({ claim })).toEqual({ state: 'owned' })
    expect(decide({ claim, root: root('shop', 'paths') })).toMatchObject({ state: 'join' })
    expect(decide({ claim, root: root('evil', 'web') })).toMatchObject({
      state: 'refused',
      message: 'host shop.example.com is owned by Ingress shop/web',
    })
  })

  it('need a grant, without which a namespace neither gets a host nor keeps it from others, and keeps no claim', () => {
    const findNameFault = (namespace: string) =>
      namespace === 'shop' ? undefined : `nothing is granted to ${namespace}`
    const evil = root('evil', 'web', '2025-01-01T00:00:00Z')
    const refusal = { state: 'refused', reason: 'NameNotGranted', message: 'nothing is granted to evil' }
    expect(decide({ root: evil, findNameFault })).toEqual(refusal)
    expect(decide({ root: evil, claim: newClaim('shop.example.com', evil), findNameFault })).toEqual(refusal)
    expect(decide({ rivals: [evil], findNameFault })).toEqual({ state: 'create' })
    expect(decide({ overlapping: [newClaim('*.example.com', evil)], findNameFault })).toEqual({ state: 'create' })
    // A claim that is not given up yet: its owner is not told that it has the host.
    expect(decide({ claim: newClaim('shop.example.com', evil), findNameFault })).toEqual({
      state: 'refused',
      reason: 'HostConflict',
      message: 'host shop.example.com is owned by Ingress evil/web, which has no grant for it',
    })
  })

  it('of a wildcard conflict with the names it covers, in another namespace only', () => {
    const wildcard = newClaim('*.example.com', root('evil', 'all'))
    expect(decide({ overlapping: [wildcard] })).toMatchObject({ state: 'refused', reason: 'HostConflict' })
    expect(decide({ overlapping: [newClaim('*.example.com', root('shop', 'all'))] })).toEqual({ state: 'create' })
    const matrix: [string, string, boolean][] = [
      ['*.a.b', 'x.a.b', true],
      ['x.a.b', '*.a.b', true],
      ['*.a.b', 'x.y.a.b', false],
      ['*.a.b', 'a.b', false],
      ['*.a.b', '*.b', false],
      ['*.a.b', '*.a.b', false],
    ]
    expect(matrix.map(([a, b]) => overlaps(a, b))).toEqual(matrix.map(([, , isOverlap]) => isOverlap))
  })

  it('refuse what is no host, a top-level wildcard, the managed domain and unverified domains', () => {
    const reasons = ['Shop_1.example.com', '*.com', 'apps.example.net', '*.apps.example.net'].map((host) => {
      const decision = decide({ host })
      return decision.state === 'refused' ? decision.reason : decision.state
    })
    expect(reasons).toEqual(['HostInvalid', 'HostReserved', 'HostReserved', 'HostReserved'])
    expect(decide({ isVerified: false })).toMatchObject({ reason: 'DomainUnverified' })
  })

  it('have one name for every spelling of a host, and another for every other host', () => {
    expect(claimName('Shop.Example.com.')).toBe(claimName('shop.example.com'))
    fc.assert(
      fc.property(fc.domain(), fc.domain(), (a, b) => {
        expect(claimName(a)).toMatch(/^h-[a-z2-7]{32}$/)
        expect(claimName(a) === claimName(b)).toBe(a.toLowerCase() === b.toLowerCase())
      }),
    )
  })

  it('lose one owner at a time', () => {
    const claim = newClaim('shop.example.com', shop)
    claim.spec.owners.push({ kind: 'Ingress', name: 'paths', uid: 'shop-paths' })
    expect(withoutOwner(claim, shop.uid)?.owners.map(({ uid }) => uid)).toEqual(['shop-paths'])
    expect(withoutOwner(newClaim('shop.example.com', shop), shop.uid)).toBeUndefined()
  })

  it('have exactly one owner after any race of two roots', () => {
    const steps = fc.array(fc.constantFrom(0, 1), { minLength: 4, maxLength: 12 })
    const times = fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z')
    fc.assert(
      fc.property(steps, times, times, fc.boolean(), (order, first, second, sees) => {
        const roots = [root('a', 'web', first), root('b', 'web', second)]
        let stored: HostClaim | undefined
        let creations = 0
        for (const index of [...order, 0, 1]) {
          const claimant = roots[index] ?? shop
          // A cache that is behind: the claim of the other root is not seen, and the rival maybe neither.
          const decision = decide({ root: claimant, rivals: sees ? roots : [claimant], claim: undefined })
          if (decision.state !== 'create' || stored !== undefined) continue
          stored = newClaim('shop.example.com', claimant)
          creations++
        }
        expect(creations).toBe(1)
        const owners = roots.filter((each) => decide({ root: each, claim: stored, rivals: roots }).state === 'owned')
        expect(owners).toHaveLength(1)
      }),
      { numRuns: 1000 },
    )
  })
})
