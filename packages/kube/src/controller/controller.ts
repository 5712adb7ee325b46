/**
 * A controller: wiring plus one function. It watches kinds, turns their changes into keys of its own kind, and calls the
 * reconciler for each key with the cached object.
 *
 * Flow: `defineController` collects the wiring → the manager `prepare`s it (informers exist, caches warm up, on every
 * replica) → `run` once this process leads: wait for the caches → subscribe → queue → reconcile, until stopped.
 *
 * Guarantees: reconciles start only when every required kind is synced (cache-sync.ts); changes are not lost to mappers
 * that throw (mapper.ts); reconciles are exclusive per key and bounded in number and time (workers.ts).
 */
import type { Reader } from '../cache/cache.ts'
import { waitForSync } from '../cache/cache-sync.ts'
import type { Context, Environment } from './context.ts'
import { type Duration, durationMs } from '../duration.ts'
import { KubeError } from '../errors.ts'
import { addFinalizer, nextFinalizerStep, removeFinalizer } from '../object/finalizer.ts'
import type { Informer, InformerOptions } from '../cache/informer.ts'
import { createMapper, type Watch } from './mapper.ts'
import { keyOf, type Immutable, type Key, type Kind, type Obj } from '../object/object.ts'
import type { Next } from './outcome.ts'
import { findControllerKey } from '../object/owner.ts'
import type { Predicate } from './predicate.ts'
import { createWorkers, type Signals } from './workers.ts'

export type Reconciler<T extends Obj> = (object: Immutable<T>, context: Context) => Promise<Next>

export interface WatchOptions<T extends Obj> extends Omit<InformerOptions<T>, 'keepManagedFieldsOf'> {
  /** Only these changes count. @default all */
  when?: Predicate<T>
  /** Start although no CRD serves the kind; it is taken as empty until one does. @default false */
  optional?: boolean
}

export interface ControllerOptions<T extends Obj> extends WatchOptions<T> {
  /** Reconciles at once, per cluster. @default 8 */
  concurrency?: number
  /** @default 5m */
  timeout?: Duration
  /** `local`: the manager's own cluster; `fleet`: each member; `all`: both. @default local */
  clusters?: 'local' | 'fleet' | 'all'
}

export interface ControllerBuilder<T extends Obj> {
  /** Changes of objects whose controller reference names one of ours. */
  owns<C extends Obj>(kind: Kind<C>, options?: WatchOptions<C>): ControllerBuilder<T>
  /** Changes of other objects; `map` says which of our keys they concern. It must be pure and quick. */
  watches<W extends Obj>(
    kind: Kind<W>,
    map: (object: Immutable<W>, cache: Reader) => readonly Key[],
    options?: WatchOptions<W>,
  ): ControllerBuilder<T>
  /** Work before an object may go; see finalizer.ts. `requeue` from it means not done yet. */
  finalizer(name: string, cleanup: Reconciler<T>): ControllerBuilder<T>
  /** For keys whose object is gone, without finalizer: memory to drop, say. It cannot rely on being called. */
  gone(handler: (key: Key, context: Context) => Promise<Next>): ControllerBuilder<T>
  /** Ends the wiring. */
  reconcile(reconciler: Reconciler<T>): void
}

/** The wiring of a controller, independent of any cluster. */
export interface Controller {
  readonly name: string
  readonly kind: Kind
  readonly clusters: 'local' | 'fleet' | 'all'
  /** Makes the informers, so that their caches fill before the controller runs; returns those that must sync. */
  prepare(environment: Environment): readonly Informer<Obj>[]
  /** Rejects when a cache does not sync; resolves when every reconcile has ended after `stop`. */
  run(environment: Environment, signals: Signals & { syncTimeoutMs?: number }): Promise<void>
}

