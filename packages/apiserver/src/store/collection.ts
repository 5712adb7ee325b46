/**
 * The objects of one resource, sorted by key, with the log of their changes.
 *
 * Flow: a write path decides, then calls `put` or `remove`; subscribers are called synchronously, in revision order.
 * Guarantees: changes are in revision order; a list at revision R returns exactly the state after R, where R is not compacted.
 */
import { type ApiObject, isSameJson, withMetadata } from '../codec/object-shape.ts'
import { type Change, ChangeLog } from './change-log.ts'
import { SortedKeys } from './sorted-keys.ts'
import type { Store } from './store.ts'
import { ObjectTooLarge } from './store-refusal.ts'
import { Stored } from './stored-object.ts'

/** Bytes of one object, the default of etcd (--max-request-bytes). */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024

export interface Page {
  readonly items: Stored[]
  /** Last key of the page when more follow. */
  readonly lastKey?: string
  /** Keys after the page, counted without selectors. */
  readonly remaining: number
}

export interface RangeRequest {
  /** '' lists every namespace. */
  readonly namespace: string
  /** Keys after this one only. */
  readonly after?: string
  /** 0 is no limit. */
  readonly limit: number
  /** Returns the state of this revision; undefined is the current state. */
  readonly revision?: number
  readonly matches?: (stored: Stored) => boolean
}

export class Collection {
  readonly id: string
  readonly #store: Store
  readonly #items = new Map<string, Stored>()
  /** The written form of objects whose served form differs since their schema changed. */
  readonly #written = new Map<string, Stored>()
  readonly #keys = new SortedKeys()
  readonly #log = new ChangeLog()
  readonly #subscribers = new Set<(change: Change) => void>()
  /** Changes up to and including this revision are compacted. */
  compactedRevision = 0

  constructor(id: string, store: Store, compactedRevision: number) {
    this.id = id
    this.#store = store
    this.compactedRevision = compactedRevision
  }

  get size(): number {
    return this.#items.size
  }

  get(key: string): Stored | undefined {
    return this.#items.get(key)
  }

  values(): IterableIterator<Stored> {
    return this.#items.values()
  }

  /** Stores `object` at `key` with the next revision, or throws a `StoreRefusal`. `isStale` as in `Stored`. */
  put(key: string, object: ApiObject, isStale = false): Stored {
    const previous = this.#items.get(key)
    const revision = this.#store.revision + 1
    const current = new Stored(key, revision, withMetadata(object, { resourceVersion: String(revision) }), isStale)
    if (current.body.length > MAX_OBJECT_BYTES) throw new ObjectTooLarge()
    this.#store.grow(current.body.length - (previous?.body.length ?? 0))
    this.#store.nextRevision()
    this.#store.recent.add(current)
    this.#items.set(key, current)
    this.#written.delete(key)
    if (previous === undefined) this.#keys.add(key)
    this.#record(previous === undefined ? 'create' : 'update', key, previous, current)
    return current
  }

  /** Removes `key`; returns its last state at the revision of the removal. `last` replaces that state. */
  remove(key: string, last?: ApiObject): Stored | undefined {
    const previous = this.#items.get(key)
    if (previous === undefined) return undefined
    const revision = this.#store.nextRevision()
    const object = withMetadata(last ?? previous.object, { resourceVersion: String(revision) })
    const current = new Stored(key, revision, object)
    this.#store.grow(-previous.body.length)
    this.#store.recent.add(current)
    this.#items.delete(key)
    this.#written.delete(key)
    this.#keys.delete(key)
    this.#record('delete', key, previous, current)
    return current
  }

  /**
   * Replaces the served form of every object by the result of `read`, at its current revision: no change is recorded
   * and no watch is notified. `read` receives the written form, so that fields it drops reappear when a later `read`
   * keeps them; undefined leaves the served form unchanged.
   */
  reread(read: (object: ApiObject) => ApiObject | undefined): void {
    for (const [key, served] of this.#items) {
      const written = this.#written.get(key) ?? served
      const object = read(structuredClone(written.object))
      if (object === undefined || isSameJson(object, served.object)) continue
      const isWritten = isSameJson(object, written.object)
      const now = isWritten ? written : new Stored(key, served.resourceVersion, object, true)
      this.#store.grow(now.body.length - served.body.length, { isForced: true })
      this.#items.set(key, now)
      if (isWritten) this.#written.delete(key)
      else this.#written.set(key, written)
    }
  }

