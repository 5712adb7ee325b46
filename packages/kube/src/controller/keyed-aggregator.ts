/**
 * A keyed aggregator makes one decision over many keys, such as one DNS plan for all names that changed. Changes mark
 * keys dirty; after the debounce time one pass gets every dirty key.
 *
 * Flow: caches synced → replay of the caches → a pass over `all` → changes, triggers and timers mark keys → debounce →
 * a pass over those keys → failed keys again after their back-off, requeued keys after their delay.
 *
 * Guarantees: never two passes at a time; a key marked during a pass is in the next one; a pass starts `debounce` after
 * the first mark of a burst, however long the burst lasts. If a pass throws or exceeds its timeout, all its keys have
 * failed; failed keys are retried with back-off, or earlier if they are marked again. A pass over `all` includes every
 * key. If a function that maps changes to keys throws, `all` is marked: an additional pass is harmless, a lost change
 * is not.
 */
import type { Reader } from '../cache/cache.ts'
import type { Change, Informer } from '../cache/informer.ts'
import { type Duration, durationMs } from '../duration.ts'
import { KubeError, messageOf } from '../errors.ts'
import { keyOf, kindName, type Key, type Kind, type Obj } from '../object/object.ts'
import type { Context, Environment } from './context.ts'
import type { WatchOptions } from './controller.ts'
import { DelayedKeys } from './delayed-keys.ts'
import { requiredInformers, unlessOwnWrite, waitForPairs, watchPairs } from './watched-kinds.ts'
import { startTriggers, type Trigger, type TriggerSet } from './triggers.ts'
import { createWorkers, type Signals } from './workers.ts'

/** `all`: every key, including unknown ones. */
export type DirtyKeys = ReadonlySet<Key> | 'all'

/** Keys to mark: an empty list marks nothing. */
type MarkedKeys = ReadonlySet<Key> | readonly Key[] | 'all'

/** Keys to process again after a pass; undefined if all its keys are done. */
export interface PassResult {
  /** Retried after their back-off. */
  readonly failed?: MarkedKeys
  /** Processed again after the given time, unless they are marked earlier. */
  readonly requeue?: readonly { readonly keys: MarkedKeys; readonly after: Duration }[]
}

export interface KeyedAggregatorOptions {
  /** Marks are collected for this long. @default 50ms */
  debounce?: Duration
  /** Timeout of one pass. @default 5m */
  timeout?: Duration
  /** Run only on the leader. @default true */
  leader?: boolean
  /** Back-off of failed keys: doubles from `base` to `limit`. @default 1s to 5m */
  backoff?: { base?: Duration; limit?: Duration }
  /** reportingController of the Events of its context. @default the manager's field manager */
  reportingController?: string
  /** Run a pass over `all` once the caches are synced. @default true */
  startWithAll?: boolean
}

export interface KeyedAggregatorBuilder {
  /**
   * Marks the keys affected by a change. Called for every change in watch order, first for the cached objects (`added`
   * with `initial`), so it may also maintain an index. The replay is complete before the first pass.
   */
  watches<T extends Obj>(
    kind: Kind<T>,
    toKeys: (change: Change<T>, cache: Reader) => MarkedKeys,
    options?: Omit<WatchOptions<T>, 'batchMs'>,
  ): KeyedAggregatorBuilder
  /** Marks keys for a reason outside the caches: `.triggers((mark) => pause.subscribe(() => mark('all')))`. */
  triggers(trigger: Trigger<MarkedKeys>): KeyedAggregatorBuilder
  /** Marks keys periodically. */
  every(interval: Duration, keys: () => MarkedKeys): KeyedAggregatorBuilder
  /** Completes the declaration. */
  pass(run: (keys: DirtyKeys, context: Context) => Promise<PassResult | void>): void
}

export interface KeyedAggregator {
  readonly name: string
  readonly needsLeader: boolean
  /** What is missing from the declaration; undefined if it is complete. */
  readonly incomplete: string | undefined
  prepare(environment: Environment): readonly Informer<Obj>[]
  run(environment: Environment, signals: Signals & { syncTimeoutMs?: number }): Promise<void>
}

type Pass = Parameters<KeyedAggregatorBuilder['pass']>[0]

interface KeyedWatch {
  readonly kind: Kind
  readonly options: WatchOptions<Obj>
  readonly toKeys: (change: Change<Obj>, cache: Reader) => MarkedKeys
}

/** The only key of the workers' queue, and the entry for `all` among the delayed keys; not a valid object name. */
const EVERYTHING = '\0all'

