/**
 * Finalizers: cleanup that must be done before an object is deleted.
 *
 * Flow: (1) the finalizer is added to an object without it, before the reconciler has any effect; (2) while the object
 * is not being deleted the reconciler runs; (3) when it is being deleted the cleanup runs instead; (4) once that
 * succeeded the finalizer is removed and the server deletes the object.
 * Guarantees: cleanup runs at least once for every object whose reconciler ran. Both patches contain a `test`
 * operation, so that a patch based on a stale object fails, and the key is retried with the newer object.
 * Caveats: cleanup may run several times (a crash between cleanup and removal), so it must be idempotent.
 */
import type { Client } from './client.ts'
import { NotFound } from '../errors.ts'
import { keyOf, type Immutable, type Kind, type Obj } from '../object/object.ts'

export type FinalizerStep = 'add' | 'reconcile' | 'cleanup' | 'leave'

/** The next step for an object. `leave`: it is being deleted and does not have the finalizer. */
export function nextFinalizerStep(object: Immutable<Obj>, finalizer: string): FinalizerStep {
  const hasFinalizer = object.metadata.finalizers?.includes(finalizer) === true
  if (object.metadata.deletionTimestamp === undefined) return hasFinalizer ? 'reconcile' : 'add'
  return hasFinalizer ? 'cleanup' : 'leave'
}

export async function addFinalizer<T extends Obj>(
  client: Client,
  kind: Kind<T>,
  object: Immutable<T>,
  finalizer: string,
): Promise<T> {
  const { finalizers, resourceVersion, uid } = object.metadata
  const add =
    finalizers === undefined
      ? [
          // The list does not exist yet, so its content cannot be tested: test the resourceVersion instead.
          { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
          { op: 'add', path: '/metadata/finalizers', value: [finalizer] },
        ]
      : [{ op: 'add', path: '/metadata/finalizers/-', value: finalizer }]
  return client.patch(kind, keyOf(object), 'json', [{ op: 'test', path: '/metadata/uid', value: uid }, ...add])
}

/** Succeeds if the object is already deleted. */
export async function removeFinalizer<T extends Obj>(
  client: Client,
  kind: Kind<T>,
  object: Immutable<T>,
  finalizer: string,
): Promise<void> {
  const path = `/metadata/finalizers/${object.metadata.finalizers?.indexOf(finalizer)}`
  try {
    await client.patch(kind, keyOf(object), 'json', [
      { op: 'test', path: '/metadata/uid', value: object.metadata.uid },
      { op: 'test', path, value: finalizer },
      { op: 'remove', path },
    ])
  } catch (error) {
    if (!(error instanceof NotFound)) throw error
  }
}
