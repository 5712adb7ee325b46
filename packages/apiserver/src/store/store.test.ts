import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../clock.ts'
import { type Change } from './change-log.ts'
import { MAX_OBJECT_BYTES } from './collection.ts'
import { ObjectTooLarge, StoreFull } from './store-refusal.ts'
import { RECENT_BYTES, Store } from './store.ts'

const object = (name: string, value: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { value },
})

type Step = { key: string; value: number | undefined }
const steps = fc.array(
  fc.record({
    key: fc.constantFrom('n/a', 'n/b', 'm/a', 'n-x/a', 'n/c'),
    value: fc.option(fc.nat(9), { nil: undefined }),
  }),
  { maxLength: 60 },
)

function perform(store: Store, all: readonly Step[]): Map<number, Map<string, number>> {
  const collection = store.collection('configmaps')
  const states = new Map<number, Map<string, number>>([[store.revision, new Map()]])
  const state = new Map<string, number>()
  for (const { key, value } of all) {
    if (value === undefined) {
      collection.remove(key)
      state.delete(key)
    } else {
      collection.put(key, object(key, value))
      state.set(key, value)
    }
    states.set(store.revision, new Map(state))
  }
  return states
}

describe('Store', () => {
  it('lists exactly the state of every revision, by namespace and in pages', () => {
    fc.assert(
      fc.property(
        steps,
        fc.constantFrom('', 'n', 'm', 'n-x'),
        fc.integer({ min: 1, max: 3 }),
        (all, namespace, limit) => {
          const store = new Store({ clock: systemClock })
          const states = perform(store, all)
          for (const [revision, state] of states) {
            const expected = [...state.keys()]
              .filter((key) => namespace === '' || key.startsWith(`${namespace}/`))
              .sort()
            const seen: string[] = []
            let after: string | undefined
            for (;;) {
              const page = store
                .collection('configmaps')
                .range({ namespace, limit, revision, ...(after !== undefined && { after }) })
              seen.push(...page.items.map((stored) => stored.key))
              expect(page.remaining).toBe(expected.length - seen.length)
              if (page.lastKey === undefined) break
              after = page.lastKey
            }
            expect(seen).toEqual(expected)
          }
        },
      ),
      { numRuns: 100 },
    )
  })

  it('replays the changes after any revision to the current state', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const store = new Store({ clock: systemClock })
        const states = perform(store, all)
        const present = [...states.values()].at(-1) as Map<string, number>
        for (const [revision, state] of states) {
          const replayed = new Map(state)
          for (const change of store.collection('configmaps').changesSince(revision)) {
            if (change.type === 'delete') replayed.delete(change.key)
            else replayed.set(change.key, (change.current.object['data'] as { value: number }).value)
          }
          expect(replayed).toEqual(present)
        }
      }),
      { numRuns: 100 },
    )
  })

  it('calls subscribers with every change in order, synchronously with the write', () => {
    const store = new Store({ clock: systemClock })
    const seen: Change[] = []
    store.collection('x').subscribe((change) => seen.push(change))
    store.collection('x').put('a', object('a', 1))
    store.collection('x').put('a', object('a', 2))
    store.collection('x').remove('a')
    expect(seen.map((change) => change.type)).toEqual(['create', 'update', 'delete'])
    expect(seen.map((change) => change.resourceVersion)).toEqual([2, 3, 4])
    expect(seen[2]?.current.object.metadata.resourceVersion).toBe('4')
  })

  it('discards changes beyond its history limit, oldest first, over all collections', () => {
    const store = new Store({ clock: systemClock, historyLimit: 3 })
    for (let index = 0; index < 4; index += 1)
      store.collection(index % 2 === 0 ? 'x' : 'y').put(`k${index}`, object('k', index))
    expect(store.collection('x').compactedRevision).toBe(2)
    expect(store.collection('y').compactedRevision).toBe(0)
    expect([...store.collection('x').changesSince(0)].map((change) => change.key)).toEqual(['k2'])
  })

  it('discards changes beyond the bytes of its history, and limits the bytes of cached parsed objects', () => {
    const store = new Store({ clock: systemClock, historyBytes: 3 * 1024 * 1024 })
    const collection = store.collection('x')
    const big = { ...object('big', 1), data: { text: 'x'.repeat(1024 * 1024) } }
    for (let index = 0; index < 100; index += 1) collection.put(`k${index % 50}`, big)
    expect([...collection.changesSince(0)].map((change) => change.key)).toEqual(['k48', 'k49'])
    expect(collection.compactedRevision).toBe(store.revision - 2)
    const parsed = [...collection.values()].filter((stored) => stored.parsed !== undefined)
    expect(parsed.length * 1024 * 1024).toBeLessThanOrEqual(RECENT_BYTES)
    expect(parsed.length).toBeGreaterThan(10)
  })

  it("rejects an object that exceeds etcd's limit, and changes nothing", () => {
    const store = new Store({ clock: systemClock })
    const collection = store.collection('x')
    const huge = { ...object('huge', 1), data: { text: 'x'.repeat(MAX_OBJECT_BYTES) } }
    expect(() => collection.put('huge', huge)).toThrow(ObjectTooLarge)
    expect([collection.get('huge'), store.revision]).toEqual([undefined, 1])
  })

  it("rejects writes beyond etcd's quota, and no deletion or update that needs no more space", () => {
    const store = new Store({ clock: systemClock, storeBytes: 1_000 })
    const collection = store.collection('x')
    const sized = (name: string, bytes: number) => ({ ...object(name, 1), data: { text: 'x'.repeat(bytes) } })
    collection.put('a', sized('a', 600))
    expect(() => collection.put('b', sized('b', 400))).toThrow(StoreFull)
    expect(() => collection.put('a', sized('a', 950))).toThrow('etcdserver: mvcc: database space exceeded')
    expect([collection.get('b'), collection.get('a')?.object['data'], store.revision]).toEqual([
      undefined,
      { text: 'x'.repeat(600) },
      2,
    ])
    collection.put('a', sized('a', 500))
    collection.remove('a')
    for (let round = 0; round < 5; round++) {
      collection.put('b', sized('b', 800))
      collection.remove('b')
    }
    // A schema that adds fields changes the served form of what is there: that is no write.
    collection.put('c', sized('c', 800))
    collection.reread((now) => ({ ...now, more: 'x'.repeat(500) }))
    expect(() => collection.put('d', object('d', 1))).toThrow(StoreFull)
    collection.remove('c')
    const last = collection.put('d', sized('d', 800))
    // What an earlier process left counts, also beyond the quota.
    const next = new Store({ clock: systemClock, storeBytes: 500 })
    next.restore([{ collection: 'x', stored: last }], store.revision)
    expect(() => next.collection('x').put('e', object('e', 1))).toThrow(StoreFull)
    next.collection('x').remove('d')
    next.collection('x').put('e', object('e', 1))
  })

  it('compacts also a collection that is used for the first time later', () => {
    const store = new Store({ clock: systemClock })
    store.collection('x').put('a', object('a', 1))
    store.compact()
    expect(store.collection('later').compactedRevision).toBe(store.revision)
  })

  it('discards changes beyond the maximum age', () => {
    let now = 0
    const store = new Store({ clock: { ...systemClock, now: () => now }, historyMs: 1000 })
    store.collection('x').put('a', object('a', 1))
    now = 5000
    store.collection('x').put('b', object('b', 1))
    expect([...store.collection('x').changesSince(0)].map((change) => change.key)).toEqual(['b'])
  })

  it('returns an object whose parsed form was dropped', () => {
    const store = new Store({ clock: systemClock })
    const collection = store.collection('x')
    collection.put('first', object('first', 7))
    for (let index = 0; index < 2000; index += 1) collection.put(`k${index}`, object('k', index))
    expect(collection.get('first')?.parsed).toBeUndefined()
    expect(collection.get('first')?.object).toMatchObject({ kind: 'ConfigMap', data: { value: 7 } })
  })
})
