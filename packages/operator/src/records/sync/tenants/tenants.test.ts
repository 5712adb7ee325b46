/** T16: two tenants request one host, in both orders, with both orders of deletion, in every spelling; with a wildcard beside it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OPEN_RULES } from '../../../../testing/sync-fixture.ts'
import { desiredOf } from '../sources/dns-endpoint-source.ts'
import { EMPTY_STATE, type GuardState } from '../../state/guard-state.ts'
import { DEFAULT_LIMITS } from '../../plan/limits.ts'
import { applied, NOW, plan } from '../../../../testing/plan-fixture.ts'
import type { Plan } from '../../plan/plan.ts'
import type { ObservedRRset } from '../../../rrset/rrset.ts'

interface Tenant {
  readonly namespace: string
  readonly dnsName: string
  readonly createdAt: number
  readonly address: string
}

/** Spellings of one name. */
const SPELLINGS = ['bücher.a.test', 'BÜCHER.A.Test', 'xn--bcher-kva.a.test', 'XN--BCHER-KVA.a.test.'] as const
const HOST = 'xn--bcher-kva.a.test.'
const uidOf = ({ namespace }: Tenant) => `dnsendpoint/uid-${namespace}`

const objectOf = (tenant: Tenant) => ({
  metadata: {
    name: 'shop',
    namespace: tenant.namespace,
    uid: `uid-${tenant.namespace}`,
    generation: 1,
    creationTimestamp: new Date(tenant.createdAt).toISOString(),
    annotations: { 'seamark.io/approve': 'true' },
  },
  spec: { endpoints: [{ dnsName: tenant.dnsName, recordType: 'A', recordTTL: 60, targets: [tenant.address] }] },
})

/** A zone to which several plans are applied in order. */
class Zone {
  sets: ObservedRRset[] = []
  state: GuardState = EMPTY_STATE
  now = NOW
  #number = NOW

  sync(tenants: readonly Tenant[], gone: readonly Tenant[] = []): Plan {
    const { desired } = desiredOf(tenants.map(objectOf), 300, OPEN_RULES)
    const sources = { present: new Set(tenants.map(uidOf)), gone: new Set(gone.map(uidOf)) }
    const number = ++this.#number
    const next = plan({ observed: this.sets, desired, sources, state: this.state, now: this.now, number })
    this.sets = applied(this.sets, next.changes)
    this.state = next.state
    return next
  }
  addressOf(name: string): string | undefined {
    return this.sets.find((set) => set.name === name && set.type === 'A')?.values[0]
  }
}

const tenants = fc
  .record({
    spellings: fc.tuple(fc.constantFrom(...SPELLINGS), fc.constantFrom(...SPELLINGS)),
    ages: fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 2 })),
    isReversed: fc.boolean(),
  })
  .map(({ spellings, ages, isReversed }) => {
    const [red, blue] = (['red', 'blue'] as const).map((namespace, index): Tenant => ({
      namespace,
      dnsName: spellings[index] ?? HOST,
      // Kubernetes times have a resolution of one second.
      createdAt: NOW - 1_000_000 + (ages[index] ?? 0) * 1000,
      address: `192.0.2.${index + 1}`,
    })) as [Tenant, Tenant]
    const isRedOlder =
      red.createdAt === blue.createdAt ? red.namespace < blue.namespace : red.createdAt < blue.createdAt
    const [winner, loser] = isRedOlder ? [red, blue] : [blue, red]
    return { winner, loser, order: isReversed ? [blue, red] : [red, blue] }
  })

describe('two tenants that request one host (T16)', () => {
  it('have one winner in every order: the oldest, then by namespace and name; the other gets a reason', () => {
    fc.assert(
      fc.property(tenants, ({ winner, loser, order }) => {
        const zone = new Zone()
        const { refused } = zone.sync(order)
        expect(zone.addressOf(HOST)).toBe(winner.address)
        expect(refused).toMatchObject([{ code: 'ClaimHeldByOther', source: uidOf(loser), name: HOST }])
        // Planning again changes nothing.
        expect(zone.sync(order.toReversed()).changes).toEqual([])
      }),
      { numRuns: 200 },
    )
  })

  it('hand over when the winner is gone and a grace period has passed, and not before; the name always resolves', () => {
    fc.assert(
      fc.property(tenants, ({ winner, loser, order }) => {
        const zone = new Zone()
        zone.sync(order)
        // Not in the cache, and not confirmed gone: the winner keeps the name.
        expect(zone.sync([loser]).changes).toEqual([])
        const first = zone.sync([loser], [winner])
        expect(first.refused).toMatchObject([{ code: 'ClaimPending', until: NOW + DEFAULT_LIMITS.handoverMs }])
        zone.now += DEFAULT_LIMITS.handoverMs - 1
        zone.sync([loser], [winner])
        expect(zone.addressOf(HOST)).toBe(winner.address)
        zone.now += 1
        zone.sync([loser], [winner])
        expect(zone.addressOf(HOST)).toBe(loser.address)
      }),
      { numRuns: 200 },
    )
  })

  it('when the other one is deleted first, the winner is unaffected', () => {
    fc.assert(
      fc.property(tenants, ({ winner, loser, order }) => {
        const zone = new Zone()
        zone.sync(order)
        const after = zone.sync([winner], [loser])
        expect(after.changes).toEqual([])
        expect(after.refused).toEqual([])
        zone.sync([], [winner, loser])
        expect(zone.addressOf(HOST)).toBeUndefined()
      }),
      { numRuns: 200 },
    )
  })

  it('an older tenant that is added later waits as well: what is published stays', () => {
    fc.assert(
      fc.property(tenants, ({ winner, loser }) => {
        const zone = new Zone()
        zone.sync([loser])
        const late = zone.sync([winner, loser])
        expect(zone.addressOf(HOST)).toBe(loser.address)
        expect(late.refused.map(({ code }) => code).sort()).toEqual(['ClaimHeldByOther', 'ClaimPending'])
      }),
      { numRuns: 200 },
    )
  })

  it('a wildcard of one and an exact name of the other coexist', () => {
    fc.assert(
      fc.property(tenants, ({ winner, loser, order }) => {
        const zone = new Zone()
        const wide = { ...loser, dnsName: '*.a.test' }
        const both = order.map((tenant) => (tenant === loser ? wide : tenant))
        expect(zone.sync(both).refused).toEqual([])
        expect([zone.addressOf(HOST), zone.addressOf('*.a.test.')]).toEqual([winner.address, loser.address])
        zone.sync([wide], [winner])
        expect([zone.addressOf(HOST), zone.addressOf('*.a.test.')]).toEqual([undefined, loser.address])
      }),
      { numRuns: 200 },
    )
  })
})
