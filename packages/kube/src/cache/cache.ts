/**
 * Cached reads: synchronous, zero-copy, immutable. `Store` (store.ts) holds one watched set; informer.ts combines them.
 */
import type { Immutable, Key, Kind, Obj, Stored } from '../object/object.ts'

/** A named index of a kind, made by `Informers.index`. */
export interface Index<T extends Obj> {
  readonly kind: Kind<T>
  readonly name: string
}

/** Throws `NotSynced` before the first sync of that kind. Returned objects are shared and must not be modified. */
export interface Reader {
  get<T extends Obj>(kind: Kind<T>, key: Key): Immutable<Stored<T>> | undefined
  list<T extends Obj>(kind: Kind<T>, namespace?: string): readonly Immutable<Stored<T>>[]
  by<T extends Obj>(index: Index<T>, value: string): readonly Immutable<Stored<T>>[]
}
