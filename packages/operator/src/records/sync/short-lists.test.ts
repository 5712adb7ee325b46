/** T6: source lists that are truncated or empty are never taken for deletions. */
import type { Client } from '@seamark/kube'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applied, NOW, owned, plan, record, source, want } from '../../../testing/plan-fixture.ts'
import type { RRset } from '../../rrset/rrset.ts'
import { checkSources } from './sources/source-check.ts'

const PAGE = 500
const signal = new AbortController().signal
const uidOf = (index: number) => `dnsendpoint/uid-${index}`
const setOf = (index: number): RRset => record(`n${index}`, 'A', ['192.0.2.1'])
const zoneOf = (count: number) =>
  Array.from({ length: count }, (_, index) => owned(setOf(index), { source: uidOf(index), plan: NOW })).flat()

/** The response to a list request: so many of the objects, or a failure at this page. */
type Answer = { readonly kept: number; readonly from?: number } | { readonly failsAtPage: number }

/** An API server whose lists return the given answers in order, and then the complete list. */
function clientOf(count: number, answers: readonly Answer[], definition: object = {}): Client {
  const left = [...answers]
  let current: Answer = { kept: count }
  const fake = {
    async list(_kind: unknown, options: { continue?: string }) {
      const begin = Number(options.continue ?? 0)
      if (begin === 0) current = left.shift() ?? { kept: count }
      if ('failsAtPage' in current && begin / PAGE >= current.failsAtPage - 1) throw new Error('HTTP 500')
      const kept = 'kept' in current ? current.kept : count
      const end = Math.min(kept, begin + PAGE)
      const items = Array.from({ length: Math.max(0, end - begin) }, (_, index) => ({
        metadata: { uid: `uid-${begin + index + ('from' in current ? (current.from ?? 0) : 0)}` },
      }))
      return { items, metadata: { continue: end < kept ? String(end) : '' } }
    },
    find: async () => ({ metadata: { creationTimestamp: new Date(NOW - 86_400_000).toISOString(), ...definition } }),
  }
  return fake as unknown as Client
}

/** The cache contains `cachedCount` of them, the live lists return `answers`; returns the zone after one plan. */
async function syncOnce(count: number, cachedCount: number, answers: readonly Answer[]) {
  const observed = zoneOf(count)
  const seen = Array.from({ length: cachedCount }, (_, index) => index)
  const owners = new Map(Array.from({ length: count }, (_, index) => [uidOf(index), NOW]))
  const present = new Set(seen.map(uidOf))
  const sources = await checkSources(clientOf(count, answers), { owned: owners, present, now: NOW }, signal)
  const desired = seen.map((index) => want(setOf(index), source(uidOf(index))))
  const next = plan({ observed, desired, sources })
  return { next, lost: observed.length - applied(observed, next.changes).length }
}

describe('short lists of sources (T6)', () => {
  it('a cache that lost any number of objects deletes nothing while the live list contains them', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 1200 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (count, share) => {
          const { lost } = await syncOnce(count, Math.floor(count * share), [])
          expect(lost).toBe(0)
        },
      ),
      { numRuns: 50 },
    )
  })

  it('a live list that is short or empty is requested again, and only objects missing in both lists are gone', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 20, max: 1200 }),
        fc.double({ min: 0, max: 0.69, noNaN: true }),
        async (count, share) => {
          const kept = Math.floor(count * share)
          expect((await syncOnce(count, kept, [{ kept }])).lost).toBe(0)
        },
      ),
      { numRuns: 50 },
    )
  })

  it('two lists that both miss many objects open the breaker: nothing is deleted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 20, max: 600 }),
        fc.double({ min: 0, max: 0.69, noNaN: true }),
        async (count, share) => {
          const kept = Math.floor(count * share)
          const { next, lost } = await syncOnce(count, kept, [{ kept }, { kept }])
          expect(lost).toBe(0)
          expect(new Set(next.refused.map(({ code }) => code))).toEqual(new Set(['ShrinkBreakerOpen']))
        },
      ),
      { numRuns: 50 },
    )
  })

  it('two short lists that miss different objects confirm only what is missing in both', async () => {
    const owners = new Map(Array.from({ length: 30 }, (_, index) => [uidOf(index), NOW]))
    // The first list lacks the last fifteen, the second one the first fourteen.
    const client = clientOf(30, [{ kept: 15 }, { kept: 15, from: 14 }])
    const { gone } = await checkSources(client, { owned: owners, present: new Set(), now: NOW }, signal)
    expect([...owners.keys()].filter((uid) => gone.has(uid))).toEqual([uidOf(29)])
  })

  it('nothing is confirmed while the kind is being deleted', async () => {
    const owners = new Map(Array.from({ length: 3 }, (_, index) => [uidOf(index), NOW]))
    const confirmed = async (definition: object) => {
      const client = clientOf(3, [{ kept: 0 }, { kept: 0 }], definition)
      const { gone } = await checkSources(client, { owned: owners, present: new Set(), now: NOW }, signal)
      return [...owners.keys()].filter((uid) => gone.has(uid)).length
    }
    expect(await confirmed({})).toBe(3)
    expect(await confirmed({ deletionTimestamp: new Date(NOW).toISOString() })).toBe(0)
  })

  it('a list whose second or third page fails is discarded: there is no plan', async () => {
    for (const failsAtPage of [1, 2, 3]) await expect(syncOnce(1200, 10, [{ failsAtPage }])).rejects.toThrow('HTTP 500')
    await expect(syncOnce(1200, 10, [{ kept: 10 }, { failsAtPage: 2 }])).rejects.toThrow('HTTP 500')
  })
})
