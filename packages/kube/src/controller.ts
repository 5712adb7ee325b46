/**
 * A controller: wiring plus one function. It watches kinds, turns their changes into keys of its own kind, and calls the
 * reconciler for each key with the cached object.
 *
 * Flow: `defineController` collects the wiring → the manager `prepare`s it (informers exist, caches warm up, on every
 * replica) → `run` once this process leads: wait for the caches → subscribe → queue → reconcile, until stopped.
 *
 * Guarantees
 * - Reconciles start only when every required kind is synced; a kind without CRD is waited for as long as it takes, one
 *   that is served and does not sync fails the controller after `syncTimeoutMs`.
 * - At most `concurrency` at once per cluster; never two for one key.
 * - Nothing a reconciler or mapper throws escapes: it is logged, counted and tried again with back-off. A reconciler that
 *   does not return is stopped at its timeout, and given up if it ignores that; its context no longer writes.
 * - `stop` takes no further key and lets running ones end; `kill` aborts their signals.
 */
import { tracingChannel } from 'node:diagnostics_channel'
import type { Reader } from './cache.ts'
import { sleep } from './clock.ts'
import { createContext, type Context, type Environment } from './context.ts'
import { type Duration, durationMs } from './duration.ts'
import { KubeError, messageOf } from './errors.ts'
import { addFinalizer, nextFinalizerStep, removeFinalizer } from './finalizer.ts'
import type { Change, Informer, InformerOptions } from './informer.ts'
import { kindName, keyOf, type Immutable, type Key, type Kind, type Obj } from './object.ts'
import { findControllerKey } from './owner.ts'
import { outcomeOf, outcomeOfError, ReconcileTimeout, settle, type Next, type Outcome } from './outcome.ts'
import type { Predicate } from './predicate.ts'
import { createQueue, LOW_PRIORITY, type Queue } from './queue.ts'

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

interface Watch {
  readonly kind: Kind
  readonly options: WatchOptions<Obj>
  /** Our keys that a change of the object concerns. */
  readonly map: (object: Immutable<Obj>, cache: Reader) => readonly Key[]
  readonly keepsManagedFields: boolean
}

/** The wiring of a controller, independent of any cluster. */
export interface Controller {
  readonly name: string
  readonly kind: Kind
  readonly concurrency: number
  readonly clusters: 'local' | 'fleet' | 'all'
  /** Makes the informers, so that their caches fill before the controller runs. */
  prepare(environment: Environment): readonly Informer<Obj>[]
  /** Rejects when a cache does not sync; resolves when every reconcile has ended after `stop`. */
  run(
    environment: Environment,
    signals: { stop: AbortSignal; kill: AbortSignal; syncTimeoutMs?: number },
  ): Promise<void>
}

/** How long a reconciler that was told to stop may take before it is given up. */
const abandonAfterMs = 5_000
const absentPollMs = 1_000