export function defineKeyedAggregator(
  name: string,
  options: KeyedAggregatorOptions,
): { builder: KeyedAggregatorBuilder; aggregator: KeyedAggregator } {
  const watches: KeyedWatch[] = []
  const triggers: TriggerSet<MarkedKeys> = { triggers: [], timers: [] }
  let pass: Pass | undefined
  const builder: KeyedAggregatorBuilder = {
    watches(kind, toKeys, watch = {}) {
      watches.push({ kind, options: watch as WatchOptions<Obj>, toKeys: toKeys as unknown as KeyedWatch['toKeys'] })
      return builder
    },
    triggers(trigger) {
      triggers.triggers.push(trigger)
      return builder
    },
    every(interval, keys) {
      triggers.timers.push({ everyMs: durationMs(interval), keys })
      return builder
    },
    pass(run) {
      pass = run
    },
  }
  const { leader = true, startWithAll = true, debounce = '50ms', timeout = '5m', backoff = {} } = options
  const settings = {
    debounceMs: durationMs(debounce),
    timeoutMs: durationMs(timeout),
    backoffBaseMs: durationMs(backoff.base ?? '1s'),
    backoffLimitMs: durationMs(backoff.limit ?? '5m'),
    reportingController: options.reportingController,
  }
  const aggregator: KeyedAggregator = {
    name,
    needsLeader: leader,
    get incomplete() {
      return pass === undefined ? `keyed aggregator ${name} has no pass: end its declaration with .pass(…)` : undefined
    },
    prepare: (environment) => requiredInformers(watchPairs(environment, watches)),
    async run(environment, { stop, kill, syncTimeoutMs }) {
      if (pass === undefined) throw new KubeError('INCOMPLETE', aggregator.incomplete ?? name)
      const log = environment.log.child({ controller: name, cluster: environment.cluster.name })
      const pairs = watchPairs(environment, watches)
      await waitForPairs(environment, pairs, { name, stop, timeoutMs: syncTimeoutMs })
      if (stop.aborted) return
      const running = new RunningAggregator(name, pass, settings, environment)
      const unsubscribes: (() => void)[] = []
      const replayed = pairs.map(async ({ watch, informer }) => {
        await new Promise<void>((resolve) => {
          const handle = (change: Change<Obj>) =>
            unlessOwnWrite(environment, watch, change, (others) => running.handle(watch, others))
          unsubscribes.push(informer.subscribe(handle, { onReplayed: resolve }))
          stop.addEventListener('abort', () => resolve(), { once: true })
        })
      })
      await Promise.all(replayed)
      const stopTriggers = startTriggers(
        triggers,
        { clock: environment.clock, log, cluster: environment.cluster.name },
        (keys) => running.mark(keys),
      )
      if (startWithAll) running.mark('all', 0)
      log.info('keyed aggregator started')
      await running.run({ stop, kill })
      stopTriggers()
      for (const unsubscribe of unsubscribes) unsubscribe()
      log.info('keyed aggregator stopped')
    },
  }
  return { builder, aggregator }
}

interface Settings {
  readonly debounceMs: number
  readonly timeoutMs: number
  readonly backoffBaseMs: number
  readonly backoffLimitMs: number
  readonly reportingController: string | undefined
}

/** The dirty keys and the worker of one run. */
class RunningAggregator {
  readonly #name: string
  readonly #pass: Pass
  readonly #settings: Settings
  readonly #environment: Environment
  readonly #workers: ReturnType<typeof createWorkers>
  readonly #delayed: DelayedKeys
  #dirty: Set<Key> | 'all' = new Set()

  constructor(name: string, pass: Pass, settings: Settings, environment: Environment) {
    this.#name = name
    this.#pass = pass
    this.#settings = settings
    this.#environment = environment
    const { timeoutMs, backoffBaseMs, backoffLimitMs, reportingController } = settings
    const run = async (context: Context) => this.#passDirty(context)
    this.#workers = createWorkers({ name, reportingController, concurrency: 1, timeoutMs, run }, environment)
    this.#delayed = new DelayedKeys({
      clock: environment.clock,
      backoffBaseMs,
      backoffLimitMs,
      onDue: (keys) => this.mark(keys.includes(EVERYTHING) ? 'all' : keys, 0),
    })
  }

  handle(watch: KeyedWatch, change: Change<Obj>): void {
    let keys: MarkedKeys
    try {
      if (watch.options.when?.(change) === false) return
      keys = watch.toKeys(change, this.#environment.cluster.informers)
    } catch (error) {
      const { log } = this.#environment
      const about = { controller: this.#name, kind: kindName(watch.kind), object: keyOf(change.object) }
      log.error({ ...about, error: messageOf(error) }, 'keys of a change are not known; every key is passed')
      keys = 'all'
    }
    this.mark(keys)
  }

  mark(keys: MarkedKeys, afterMs = this.#settings.debounceMs): void {
    if (keys === 'all') this.#dirty = 'all'
    else if (this.#dirty !== 'all') for (const key of keys) this.#dirty.add(key)
    if (this.#dirty === 'all' || this.#dirty.size > 0) this.#workers.queue.add(EVERYTHING, { afterMs })
  }

  async run(signals: Signals): Promise<void> {
    await this.#workers.run(signals)
    this.#delayed.close()
  }

  async #passDirty(context: Context): Promise<void> {
    const keys: DirtyKeys = this.#dirty
    if (keys !== 'all' && keys.size === 0) return
    this.#dirty = new Set()
    if (keys === 'all') this.#delayed.clearAll()
    else for (const key of keys) this.#delayed.clear(key)
    let isSettled = false
    const settle = (result: PassResult): void => {
      if (isSettled) return
      isSettled = true
      this.#settle(keys, result)
    }
    // The workers abandon a pass that ignores its signal: its keys are then treated as failed.
    context.signal.addEventListener('abort', () => settle({ failed: keys }), { once: true })
    try {
      settle((await this.#pass(keys, context)) ?? {})
    } catch (error) {
      settle({ failed: keys })
      throw error
    }
  }

  #settle(keys: DirtyKeys, { failed = [], requeue = [] }: PassResult): void {
    const failedKeys = new Set(failed === 'all' ? [EVERYTHING] : failed)
    if (keys === 'all') this.#delayed.forgetExcept(failedKeys)
    else for (const key of keys) if (!failedKeys.has(key)) this.#delayed.forget(key)
    if (failedKeys.size > 0) this.#delayed.retry(failedKeys)
    for (const { keys: later, after } of requeue)
      this.#delayed.add(later === 'all' ? [EVERYTHING] : later, durationMs(after))
  }
}
