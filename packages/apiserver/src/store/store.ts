/**
 * The store: one revision counter, one sorted collection per resource, and the history that implements exact lists,
 * pagination, watch resumption and 410.
 *
 * Flow: a write path decides, then calls `put` or `remove`; the collection's subscribers are called synchronously, in
 * revision order.
 * Guarantees: one turn of the event loop is one transaction; revisions increase by one and are never reused; `Change`s
 * of a collection are in revision order; a list at revision R returns exactly the state after R or fails with
 * "compacted".
 * Caveats: history is bounded by `historyLimit` changes, `historyBytes` and `historyMs`; older changes are compacted.
 */
import type { Clock } from '../clock.ts'
import { type ApiObject, isSameJson, withMetadata } from '../codec/object-shape.ts'
import type { Durability, RestoredObject } from './durability.ts'
import { SortedKeys } from './sorted-keys.ts'
import { RecentObjects, Stored } from './stored-object.ts'

/** Bytes of one object, the default of etcd (--max-request-bytes). */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024
/** Maximum number of changes in the history. */
export const HISTORY_LIMIT = 100_000
/** Maximum bytes of the objects in the history. */
export const HISTORY_BYTES = 256 * 1024 * 1024
/** Maximum age of a change: the compaction interval of kube-apiserver. */
export const HISTORY_MS = 300_000
/** Maximum number of cached parsed objects, and the bytes of their bodies. */
const RECENT_OBJECTS = 1024
export const RECENT_BYTES = 32 * 1024 * 1024

/** Bytes of all objects, the default of etcd (--quota-backend-bytes). */
export const STORE_BYTES = 2 * 1024 * 1024 * 1024

/** The store rejects a write, with the message of kube-apiserver when etcd does. */
export class StoreRefusal extends Error {}

export class ObjectTooLarge extends StoreRefusal {
  constructor() {
    super('etcdserver: request is too large')
  }
}

/** Deletions, and updates that make an object no larger, pass. */
export class StoreFull extends StoreRefusal {
  constructor() {
    super('etcdserver: mvcc: database space exceeded')
  }
}

export interface Change {
  readonly resourceVersion: number
  readonly type: 'create' | 'update' | 'delete'
  readonly key: string
  readonly previous: Stored | undefined
  /** After the change; for a delete the last state, at the revision of the delete. */
  readonly current: Stored
  readonly timeMs: number
  readonly collection: Collection
}

