/**
 * A controller watches kinds, maps their changes to keys of its own kind, and calls the reconciler for each key with
 * the cached object.
 *
 * Flow: `defineController` collects the declarations → the manager `prepare`s it (informers are created and caches
 * fill, on every replica) → `run` once this process leads: wait for the caches → subscribe → queue → reconcile, until
 * stopped.
 *
 * Guarantees: reconciles start only when every required kind is synced (cache-sync.ts); changes are not lost to mappers
 * that throw (mapper.ts); reconciles are exclusive per key and bounded in number and time (workers.ts).
 */
import type { Reader } from '../cache/cache.ts'
import type { Context, Environment } from './context.ts'
import { type Duration, durationMs } from '../duration.ts'
import { KubeError } from '../errors.ts'
import { addFinalizer, nextFinalizerStep, removeFinalizer } from '../client/finalizer.ts'
import type { Change, Informer, InformerOptions } from '../cache/informer.ts'
import { createMapper, type Watch } from './mapper.ts'
import { keyOf, type Immutable, type Key, type Kind, type Obj, type Stored } from '../object/object.ts'
import type { Next } from './reconcile-result.ts'
import { findControllerKey } from '../object/owner.ts'
import type { Predicate } from './predicate.ts'
import { startTriggers, type Trigger } from './triggers.ts'
import { requiredInformers, unlessOwnWrite, waitForPairs, watchPairs } from './watched-kinds.ts'
import { createWorkers, type Signals } from './workers.ts'

export type Reconciler<T extends Obj> = (object: Immutable<Stored<T>>, context: Context) => Promise<Next>

export interface WatchOptions<T extends Obj> extends Omit<InformerOptions<T>, 'keepManagedFieldsOf'> {
  /** Only changes accepted by this predicate are processed. @default all */
  when?: Predicate<T>
  /**
   * Skip watch events of own writes. For children: they were in the desired state when written. Deletions are never
   * skipped. @default false
   */
  ignoreOwnWrites?: boolean
  /**
   * Collect changes: their keys are reconciled this long after the first of them, unless another source needs it earlier.
   * For objects of which one reconcile reads many, so that it does not run once for each. Must not throw. @default 0
   */
  batchMs?: (change: Change<T>) => number
  /** Start even if no CRD serves the kind; the kind is empty until one does. @default false */
  optional?: boolean
  /** Start even while the server denies the list; reads of the kind throw `NotSynced` until it is allowed. @default false */
  skipsDenied?: boolean
}

export interface KeyedControllerOptions {
  /** Concurrent reconciles per cluster. @default 8 */
  concurrency?: number
  /** @default 5m */
  timeout?: Duration
  /** `local`: the manager's own cluster; `fleet`: each member; `all`: both. @default local */
  clusters?: 'local' | 'fleet' | 'all'
  /** reportingController of the Events of its contexts. @default the manager's field manager */
  reportingController?: string
}

export interface ControllerOptions<T extends Obj> extends WatchOptions<T>, KeyedControllerOptions {}

/** `afterMs`: collect marks, as `batchMs` of a watch. @default 0 */
type KeyTrigger = Trigger<readonly Key[], { readonly afterMs?: number }>

/** Where the keys of a controller come from. `Builder` is returned, to continue the declaration. */
interface KeySources<Builder> {
  /** Changes of objects; `map` returns the affected keys of the controller. It must be pure and fast. */
  watches<W extends Obj>(
    kind: Kind<W>,
    map: (object: Immutable<W>, cache: Reader) => readonly Key[],
    options?: WatchOptions<W>,
  ): Builder
  /**
   * Keys to reconcile for a reason outside the caches: `.triggers((enqueue) => pause.subscribe(() => enqueue(keys)))`.
   */
  triggers(trigger: KeyTrigger): Builder
  /** Keys to reconcile periodically. */
  every(interval: Duration, keys: (cache: Reader) => readonly Key[]): Builder
}

