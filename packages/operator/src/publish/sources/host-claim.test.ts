import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { claimHost, claimKey, type Claimant } from './host-claim.ts'

function claimant(namespace: string, name: string, createdAt: string): Claimant {
  return { kind: 'HTTPProxy', namespace, name, uid: `${namespace}/${name}`, createdAt }
}

const arbitraryClaimant = fc
  .record({ namespace: fc.constantFrom('a', 'b', 'c'), name: fc.constantFrom('x', 'y', 'z'), second: fc.nat(3) })
  .map(({ namespace, name, second }) => claimant(namespace, name, `2026-01-01T00:00:0${second}Z`))

describe('claims to a host', () => {
  it('T16: in any order there is exactly one winner, the oldest, then by namespace and name', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(arbitraryClaimant, { selector: (item) => item.uid, minLength: 1, maxLength: 6 }),
        (claimants) => {
          const winners = claimants.filter((item) => claimHost(item, claimants, undefined, 0, 0).state === 'won')
          expect(winners).toHaveLength(1)
          const shuffled = claimants.toReversed()
          expect(shuffled.filter((item) => claimHost(item, shuffled, undefined, 0, 0).state === 'won')).toEqual(winners)
          const oldest = claimants.map((item) => item.createdAt).toSorted()[0]
          expect(winners[0]?.createdAt).toBe(oldest)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('names the owner to the other claimants', () => {
    const old = claimant('a', 'x', '2026-01-01T00:00:00Z')
    expect(claimHost(claimant('b', 'y', '2026-01-02T00:00:00Z'), [old], undefined, 0, 0)).toEqual({
      state: 'lost',
      to: old,
    })
  })

  it('T16: a released host is available to the same namespace at once and to another after the grace period', () => {
    const released = { namespace: 'a', atMs: 1_000 }
    const other = claimant('b', 'y', '2026-01-02T00:00:00Z')
    expect(claimHost(other, [], released, 30_000, 2_000)).toEqual({ state: 'waiting', untilMs: 31_000 })
    expect(claimHost(other, [], released, 30_000, 31_000)).toEqual({ state: 'won' })
    expect(claimHost(claimant('a', 'y', '2026-01-02T00:00:00Z'), [], released, 30_000, 2_000)).toEqual({ state: 'won' })
  })

  it('spellings of one name are one claim; a wildcard and an exact name are two', () => {
    expect(claimKey('A.Example.COM.')).toBe(claimKey('a.example.com'))
    expect(claimKey('*.example.com')).not.toBe(claimKey('a.example.com'))
  })
})
