/**
 * The one order of age, with which every claim of a name is decided (INV-14): the oldest object first, then by namespace, name
 * and kind. Creation times have seconds, so the objects of one `kubectl apply` have the same; the rest of the key gives one name to
 * the same object on every replica, in every capability and after every restart.
 */
import type { Immutable, Kind, Obj } from '@seamark/kube/object'

export interface Aged {
  /** RFC 3339, as the API server writes it; '' is not created yet, and younger than all that are. */
  readonly createdAt: string
  readonly namespace: string
  readonly name: string
  readonly kind: string
}

interface AgedObject {
  readonly metadata: Pick<Immutable<Obj['metadata']>, 'creationTimestamp' | 'namespace' | 'name'>
}

export function ageOf({ kind }: Pick<Kind, 'kind'>, { metadata }: AgedObject): Aged {
  const { creationTimestamp: createdAt = '', namespace = '', name = '' } = metadata
  return { createdAt, namespace, name, kind }
}

/** Negative: `a` is older, and owns what both claim. 0 only for one object. */
export function compareAge(a: Aged, b: Aged): number {
  return (
    Number(a.createdAt === '') - Number(b.createdAt === '') ||
    compareText(a.createdAt, b.createdAt) ||
    compareText(a.namespace, b.namespace) ||
    compareText(a.name, b.name) ||
    compareText(a.kind, b.kind)
  )
}

/** Sorts objects of one kind, oldest first. */
export function byAge(kind: Pick<Kind, 'kind'>): (a: AgedObject, b: AgedObject) => number {
  return (a, b) => compareAge(ageOf(kind, a), ageOf(kind, b))
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
