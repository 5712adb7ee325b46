/**
 * The store: one revision counter, one sorted collection per resource (collection.ts), and the history that implements exact
 * lists, pagination, watch resumption and 410 (history.ts).
 *
 * Guarantees: one turn of the event loop is one transaction; revisions increase by one and are never reused; a list at
 * revision R returns exactly the state after R or fails with "compacted".
 * Caveats: history is bounded by `historyLimit` changes, `historyBytes` and `historyMs`; older changes are compacted.
 */
import type { Clock } from '../clock.ts'
import type { Change } from './change-log.ts'
import { Collection } from './collection.ts'
import type { Durability, RestoredObject } from './durability.ts'
import { History, type HistoryLimits } from './history.ts'
import { StoreFull } from './store-refusal.ts'
import { RecentObjects } from './stored-object.ts'

/** Maximum number of cached parsed objects, and the bytes of their bodies. */
const RECENT_OBJECTS = 1024
export const RECENT_BYTES = 32 * 1024 * 1024

/** Bytes of all objects, the default of etcd (--quota-backend-bytes). */
export const STORE_BYTES = 2 * 1024 * 1024 * 1024

export interface StoreOptions extends HistoryLimits {
  readonly clock: Clock
  /** Where changes are made durable. @default they are in memory only */
  readonly durability?: Durability
  /** Maximum bytes of all objects. @default 2 GiB, as etcd */
  readonly storeBytes?: number
}

export class Store {
  readonly durability: Durability | undefined
  readonly history: History
  readonly recent = new RecentObjects(RECENT_OBJECTS, RECENT_BYTES)
  readonly #collections = new Map<string, Collection>()
  readonly #clock: Clock
  readonly #storeBytes: number
  readonly #listeners = new Set<(change: Change) => void>()
  #revision = 1
  /** Bytes of the objects as they are now. */
  #bytes = 0

  constructor(options: StoreOptions) {
    this.#clock = options.clock
    this.durability = options.durability
    this.history = new History(options)
    this.#storeBytes = options.storeBytes ?? STORE_BYTES
  }

  get revision(): number {
    return this.#revision
  }

  collection(id: string): Collection {
    let collection = this.#collections.get(id)
    if (collection === undefined) {
      collection = new Collection(id, this, this.history.compactedRevision)
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

  announce(change: Change): void {
    for (const listener of this.#listeners) listener(change)
  }

  /** Discards every change up to and including `revision`, as an etcd compaction does. */
  compact(revision: number = this.#revision): void {
    this.history.compact(revision)
    for (const collection of this.#collections.values()) {
      collection.compactedRevision = Math.max(collection.compactedRevision, revision)
    }
  }
}
