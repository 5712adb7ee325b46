/** The objects of the in-memory cluster by kind, with their subscribers, their indexes and the state of their watch. */
import type { Change, InformerState, WatchFailure } from '../../cache/informer.ts'
import { OwnWrites } from '../../client/own-writes.ts'
import { NotSynced } from '../../errors.ts'
import { apiVersionOf, type Immutable, type Key, type Kind, kindName, type Obj } from '../../object/object.ts'

export interface MemoryStore {
  objects: Map<Key, Obj>
  handlers: Set<{ handle: (change: Change<Obj>) => void; onError?: ((error: unknown) => void) | undefined }>
  state: InformerState
  waiters: Set<() => void>
  indexes: Map<string, MemoryIndex>
  ownWrites: OwnWrites
  failure: WatchFailure | undefined
}

export interface MemoryIndex {
  readonly valuesOf: (object: Immutable<Obj>) => readonly string[]
  readonly keys: Map<string, Set<Key>>
}

/** Moves an object from its old values in the index to the new ones. */
export function indexObject(
  { valuesOf, keys }: MemoryIndex,
  key: Key,
  old: Obj | undefined,
  now: Obj | undefined,
): void {
  // As in the store of an informer: an object whose index function throws is in no list.
  const guarded = (object: Obj | undefined): readonly string[] => {
    try {
      return object === undefined ? [] : valuesOf(object)
    } catch {
      return []
    }
  }
  for (const value of guarded(old)) keys.get(value)?.delete(key)
  for (const value of guarded(now)) {
    const found = keys.get(value)
    if (found === undefined) keys.set(value, new Set([key]))
    else found.add(key)
  }
}

export const isSynced = (state: InformerState): boolean => state !== 'starting' && state !== 'syncing'

export class MemoryStores {
  readonly #stores = new Map<string, MemoryStore>()
  readonly #kinds = new Map<string, Kind>()
  /** Lookup without building a name: kinds are long-lived. */
  readonly #byKind = new WeakMap<Kind, MemoryStore>()

  of(kind: Kind): MemoryStore {
    return this.#byKind.get(kind) ?? this.#add(kind)
  }

  #add(kind: Kind): MemoryStore {
    this.#kinds.set(`${apiVersionOf(kind)} ${kind.kind}`, kind)
    let store = this.#stores.get(kindName(kind))
    if (store === undefined) {
      store = {
        objects: new Map(),
        handlers: new Set(),
        state: 'live',
        waiters: new Set(),
        indexes: new Map(),
        ownWrites: new OwnWrites(),
        failure: undefined,
      }
      this.#stores.set(kindName(kind), store)
    }
    this.#byKind.set(kind, store)
    return store
  }

  /** Throws `NotSynced` while the watch of the kind has not delivered its first list. */
  synced(kind: Kind): MemoryStore {
    const store = this.of(kind)
    if (!isSynced(store.state)) throw new NotSynced(`${kindName(kind)} is not synced`)
    return store
  }

  all(): IterableIterator<MemoryStore> {
    return this.#stores.values()
  }

  findKind(apiVersion: string, kind: string): Kind | undefined {
    return this.#kinds.get(`${apiVersion} ${kind}`)
  }
}

/** Calls the subscribers; one that throws is removed. */
export function notify(store: MemoryStore, change: Change<Obj>): void {
  for (const subscriber of store.handlers) {
    try {
      subscriber.handle(change)
    } catch (error) {
      store.handlers.delete(subscriber)
      subscriber.onError?.(error)
    }
  }
}