export interface ControllerBuilder<T extends Obj> extends KeySources<ControllerBuilder<T>> {
  /** Changes of objects whose controller reference names an object of the controller's kind. */
  owns<C extends Obj>(kind: Kind<C>, options?: WatchOptions<C>): ControllerBuilder<T>
  /** Cleanup before an object is deleted; see finalizer.ts. Returning `requeue` means not done yet. */
  finalizer(name: string, cleanup: Reconciler<T>): ControllerBuilder<T>
  /**
   * Called for keys whose object no longer exists, without a finalizer; for example to free memory. Not guaranteed to
   * be called.
   */
  gone(handler: (key: Key, context: Context) => Promise<Next>): ControllerBuilder<T>
  /** Completes the declaration. */
  reconcile(reconciler: Reconciler<T>): void
}

/**
 * A controller whose keys are not objects of one kind, for example cluster names. Keys come from watches, triggers and
 * timers.
 */
export interface KeyedControllerBuilder extends KeySources<KeyedControllerBuilder> {
  /** Completes the declaration. */
  reconcile(reconciler: (key: Key, context: Context) => Promise<Next>): void
}

/** The declaration of a controller, independent of any cluster. */
export interface Controller {
  readonly name: string
  readonly clusters: 'local' | 'fleet' | 'all'
  /** What is missing from the declaration; undefined if it is complete. */
  readonly incomplete: string | undefined
  /** Creates the informers, so that their caches fill before the controller runs; returns those that must sync. */
  prepare(environment: Environment): readonly Informer<Obj>[]
  /** Rejects if a cache does not sync; resolves when every reconcile has ended after `stop`. */
  run(environment: Environment, signals: Signals & { syncTimeoutMs?: number }): Promise<void>
}

export function defineController<T extends Obj>(
  name: string,
  kind: Kind<T>,
  options: ControllerOptions<T>,
): { builder: ControllerBuilder<T>; controller: Controller } {
  const own: Watch = {
    kind,
    options: options as WatchOptions<Obj>,
    map: (object) => [keyOf(object)],
  }
  const declaration = newDeclaration(name, options, kind, [own])
  const spec: Spec<T> = { kind }
  const builder: ControllerBuilder<T> = {
    ...keySources<ControllerBuilder<T>>(declaration, () => builder),
    owns(child, watch = {}) {
      const map = (object: Immutable<Obj>) => {
        const key = findControllerKey(kind, object)
        return key === undefined ? [] : [key]
      }
      declaration.watches.push({ kind: child, options: watch as WatchOptions<Obj>, map })
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
      declaration.run = (context) => reconcileKey(spec, context)
    },
  }
  return { builder, controller: controllerOf(declaration) }
}

export function defineKeyedController(
  name: string,
  options: KeyedControllerOptions,
): { builder: KeyedControllerBuilder; controller: Controller } {
  const declaration = newDeclaration(name, options, undefined, [])
  const builder: KeyedControllerBuilder = {
    ...keySources<KeyedControllerBuilder>(declaration, () => builder),
    reconcile(reconciler) {
      declaration.run = (context) => reconciler(context.key, context)
    },
  }
  return { builder, controller: controllerOf(declaration) }
}

interface Declaration {
  readonly name: string
  readonly kind: Kind | undefined
  readonly timeoutMs: number
  readonly concurrency: number
  readonly clusters: 'local' | 'fleet' | 'all'
  readonly reportingController: string | undefined
  readonly watches: Watch[]
  readonly triggers: KeyTrigger[]
  readonly timers: { readonly everyMs: number; readonly keys: (cache: Reader) => readonly Key[] }[]
  /**
   * The reconcile of one key. Not an async function: it returns a promise directly, because it runs for every object.
   */
  run: ((context: Context) => Promise<Next>) | undefined
}

