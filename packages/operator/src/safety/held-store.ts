/**
 * Where the state of each scope is persisted: in ConfigMaps (config-map-store.ts), in a folder (file-store.ts), or in memory.
 * One process has one store (`joinStores`): zones of records beside the capabilities that write objects.
 */
import type { HeldState } from './held-change.ts'

export interface HeldStore<S extends HeldState = HeldState> {
  /** All states, by scope. */
  list(): Promise<ReadonlyMap<string, S>>
  load(scope: string): Promise<S>
  /**
   * Reads, changes and writes atomically; the return value of `change` is saved, unless it is its argument. `change` may
   * run several times, and on a version that is not the newest: only the result that is saved counts, or the last one.
   */
  update(scope: string, change: (state: S) => S): Promise<S>
}

/** The text form of a state. */
export interface StateCodec<S extends HeldState> {
  readonly empty: S
  /** `where` is for the error message. Throws on invalid content: a guard without its history is worse than one that stops. */
  readonly parse: (text: string, where: string) => S
  readonly print: (state: S) => string
  /** The scope that a state contains; undefined: none was recorded. */
  readonly scopeOf: (state: S) => string | undefined
}

export function memoryHeldStore<S extends HeldState>({ empty }: Pick<StateCodec<S>, 'empty'>): HeldStore<S> {
  const states = new Map<string, S>()
  return {
    list: async () => new Map(states),
    load: async (scope) => states.get(scope) ?? empty,
    update: async (scope, change) => {
      const next = change(states.get(scope) ?? empty)
      states.set(scope, next)
      return next
    },
  }
}

/** `records` has the zones, `objects` the scopes for which `isObjects` is true. Either may be absent. */
export function joinStores(
  records: HeldStore | undefined,
  objects: HeldStore | undefined,
  isObjects: (scope: string) => boolean,
): HeldStore {
  const storeOf = (scope: string): HeldStore => {
    const store = isObjects(scope) ? objects : records
    if (store === undefined) throw new TypeError(`no store has the scope ${scope}`)
    return store
  }
  return {
    async list() {
      const parts = await Promise.all([records?.list(), objects?.list()])
      return new Map(parts.flatMap((part) => [...(part ?? [])]))
    },
    load: async (scope) => storeOf(scope).load(scope),
    update: async (scope, change) => storeOf(scope).update(scope, change),
  }
}

/** The same store; `onChange` is called after each update that this process stored. */
export function observedStore<S extends HeldState>(store: HeldStore<S>, onChange: () => void): HeldStore<S> {
  return {
    ...store,
    update: async (scope, change) => {
      const state = await store.update(scope, change)
      onChange()
      return state
    },
  }
}
