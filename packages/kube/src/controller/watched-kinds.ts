/**
 * The informers of the watches of a controller or aggregator: created early so that caches fill on every replica,
 * waited for before the first reconcile.
 */
import type { Change, Informer } from '../cache/informer.ts'
import { waitForSync } from './cache-sync.ts'
import { keyOf, type Kind, type Obj } from '../object/object.ts'
import type { Environment } from './context.ts'
import type { WatchOptions } from './controller.ts'

interface Watched {
  readonly kind: Kind
  readonly options: WatchOptions<Obj>
}

export interface WatchPair<W extends Watched> {
  readonly watch: W
  readonly informer: Informer<Obj>
}

export function watchPairs<W extends Watched>(
  { cluster, fieldManager }: Environment,
  watches: readonly W[],
): WatchPair<W>[] {
  return watches.map((watch) => {
    const {
      when: _when,
      batchMs: _batchMs,
      optional: _optional,
      skipsDenied: _skipsDenied,
      ignoreOwnWrites = false,
      ...options
    } = watch.options
    if (ignoreOwnWrites) cluster.informers.ownWrites(watch.kind).track()
    // The same field manager for every watch: a different one would be a second watch of the kind.
    const keepManagedFieldsOf = cluster.informers.configured(watch.kind)?.keepManagedFieldsOf ?? fieldManager
    const informer = cluster.informers.informer(watch.kind, { ...options, keepManagedFieldsOf })
    return { watch, informer }
  })
}

/**
 * Calls `handle` with a change unless it is the event of an own write and the watch ignores those. While a write of the
 * object is in flight, the call is deferred until the origin of the change is known.
 */
export function unlessOwnWrite(
  { cluster }: Environment,
  { kind, options }: Watched,
  change: Change<Obj>,
  handle: (change: Change<Obj>) => void,
): void {
  if (options.ignoreOwnWrites === true && change.type !== 'deleted') {
    if (change.isOwnWrite === true) return
    const { resourceVersion = '' } = change.object.metadata
    const key = keyOf(change.object)
    if (cluster.informers.ownWrites(kind).defer(key, resourceVersion, () => handle(change))) return
  }
  handle(change)
}

/** The informers that have to be synced before the controller runs. */
export function requiredInformers(pairs: readonly WatchPair<Watched>[]): Informer<Obj>[] {
  return pairs.filter(({ watch }) => watch.options.optional !== true).map(({ informer }) => informer)
}

/** Returns early when the signal aborts: callers check the signal afterwards. */
export async function waitForPairs(
  environment: Environment,
  pairs: readonly WatchPair<Watched>[],
  { name, stop, timeoutMs }: { name: string; stop: AbortSignal; timeoutMs: number | undefined },
): Promise<void> {
  for (const { watch, informer } of pairs) {
    const { optional: isOptional = false, skipsDenied = false } = watch.options
    await waitForSync(environment, { name, informer, isOptional, skipsDenied, stop, timeoutMs })
  }
}
