/**
 * Finalizers: work that must be done before an object may go.
 *
 * Flow: (1) an object without our finalizer gets it, before the reconciler causes anything; (2) while it is not being
 * deleted the reconciler runs; (3) when it is being deleted the cleanup runs instead; (4) once that succeeded the
 * finalizer is removed and the object goes.
 * Guarantees: cleanup runs at least once for every object whose reconciler ran. Both patches carry a `test`, so that a
 * stale view changes nothing: it fails, and the key is tried again with the newer object.
 * Caveats: cleanup may run several times (a crash after it and before the removal): it has to be idempotent.
 */
import type { Client } from '../client/client.ts'
import { NotFound } from '../errors.ts'
import { keyOf, type Immutable, type Kind, type Obj } from './object.ts'

export type FinalizerStep = 'add' | 'reconcile' | 'cleanup' | 'leave'

/** What an object needs next. `leave`: it is being deleted, and our part is done. */
export function nextFinalizerStep(object: Immutable<Obj>, finalizer: string): FinalizerStep {
  const isOurs = object.metadata.finalizers?.includes(finalizer) === true
  if (object.metadata.deletionTimestamp === undefined) return isOurs ? 'reconcile' : 'add'
  return isOurs ? 'cleanup' : 'leave'
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
          // The list is new, so nothing in it can be tested: the version stands for it.
          { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
          { op: 'add', path: '/metadata/finalizers', value: [finalizer] },
        ]
      : [{ op: 'add', path: '/metadata/finalizers/-', value: finalizer }]
  return client.patch(kind, keyOf(object), 'json', [{ op: 'test', path: '/metadata/uid', value: uid }, ...add])
}

/** An object that is gone already needs nothing removed. */
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