export function defineController<T extends Obj>(
  name: string,
  kind: Kind<T>,
  options: ControllerOptions<T>,
  onDefined: (controller: Controller) => void,
): ControllerBuilder<T> {
  const { concurrency = 8, timeout = '5m', clusters = 'local' } = options
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new KubeError('CONTROLLER', `controller ${name}: concurrency ${concurrency} is not a positive integer`)
  }
  const own: Watch = {
    kind,
    options: options as WatchOptions<Obj>,
    map: (object) => [keyOf(object)],
  }
  const watches: Watch[] = [own]
  const spec: Spec<T> = { name, kind, timeoutMs: durationMs(timeout), concurrency, clusters, watches }
  const builder: ControllerBuilder<T> = {
    owns(child, watch = {}) {
      const map = (object: Immutable<Obj>) => {
        const key = findControllerKey(kind, object)
        return key === undefined ? [] : [key]
      }
      watches.push({ kind: child, options: watch as WatchOptions<Obj>, map })
      return builder
    },
    watches(other, map, watch = {}) {
      watches.push({
        kind: other,
        options: watch as WatchOptions<Obj>,
        map: map as Watch['map'],
      })
      return builder
    },
    finalizer(finalizer, cleanup) {
      spec.finalizer = { name: finalizer, cleanup }
      return builder
    },
    gone(handler) {
      spec.gone = handler
      return builder
    },
    reconcile(reconciler) {
      spec.reconcile = reconciler
      onDefined(controllerOf(spec))
    },
  }
  return builder
}

interface Spec<T extends Obj> {
  readonly name: string
  readonly kind: Kind<T>
  readonly timeoutMs: number
  readonly concurrency: number
  readonly clusters: 'local' | 'fleet' | 'all'
  readonly watches: readonly Watch[]
  finalizer?: { name: string; cleanup: Reconciler<T> }
  gone?: (key: Key, context: Context) => Promise<Next>
  reconcile?: Reconciler<T>
}

function controllerOf<T extends Obj>(spec: Spec<T>): Controller {
  const { name, kind, concurrency, clusters, timeoutMs, watches } = spec
  const informerOf = ({ cluster, fieldManager }: Environment, watch: Watch): Informer<Obj> => {
    const { when: _when, optional: _optional, ...options } = watch.options
    // For every watch alike: one that differed would be a second watch of the same kind.
    return cluster.informers.informer(watch.kind, { ...options, keepManagedFieldsOf: fieldManager })
  }
  return {
    name,
    kind,
    clusters,
    prepare: (environment) => {
      const pairs = watches.map((watch) => ({ watch, informer: informerOf(environment, watch) }))
      return pairs.filter(({ watch }) => watch.options.optional !== true).map(({ informer }) => informer)
    },
    async run(environment, { stop, kill, syncTimeoutMs: timeoutMs_ }) {
      const log = environment.log.child({ controller: name, cluster: environment.cluster.name })
      const pairs = watches.map((watch) => ({ watch, informer: informerOf(environment, watch) }))
      for (const { watch, informer } of pairs) {
        const isOptional = watch.options.optional === true
        await waitForSync(environment, { name, informer, isOptional, stop, timeoutMs: timeoutMs_ })
      }
      if (stop.aborted) return
      const run = (context: Context) => reconcileKey(spec, context)
      const workers = createWorkers({ name, kind, concurrency, timeoutMs, run }, environment)
      const mapper = createMapper(workers.queue, environment, name)
      const unsubscribes = pairs.map(({ watch, informer }) => {
        return informer.subscribe((change) => mapper.handle(watch, change))
      })
      log.info({ concurrency }, 'controller started')
      await workers.run({ stop, kill })
      for (const unsubscribe of unsubscribes) unsubscribe()
      mapper.close()
      log.info('controller stopped')
    },
  }
}

/** One key. A plain function that passes a promise on: it runs for every object. */
function reconcileKey<T extends Obj>(spec: Spec<T>, context: Context): Promise<Next> {
  const { kind, finalizer, gone, reconcile } = spec
  const object = context.get(kind, context.key)
  if (object === undefined) return gone?.(context.key, context) ?? NOTHING_TO_DO
  if (finalizer !== undefined) return reconcileUntilGone(spec, finalizer, object, context)
  return reconcile?.(object, context) ?? NOTHING_TO_DO
}

const NOTHING_TO_DO: Promise<Next> = Promise.resolve()

async function reconcileUntilGone<T extends Obj>(
  { kind, reconcile }: Spec<T>,
  { name, cleanup }: NonNullable<Spec<T>['finalizer']>,
  object: Immutable<T>,
  context: Context,
): Promise<Next> {
  switch (nextFinalizerStep(object, name)) {
    case 'add': {
      const marked = await addFinalizer(context.client, kind, object, name)
      return reconcile?.(marked as Immutable<T>, context)
    }
    case 'reconcile':
      return reconcile?.(object, context)
    case 'cleanup': {
      const next = await cleanup(object, context)
      if (typeof next === 'object') return next
      return removeFinalizer(context.client, kind, object, name)
    }
    case 'leave':
      return undefined
  }
}
