/**
 * How long changes are collected before a root is reconciled for them. A reconcile reads and decides every leaf of its root:
 * without a batch, a change of each of n leaves would cost n reconciles of n leaves.
 *
 * Place in the flow: watches and triggers of the root controllers, and the waits that a reconcile requests. Changes of a root
 * itself, of claims and policies, and of the readiness of endpoints are not collected.
 */
import type { Change } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { SUMMARY_ANNOTATION } from '../names.ts'

/**
 * A root can have one leaf per member, and its reconcile takes some 30 µs of CPU for each (measured with 100 members): one whose
 * leaves change all the time uses 0.3 % of a core.
 */
const BATCH_PER_MEMBER_MS = 10
const MAX_BATCH_MS = 2_000

/** In proportion to the cost of a reconcile: 30 ms with three members, a second with a hundred. */
export function rootBatchMs(members: number): number {
  return Math.min(members * BATCH_PER_MEMBER_MS, MAX_BATCH_MS)
}

/** Whether only the status or the summary of a root changed, which is what its reconcile writes itself. */
export function isReportOnly(change: Change<Obj>): boolean {
  if (change.type !== 'updated') return false
  const { generation } = change.object.metadata
  return generation !== undefined && intentOf(change.object) === intentOf(change.old)
}

function intentOf({ metadata }: Change<Obj>['object']): string {
  const { generation, deletionTimestamp, labels, finalizers, annotations, ownerReferences } = metadata
  const { [SUMMARY_ANNOTATION]: _summary, ...own } = annotations ?? {}
  return JSON.stringify([generation, deletionTimestamp, labels, finalizers, own, ownerReferences])
}