function newDeclaration(
  name: string,
  { concurrency = 8, timeout = '5m', clusters = 'local', reportingController }: KeyedControllerOptions,
  kind: Kind | undefined,
  watches: Watch[],
): Declaration {
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new KubeError('CONTROLLER', `controller ${name}: concurrency ${concurrency} is not a positive integer`)
  }
  const timeoutMs = durationMs(timeout)
  const sources = { watches, triggers: [], timers: [] }
  return { name, kind, timeoutMs, concurrency, clusters, reportingController, ...sources, run: undefined }
}

function keySources<Builder>({ watches, triggers, timers }: Declaration, builder: () => Builder): KeySources<Builder> {
  return {
    watches(kind, map, options = {}) {
      watches.push({ kind, options: options as WatchOptions<Obj>, map: map as Watch['map'] })
      return builder()
    },
    triggers(trigger) {
      triggers.push(trigger)
      return builder()
    },
    every(interval, keys) {
      timers.push({ everyMs: durationMs(interval), keys })
      return builder()
    },
  }
}

interface Spec<T extends Obj> {
  readonly kind: Kind<T>
  finalizer?: { name: string; cleanup: Reconciler<T> }
  gone?: (key: Key, context: Context) => Promise<Next>
  reconcile?: Reconciler<T>
}

function controllerOf(declaration: Declaration): Controller {
  const { name, kind, concurrency, clusters, reportingController, timeoutMs, watches } = declaration
  return {
    name,
    clusters,
    get incomplete() {
      return declaration.run === undefined
        ? `controller ${name} has no reconciler: end its declaration with .reconcile(…)`
        : undefined
    },
    prepare: (environment) => requiredInformers(watchPairs(environment, watches)),
    async run(environment, { stop, kill, syncTimeoutMs }) {
      const { run } = declaration
      if (run === undefined) throw new KubeError('INCOMPLETE', `controller ${name} has no reconciler`)
      const { clock, cluster } = environment
      const log = environment.log.child({ controller: name, cluster: cluster.name })
      const pairs = watchPairs(environment, watches)
      await waitForPairs(environment, pairs, { name, stop, timeoutMs: syncTimeoutMs })
      if (stop.aborted) return
      const workers = createWorkers({ name, kind, reportingController, concurrency, timeoutMs, run }, environment)
      const mapper = createMapper(workers.queue, environment, name)
      const unsubscribes = pairs.map(({ watch, informer }) => {
        return informer.subscribe((change) =>
          unlessOwnWrite(environment, watch, change, (others) => mapper.handle(watch, others)),
        )
      })
      const timers = declaration.timers.map(({ everyMs, keys }) => ({ everyMs, keys: () => keys(cluster.informers) }))
      const triggers = { triggers: declaration.triggers, timers }
      const stopTriggers = startTriggers(
        triggers,
        { clock, log, cluster: cluster.name },
        (keys: readonly Key[], how) => {
          for (const key of keys) workers.queue.add(key, how)
        },
      )
      log.info({ concurrency }, 'controller started')
      await workers.run({ stop, kill })
      stopTriggers()
      for (const unsubscribe of unsubscribes) unsubscribe()
      mapper.close()
      log.info('controller stopped')
    },
  }
}

function reconcileKey<T extends Obj>(spec: Spec<T>, context: Context): Promise<Next> {
  const { kind, finalizer, gone, reconcile } = spec
  const object = context.get(kind, context.key)
  if (object === undefined) return gone?.(context.key, context) ?? NOTHING_TO_DO
  if (finalizer !== undefined) return reconcileWithFinalizer(spec, finalizer, object, context)
  return reconcile?.(object, context) ?? NOTHING_TO_DO
}

const NOTHING_TO_DO: Promise<Next> = Promise.resolve()

async function reconcileWithFinalizer<T extends Obj>(
  { kind, reconcile }: Spec<T>,
  { name, cleanup }: NonNullable<Spec<T>['finalizer']>,
  object: Immutable<Stored<T>>,
  context: Context,
): Promise<Next> {
  switch (nextFinalizerStep(object, name)) {
    case 'add': {
      const updated = await addFinalizer(context.client, kind, object, name)
      return reconcile?.(updated as Immutable<Stored<T>>, context)
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