  #record(type: Change['type'], key: string, previous: Stored | undefined, current: Stored): void {
    const { resourceVersion } = current
    const change = this.#change(type, previous, current)
    this.#store.durability?.append(this.id, key, type === 'delete' ? undefined : current, resourceVersion)
    this.#log.push(change)
    this.#store.history.add(change)
    this.#notify(change)
  }

  /** Adds an object of an earlier process. It is not a change: no history, and no subscriber is called. */
  load(stored: Stored): void {
    this.#store.grow(stored.body.length, { isForced: true })
    this.#items.set(stored.key, stored)
    this.#keys.add(stored.key)
  }

  /** Calls the subscribers for an object of an earlier process, as for one that is created. */
  announceLoaded(stored: Stored): void {
    this.#notify(this.#change('create', undefined, stored))
  }

  #change(type: Change['type'], previous: Stored | undefined, current: Stored): Change {
    const { key, resourceVersion } = current
    return { resourceVersion, type, key, previous, current, timeMs: this.#store.now(), collection: this }
  }

  #notify(change: Change): void {
    for (const subscriber of this.#subscribers) subscriber(change)
    this.#store.announce(change)
  }

  /** Calls `listener` with every later change, in order, synchronously. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#subscribers.add(listener)
    return () => this.#subscribers.delete(listener)
  }

  /** Changes after a revision that is not compacted, oldest first. */
  changesSince(revision: number): Generator<Change> {
    return this.#log.since(revision)
  }

  /** Discards the oldest change. Only the store calls it, in global order. */
  discardOldest(): void {
    const oldest = this.#log.shift()
    if (oldest !== undefined) this.compactedRevision = Math.max(this.compactedRevision, oldest.resourceVersion)
  }

  /** Objects in key order. With a revision, the state as of it: the current state with the later changes undone. */
  range(request: RangeRequest): Page {
    const { namespace, limit, matches } = request
    const from = request.after === undefined ? (namespace === '' ? '' : `${namespace}/`) : `${request.after}\0`
    const to = namespace === '' ? undefined : `${namespace}0`
    const undone = request.revision === undefined ? undefined : this.#log.undo(request.revision, from, to)
    const keys = undone === undefined ? this.#keys.range(from, to) : mergeKeys(this.#keys.range(from, to), undone)
    const items: Stored[] = []
    let visited = 0
    for (const key of keys) {
      const stored = undone?.has(key) === true ? undone.get(key) : this.#items.get(key)
      if (stored === undefined) continue
      if (limit > 0 && items.length === limit) {
        const total = this.#keys.count(from, to) + extraKeys(undone, this.#items)
        return { items, lastKey: (items.at(-1) as Stored).key, remaining: total - visited }
      }
      visited += 1
      if (matches === undefined || matches(stored)) items.push(stored)
    }
    return { items, remaining: 0 }
  }
}

function* mergeKeys(present: Iterable<string>, undone: ReadonlyMap<string, unknown>): Generator<string> {
  const extra = [...undone.keys()].sort()
  let at = 0
  for (const key of present) {
    for (; at < extra.length && (extra[at] as string) <= key; at += 1) if (extra[at] !== key) yield extra[at] as string
    yield key
  }
  yield* extra.slice(at)
}

/** Number of keys that the undone state has in addition to the current one. */
function extraKeys(
  undone: ReadonlyMap<string, Stored | undefined> | undefined,
  items: ReadonlyMap<string, Stored>,
): number {
  let extra = 0
  for (const [key, stored] of undone ?? []) extra += (stored === undefined ? 0 : 1) - (items.has(key) ? 1 : 0)
  return extra
}
