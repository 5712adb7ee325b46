/**
 * Maps changes of watched objects to keys of a controller.
 *
 * Guarantee: no change is lost if a mapper or predicate throws. A predicate that throws accepts the change; an object
 * whose mapping failed is mapped again with back-off, in its then cached state, or in its last known state if it was
 * deleted.
 */
import type { Reader } from '../cache/cache.ts'
import type { Environment } from './context.ts'
import type { WatchOptions } from './controller.ts'
import type { Change } from '../cache/informer.ts'
import { keyOf, kindName, type Immutable, type Key, type Kind, type Obj } from '../object/object.ts'
import { type AddOptions, createQueue, LOW_PRIORITY, type Queue } from './queue.ts'

export interface Watch {
  readonly kind: Kind
  readonly options: WatchOptions<Obj>
  /** Keys of the controller that are affected by a change of the object. */
  readonly map: (object: Immutable<Obj>, cache: Reader) => readonly Key[]
}

export interface Mapper {
  handle(watch: Watch, change: Change<Obj>): void
  close(): void
}

export function createMapper(queue: Queue, environment: Environment, controller: string): Mapper {
  const { clock, cluster } = environment
  const log = environment.log.child({ controller, cluster: cluster.name })
  const ids = new Map<Watch, number>()
  const failed = new Map<string, { watch: Watch; object: Immutable<Obj> }>()
  const retries = createQueue({ clock, onReady: () => setImmediate(retryAll) })

  function enqueue(watch: Watch, object: Immutable<Obj>, how: AddOptions): void {
    const id = `${idOf(watch)} ${keyOf(object)}`
    try {
      for (const key of watch.map(object, cluster.informers)) queue.add(key, how)
      if (failed.delete(id)) retries.forget(id)
    } catch (error) {
      failed.set(id, { watch, object })
      const retryMs = retries.retry(id)
      log.error({ err: error, kind: kindName(watch.kind), object: keyOf(object), retryMs }, 'mapper failed')
    }
  }

  /** Identifies the watch: two watches of one kind may map differently. */
  function idOf(watch: Watch): number {
    const id = ids.get(watch) ?? ids.size
    ids.set(watch, id)
    return id
  }

  function retryAll(): void {
    for (let id = retries.take(); id !== undefined; id = retries.take()) {
      const entry = failed.get(id)
      if (entry !== undefined) enqueue(entry.watch, findCached(entry.watch.kind, entry.object), {})
      retries.done(id)
    }
  }

  function findCached(kind: Kind, last: Immutable<Obj>): Immutable<Obj> {
    try {
      return cluster.informers.get(kind, keyOf(last)) ?? last
    } catch {
      return last
    }
  }

  function isAccepted(watch: Watch, change: Change<Obj>): boolean {
    try {
      return watch.options.when?.(change) ?? true
    } catch (error) {
      log.error({ err: error, kind: kindName(watch.kind), object: keyOf(change.object) }, 'predicate failed')
      return true
    }
  }

  return {
    handle(watch, change) {
      if (!isAccepted(watch, change)) return
      const priority = change.type === 'added' && change.initial ? LOW_PRIORITY : 0
      const how = { priority, afterMs: watch.options.batchMs?.(change) ?? 0 }
      // If the owner of an object changed, both owners are affected.
      if (change.type === 'updated') enqueue(watch, change.old, how)
      enqueue(watch, change.object, how)
    },
    close: () => retries.close(),
  }
}