/** First-in first-out with cheap access by index. */
class Log {
  #items: Change[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  at(index: number): Change | undefined {
    return this.#items[this.#head + index]
  }

  push(change: Change): void {
    this.#items.push(change)
  }

  shift(): Change | undefined {
    const first = this.#items[this.#head]
    if (first === undefined) return undefined
    this.#head += 1
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return first
  }
}

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
  readonly #log = new Log()
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
    const change: Change = {
      resourceVersion,
      type,
      key,
      previous,
      current,
      timeMs: this.#store.now(),
      collection: this,
    }
    this.#store.durability?.append(this.id, key, type === 'delete' ? undefined : current, resourceVersion)
    this.#log.push(change)
    this.#store.remember(change)
    for (const subscriber of this.#subscribers) subscriber(change)
    this.#store.announce(change)
  }

  /** Adds an object of an earlier process. It is not a change: no history, and no subscriber is called. */
  load(stored: Stored): void {
    this.#store.grow(stored.body.length, { isForced: true })
    this.#items.set(stored.key, stored)
    this.#keys.add(stored.key)
  }

  /** Calls the subscribers for an object of an earlier process, as for one that is created. */
  announceLoaded(stored: Stored): void {
    const { key, resourceVersion } = stored
    const change: Change = {
      resourceVersion,
      type: 'create',
      key,
      previous: undefined,
      current: stored,
      timeMs: this.#store.now(),
      collection: this,
    }
    for (const subscriber of this.#subscribers) subscriber(change)
    this.#store.announce(change)
  }

  /** Calls `listener` with every later change, in order, synchronously. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#subscribers.add(listener)
    return () => this.#subscribers.delete(listener)
  }

  /** Changes after a revision that is not compacted, oldest first. */
  *changesSince(revision: number): Generator<Change> {
    for (let index = this.#firstAfter(revision); index < this.#log.length; index += 1)
      yield this.#log.at(index) as Change
  }

  #firstAfter(revision: number): number {
    let low = 0
    let high = this.#log.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#log.at(middle) as Change).resourceVersion <= revision) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Discards the oldest change. Only the store calls it, in global order. */
  forgetOldest(): void {
    const oldest = this.#log.shift()
    if (oldest !== undefined) this.compactedRevision = Math.max(this.compactedRevision, oldest.resourceVersion)
  }

  /** Objects in key order. With a revision, the state as of it: the current state with the later changes undone. */
  range(request: RangeRequest): Page {
    const { namespace, limit, matches } = request
    const from = request.after === undefined ? (namespace === '' ? '' : `${namespace}/`) : `${request.after}\0`
    const to = namespace === '' ? undefined : `${namespace}0`
    const undone = request.revision === undefined ? undefined : this.#undo(request.revision, from, to)
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

  #undo(revision: number, from: string, to: string | undefined): Map<string, Stored | undefined> {
    const undone = new Map<string, Stored | undefined>()
    for (let index = this.#log.length - 1; index >= 0; index -= 1) {
      const change = this.#log.at(index) as Change
      if (change.resourceVersion <= revision) break
      if (change.key >= from && (to === undefined || change.key < to)) undone.set(change.key, change.previous)
    }
    return undone
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

export interface StoreOptions {
  readonly clock: Clock
  /** Maximum number of changes in the history. @default 100 000 */
  readonly historyLimit?: number
  /** Maximum bytes of the objects in the history. @default 256 MiB */
  readonly historyBytes?: number
  /** Maximum age of a change. @default 5 min, the compaction interval of kube-apiserver */
  readonly historyMs?: number
  /** Where changes are made durable. @default they are in memory only */
  readonly durability?: Durability
  /** Maximum bytes of all objects. @default 2 GiB, as etcd */
  readonly storeBytes?: number
}

export class Store {
  readonly durability: Durability | undefined
  readonly recent = new RecentObjects(RECENT_OBJECTS, RECENT_BYTES)
  readonly #collections = new Map<string, Collection>()
  readonly #history = new Log()
  readonly #clock: Clock
  readonly #historyLimit: number
  readonly #historyBytes: number
  readonly #historyMs: number
  readonly #storeBytes: number
  readonly #listeners = new Set<(change: Change) => void>()
  #revision = 1
  #compacted = 0
  /** Bytes of the objects in the history, each at the change that wrote it. */
  #keptBytes = 0
  /** Bytes of the objects as they are now. */
  #bytes = 0

  constructor(options: StoreOptions) {
    this.#clock = options.clock
    this.durability = options.durability
    this.#historyLimit = options.historyLimit ?? HISTORY_LIMIT
    this.#historyBytes = options.historyBytes ?? HISTORY_BYTES
    this.#historyMs = options.historyMs ?? HISTORY_MS
    this.#storeBytes = options.storeBytes ?? STORE_BYTES
  }

  get revision(): number {
    return this.#revision
  }

  collection(id: string): Collection {
    let collection = this.#collections.get(id)
    if (collection === undefined) {
      collection = new Collection(id, this, this.#compacted)
      this.#collections.set(id, collection)
    }
    return collection
  }

  collections(): IterableIterator<Collection> {
    return this.#collections.values()
  }

  /**
   * Continues after an earlier process: its objects with their revisions. The history is not kept, so a watch or a list
   * at an older revision is answered with 410.
   */
  restore(objects: readonly RestoredObject[], revision: number): void {
    this.#revision = revision
    this.compact(revision)
    for (const { collection, stored } of objects) this.collection(collection).load(stored)
    for (const { collection, stored } of objects) this.collection(collection).announceLoaded(stored)
  }

  nextRevision(): number {
    this.#revision += 1
    return this.#revision
  }

  now(): number {
    return this.#clock.now()
  }

  /** Calls `listener` with every change of every collection, synchronously. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Counts bytes, or throws `StoreFull`. */
  grow(bytes: number, { isForced = false } = {}): void {
    if (!isForced && bytes > 0 && this.#bytes + bytes > this.#storeBytes) throw new StoreFull()
    this.#bytes += bytes
  }

  remember(change: Change): void {
    this.#history.push(change)
    this.#keptBytes += change.current.body.length
    this.#trim(change)
  }

  announce(change: Change): void {
    for (const listener of this.#listeners) listener(change)
  }

  #trim(change: Change): void {
    const horizon = change.timeMs - this.#historyMs
    for (let oldest = this.#history.at(0); oldest !== undefined; oldest = this.#history.at(0)) {
      const isWithinLimits = this.#history.length <= this.#historyLimit && this.#keptBytes <= this.#historyBytes
      if (isWithinLimits && oldest.timeMs >= horizon) return
      this.#forget()
    }
  }

  /** Discards every change up to and including `revision`, as an etcd compaction does. */
  compact(revision: number = this.#revision): void {
    for (let oldest = this.#history.at(0); oldest !== undefined; oldest = this.#history.at(0)) {
      if (oldest.resourceVersion > revision) break
      this.#forget()
    }
    this.#compacted = Math.max(this.#compacted, revision)
    for (const collection of this.#collections.values()) {
      collection.compactedRevision = Math.max(collection.compactedRevision, revision)
    }
  }

  #forget(): void {
    const oldest = this.#history.shift()
    if (oldest === undefined) return
    this.#keptBytes -= oldest.current.body.length
    this.#compacted = Math.max(this.#compacted, oldest.resourceVersion)
    oldest.collection.forgetOldest()
  }
}