/** Subscribe with node:diagnostics_channel to trace reconciles; messages are `{ controller, cluster, key, reconcileId }`. */
const trace = tracingChannel('seamark:kube:reconcile')

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
    keepsManagedFields: true,
  }
  const watches: Watch[] = [own]
  const spec: Spec<T> = { name, kind, timeoutMs: durationMs(timeout), concurrency, clusters, watches }
  const builder: ControllerBuilder<T> = {
    owns(child, watch = {}) {
      const map = (object: Immutable<Obj>) => {
        const key = findControllerKey(kind, object)
        return key === undefined ? [] : [key]
      }
      watches.push({ kind: child, options: watch as WatchOptions<Obj>, map, keepsManagedFields: true })
      return builder
    },
    watches(other, map, watch = {}) {
      watches.push({
        kind: other,
        options: watch as WatchOptions<Obj>,
        map: map as Watch['map'],
        keepsManagedFields: false,
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
  const { name, kind, concurrency, clusters, watches } = spec
  const informerOf = ({ cluster, fieldManager }: Environment, watch: Watch): Informer<Obj> => {
    const { when: _when, optional: _optional, ...options } = watch.options
    return cluster.informers.informer(watch.kind, {
      ...options,
      ...(watch.keepsManagedFields ? { keepManagedFieldsOf: fieldManager } : {}),
    })
  }
  return {
    name,
    kind,
    concurrency,
    clusters,
    prepare: (environment) => watches.map((watch) => informerOf(environment, watch)),
    async run(environment, { stop, kill, syncTimeoutMs = 120_000 }) {
      const pairs = watches.map((watch) => ({ watch, informer: informerOf(environment, watch) }))
      for (const { watch, informer } of pairs) {
        await waitForSync(spec.name, informer, watch.options.optional === true, environment, stop, syncTimeoutMs)
      }
      if (!stop.aborted) await runWorkers(spec, pairs, environment, { stop, kill })
    },
  }
}

/** Returns early when stopped. */
async function waitForSync(
  name: string,
  informer: Informer<Obj>,
  isOptional: boolean,
  { clock, log, cluster }: Environment,
  stop: AbortSignal,
  timeoutMs: number,
): Promise<void> {
  const kind = kindName(informer.kind)
  const controller = new AbortController()
  const link = () => controller.abort(stop.reason)
  stop.addEventListener('abort', link, { once: true })
  const cancel = clock.after(timeoutMs, () => {
    controller.abort(
      new KubeError(
        'SYNC_TIMEOUT',
        `controller ${name}: ${kind} did not sync within ${timeoutMs} ms in cluster ${cluster.name}; check that the process may list and watch it`,
      ),
    )
  })
  try {
    await informer.synced(controller.signal)
  } catch (error) {
    if (!stop.aborted) throw error
  } finally {
    cancel()
    stop.removeEventListener('abort', link)
  }
  if (isOptional || informer.state !== 'absent') return
  log.warn({ controller: name, cluster: cluster.name, kind }, 'kind is not served; the controller waits for its CRD')
  while (!stop.aborted && (informer.state === 'absent' || !informer.hasSynced)) await sleep(clock, absentPollMs, stop)
}

async function runWorkers<T extends Obj>(
  spec: Spec<T>,
  pairs: readonly { watch: Watch; informer: Informer<Obj> }[],
  environment: Environment,
  { stop, kill }: { stop: AbortSignal; kill: AbortSignal },
): Promise<void> {
  const { clock, cluster } = environment
  const log = environment.log.child({ controller: spec.name, cluster: cluster.name })
  const metrics = environment.metrics.controller(spec.name, spec.concurrency)
  const running = new Set<AbortController>()
  let isPumping = false
  let onIdle: () => void = () => undefined

  const queue: Queue = createQueue({ clock, observer: metrics.queue, onReady: schedule })
  const forgetQueue = metrics.watchQueue(queue)
  const mapper = createMapper(queue, environment, spec.name)

  /** In a turn of its own: reconcilers never run inside the watch that woke them. */
  function schedule(): void {
    if (isPumping) return
    isPumping = true
    setImmediate(() => {
      isPumping = false
      pump()
    })
  }

  function pump(): void {
    while (running.size < spec.concurrency && !stop.aborted) {
      const key = queue.take()
      if (key === undefined) return
      void work(key)
    }
  }

  async function work(key: Key): Promise<void> {
    const controller = new AbortController()
    running.add(controller)
    metrics.workers(1)
    const startedAt = clock.monotonic()
    const context = createContext(environment, {
      key,
      controller: spec.name,
      kind: spec.kind,
      signal: controller.signal,
    })
    const outcome = await bounded(controller, async () => {
      const run = async () => await reconcileKey(spec, context)
      if (!trace.start.hasSubscribers) return await run()
      const message = { controller: spec.name, cluster: cluster.name, key, reconcileId: context.reconcileId }
      return await trace.tracePromise(run, message)
    })
    const seconds = (clock.monotonic() - startedAt) / 1_000
    settle(key, outcome, seconds, {
      queue,
      metrics,
      get log() {
        return context.log
      },
    })
    metrics.workers(-1)
    running.delete(controller)
    if (running.size === 0) onIdle()
    schedule()
  }

  /** Ends in any case: by itself, or some seconds after the signal aborted. */
  async function bounded(controller: AbortController, run: () => Promise<Next>): Promise<Outcome> {
    const { signal } = controller
    const cancelTimeout = clock.after(spec.timeoutMs, () => controller.abort(new ReconcileTimeout(spec.timeoutMs)))
    let cancelAbandon: () => void = () => undefined
    const abandoned = new Promise<Outcome>((resolve) => {
      signal.addEventListener('abort', () => {
        cancelAbandon = clock.after(abandonAfterMs, () => {
          log.error({ error: messageOf(signal.reason) }, 'reconciler ignores its signal and was given up')
          resolve(outcomeOfError(signal.reason, signal.reason))
        })
      })
    })
    const ended = run().then(
      (next) =>
        signal.reason instanceof ReconcileTimeout ? outcomeOfError(undefined, signal.reason) : outcomeOf(next),
      (error: unknown) => outcomeOfError(error, signal.aborted ? signal.reason : undefined),
    )
    const outcome = await Promise.race([ended, abandoned])
    cancelTimeout()
    cancelAbandon()
    // Whatever the reconciler left behind must not write after its key is free for another run.
    controller.abort(new KubeError('RECONCILE_ENDED', 'the reconcile has ended'))
    return outcome
  }

  const unsubscribes = pairs.map(({ watch, informer }) => informer.subscribe(mapper.handlerOf(watch)))
  const onKill = () => {
    for (const controller of running) controller.abort(kill.reason)
  }
  kill.addEventListener('abort', onKill, { once: true })
  log.info({ concurrency: spec.concurrency }, 'controller started')
  schedule()

  await untilAborted(stop)
  for (const unsubscribe of unsubscribes) unsubscribe()
  mapper.close()
  queue.close()
  if (kill.aborted) onKill()
  if (running.size > 0) await new Promise<void>((resolve) => (onIdle = resolve))
  kill.removeEventListener('abort', onKill)
  forgetQueue()
  log.info('controller stopped')
}

/** One key, with its finalizer if the controller has one. */
async function reconcileKey<T extends Obj>(spec: Spec<T>, context: Context): Promise<Next> {
  const { kind, finalizer, gone, reconcile } = spec
  const object = context.get(kind, context.key)
  if (object === undefined) return await gone?.(context.key, context)
  if (finalizer === undefined) return await reconcile?.(object, context)
  switch (nextFinalizerStep(object, finalizer.name)) {
    case 'add': {
      const marked = await addFinalizer(context.client, kind, object, finalizer.name)
      return await reconcile?.(marked as Immutable<T>, context)
    }
    case 'reconcile':
      return await reconcile?.(object, context)
    case 'cleanup': {
      const next = await finalizer.cleanup(object, context)
      if (typeof next === 'object') return next
      return await removeFinalizer(context.client, kind, object, finalizer.name)
    }
    case 'leave':
      return undefined
  }
}

/**
 * Turns changes into keys. A mapper that throws loses nothing: the object is mapped again, with back-off, as it then is
 * in the cache (or as it was last, when it is gone).
 */
function createMapper(queue: Queue, { clock, cluster, log }: Environment, name: string) {
  const failed = new Map<Key, { watch: Watch; object: Immutable<Obj> }>()
  const retries = createQueue({ clock, onReady: () => setImmediate(retryAll) })

  function enqueue(watch: Watch, object: Immutable<Obj>, priority: number): void {
    const id = `${kindName(watch.kind)} ${keyOf(object)}`
    try {
      for (const key of watch.map(object, cluster.informers)) queue.add(key, { priority })
      failed.delete(id)
      retries.forget(id)
    } catch (error) {
      failed.set(id, { watch, object })
      const retryMs = retries.retry(id)
      log.error({ controller: name, cluster: cluster.name, err: error, object: id, retryMs }, 'mapper failed')
    }
  }

  function retryAll(): void {
    for (let id = retries.take(); id !== undefined; id = retries.take()) {
      const entry = failed.get(id)
      if (entry !== undefined) {
        const now = cluster.informers.informer(entry.watch.kind).hasSynced
          ? cluster.informers.get(entry.watch.kind, keyOf(entry.object))
          : undefined
        enqueue(entry.watch, now ?? entry.object, 0)
      }
      retries.done(id)
    }
  }

  return {
    handlerOf: (watch: Watch) => (change: Change<Obj>) => {
      const isWanted = watch.options.when?.(change) ?? true
      if (!isWanted) return
      const priority = change.type === 'added' && change.initial ? LOW_PRIORITY : 0
      // An object that changed hands concerns both owners.
      if (change.type === 'updated') enqueue(watch, change.old, priority)
      enqueue(watch, change.object, priority)
    },
    close: () => retries.close(),
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
