/**
 * Predicates select the changes of a watched object that cause a reconcile. They filter events, not state: a key that
 * is queued for another reason is reconciled regardless.
 */
import type { Change } from '../cache/informer.ts'
import type { Obj } from '../object/object.ts'

export type Predicate<T extends Obj> = (change: Change<T>) => boolean

/**
 * Rejects changes of status or metadata only; accepts the start of a deletion. Kinds without a generation are always
 * accepted.
 */
export function specChanged(change: Change<Obj>): boolean {
  if (change.type !== 'updated') return true
  const [old, now] = [change.old.metadata, change.object.metadata]
  return (
    now.generation === undefined || old.generation !== now.generation || old.deletionTimestamp !== now.deletionTimestamp
  )
}

export function labelsChanged(change: Change<Obj>): boolean {
  if (change.type !== 'updated') return true
  return !isSameMap(change.old.metadata.labels, change.object.metadata.labels)
}

export function annotationsChanged(change: Change<Obj>): boolean {
  if (change.type !== 'updated') return true
  return !isSameMap(change.old.metadata.annotations, change.object.metadata.annotations)
}

export function anyOf<T extends Obj>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.some((isWanted) => isWanted(change))
}

export function allOf<T extends Obj>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.every((isWanted) => isWanted(change))
}

type StringMap = Readonly<Record<string, string>>

function isSameMap(a: StringMap = {}, b: StringMap = {}): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key])
}
