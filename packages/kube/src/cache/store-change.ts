/**
 * The changes that a store reports to its subscribers, and how a new list is converted to changes.
 */
import { keyOf, type Immutable, type Key, type Obj } from '../object/object.ts'
import type { PartitionedMap } from './partitioned-map.ts'

export type StoreChange<T extends Obj> =
  | {
      readonly type: 'added'
      readonly object: Immutable<T>
      readonly initial: boolean
      /** The watch event carries a resourceVersion that a write of this process produced. */
      readonly isOwnWrite?: boolean
    }
  | {
      readonly type: 'updated'
      readonly old: Immutable<T>
      readonly object: Immutable<T>
      readonly isOwnWrite?: boolean
    }
  | { readonly type: 'deleted'; readonly object: Immutable<T> }

/**
 * The objects visible to readers, and for keys whose own write is newer than the watch, the last object of the watch
 * (undefined: none).
 */
export interface View<T extends Obj> {
  readonly visible: PartitionedMap<Immutable<T>>
  readonly shadow: ReadonlyMap<Key, Immutable<T> | undefined>
}

export function isSameVersion(
  a: { metadata: Obj['metadata'] | Immutable<Obj['metadata']> },
  b: { metadata: Obj['metadata'] | Immutable<Obj['metadata']> },
): boolean {
  return a.metadata.resourceVersion === b.metadata.resourceVersion && a.metadata.uid === b.metadata.uid
}

export function* initialChanges<T extends Obj>(objects: Iterable<Immutable<T>>): IterableIterator<StoreChange<T>> {
  for (const object of objects) yield { type: 'added', object, initial: true }
}

/** Objects created by own writes that the watch has not reported. */
function* unreported<T extends Obj>({ visible, shadow }: View<T>): IterableIterator<Immutable<T>> {
  for (const [key, reported] of shadow) {
    const shown = reported === undefined ? visible.get(key) : undefined
    if (shown !== undefined) yield shown
  }
}

/** The objects as last reported by the watch. */
export function* watched<T extends Obj>({ visible, shadow }: View<T>): IterableIterator<Immutable<T>> {
  for (const [key, object] of visible) if (!shadow.has(key)) yield object
  for (const object of shadow.values()) if (object !== undefined) yield object
}

/** A deletion of every object, including those visible only because of own writes. */
export function deletionsOf<T extends Obj>(view: View<T>): StoreChange<T>[] {
  return [...watched(view), ...unreported(view)].map((object) => ({ type: 'deleted', object }))
}

/**
 * Changes from the previous watch view (without the overlay of own writes) to a new list.
 * @param isShown whether readers see the key now: an object visible only because of an own write is deleted unless it
 * is still shown
 */
export function differences<T extends Obj>(
  before: View<T>,
  listed: PartitionedMap<Immutable<T>>,
  isShown: (key: Key) => boolean,
): StoreChange<T>[] {
  const { visible, shadow } = before
  const changes: StoreChange<T>[] = []
  const watchedObject = (key: Key) => (shadow.has(key) ? shadow.get(key) : visible.get(key))
  const reportDeleted = (key: Key) => {
    const old = watchedObject(key)
    if (old === undefined) return
    const now = listed.get(key)
    // Deleted and recreated under the same name: two changes, as in the watch.
    if (now === undefined || now.metadata.uid !== old.metadata.uid) changes.push({ type: 'deleted', object: old })
  }
  for (const key of visible.keys()) reportDeleted(key)
  for (const key of shadow.keys()) if (!visible.has(key)) reportDeleted(key)
  for (const [key, object] of listed) {
    const old = watchedObject(key)
    const written = shadow.has(key) ? visible.get(key) : undefined
    const isOwnWrite = written !== undefined && isSameVersion(written, object)
    if (old === undefined || old.metadata.uid !== object.metadata.uid)
      changes.push({ type: 'added', object, initial: false, isOwnWrite })
    else if (!isSameVersion(old, object)) changes.push({ type: 'updated', old, object, isOwnWrite })
  }
  for (const object of unreported(before)) if (!isShown(keyOf(object))) changes.push({ type: 'deleted', object })
  return changes
}
