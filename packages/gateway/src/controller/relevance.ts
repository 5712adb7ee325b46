/** Which changes of objects need another build: those that can change its result. */
import { anyOf, annotationsChanged, labelsChanged, specChanged, type Predicate } from '@seamark/kube'
import { keyOf, type Immutable, type Kind, type Obj } from '@seamark/kube/object'
import { refOf } from '../draft/input.ts'

type Change = Parameters<Predicate<Obj>>[0]

/** Changes of status and of managed fields alone are left out. */
export const routeChanged: Predicate<Obj> = anyOf(specChanged, annotationsChanged)

/** A build looked for this object, whether it found it or not. */
export function whenReferenced<T extends Obj>(
  kind: Kind<T>,
  isReferenced: (ref: string) => boolean,
  changed: Predicate<T>,
): Predicate<T> {
  return (change) => isReferenced(refOf(kind, keyOf(change.object))) && changed(change)
}

/** Compares a part of the object by content; resourceVersion moves also without a change that matters. */
export function partChanged<T extends Obj>(part: (object: Immutable<T>) => unknown): Predicate<T> {
  return (change) => {
    if (change.type !== 'updated') return true
    return JSON.stringify(part(change.old)) !== JSON.stringify(part(change.object))
  }
}

export const namespaceLabelsChanged = (change: Change): boolean => labelsChanged(change)
