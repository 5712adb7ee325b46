/**
 * Status conditions, as in `metav1.Condition`.
 *
 * Invariant: `lastTransitionTime` changes only with `status`, so that a reconcile without changes writes nothing: an
 * unchanged list is returned as the same array.
 */
import type { Immutable } from './object.ts'

export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  /** CamelCase, machine-readable. */
  reason: string
  /** Human-readable. */
  message: string
  /** RFC 3339, seconds. */
  lastTransitionTime: string
  observedGeneration?: number
}

/** Replaces or appends the condition of `next.type`; the others keep their order. `nowMs` is the wall clock. */
export function setCondition(
  conditions: Immutable<Condition[]> | undefined,
  next: Omit<Condition, 'lastTransitionTime'>,
  nowMs: number,
): Immutable<Condition[]> {
  const list = conditions ?? []
  const before = findCondition(list, next.type)
  const lastTransitionTime = before?.status === next.status ? before.lastTransitionTime : timestamp(nowMs)
  const after: Condition = { ...next, lastTransitionTime }
  if (before === undefined) return [...list, after]
  return isSame(before, after) ? list : list.map((each) => (each === before ? after : each))
}

export function findCondition(
  conditions: Immutable<Condition[]> | undefined,
  type: string,
): Immutable<Condition> | undefined {
  return conditions?.find((condition) => condition.type === type)
}

export function isConditionTrue(conditions: Immutable<Condition[]> | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True'
}

/** Format of `metav1.Time`: no fraction of a second. */
export function timestamp(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`
}

/** Format of `metav1.MicroTime`. */
export function microTimestamp(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 23)}000Z`
}

function isSame(a: Immutable<Condition>, b: Immutable<Condition>): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration
  )
}
