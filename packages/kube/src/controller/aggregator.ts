/**
 * An aggregator produces an artefact from all objects, such as the configuration of a proxy. Any change of a watched
 * kind marks it dirty; after the debounce time one pure `build` reads the cache, and `act` delivers the result. A build that takes
 * long may be asynchronous: changes that arrive meanwhile lead to another one.
 *
 * Guarantees: it builds only when every required kind is synced, at least once after the last change, never twice at a
 * time, and `debounceMs` after the first change of a burst, however long the burst lasts. A failed build or delivery is
 * retried with back-off, and a failed build delivers nothing: the last delivered result stays in effect.
 */
import type { Reader } from '../cache/cache.ts'
import type { Context, Environment } from './context.ts'
import type { WatchOptions } from './controller.ts'
import { type Duration, durationMs } from '../duration.ts'
import { KubeError } from '../errors.ts'
import type { Informer } from '../cache/informer.ts'
import type { Kind, Obj } from '../object/object.ts'
import type { Next } from './reconcile-result.ts'
import { requiredInformers, unlessOwnWrite, waitForPairs, watchPairs } from './watched-kinds.ts'
import { createWorkers, type Signals } from './workers.ts'

export interface AggregatorOptions {
  /** Watched kinds, plain or with watch options (`watching`). */
  kinds: readonly (Kind | WatchedKind)[]
  /** Changes are collected for this long. @default 50ms */
  debounce?: Duration
  /** Timeout of one build and delivery. @default 1m */
  timeout?: Duration
  /** Build only on the leader. Set false for the proxy of every replica. @default true */
  leader?: boolean
  /** Calls `mark` when something else than objects changed. Returns the unsubscribe function. */
  triggers?: (mark: () => void) => () => void
  /** reportingController of the Events of its context. @default the manager's field manager */
  reportingController?: string
}

export interface WatchedKind {
  readonly kind: Kind
  readonly options: WatchOptions<Obj>
}

/** A kind with options, for `AggregatorOptions.kinds`. */
export function watching<T extends Obj>(kind: Kind<T>, options: WatchOptions<T>): WatchedKind {
  return { kind, options: options as WatchOptions<Obj> }
}

export interface Aggregator {
  readonly name: string
  readonly needsLeader: boolean
  /** Always undefined: an aggregator is declared in one call. */
  readonly incomplete: undefined
  prepare(environment: Environment): readonly Informer<Obj>[]
  run(environment: Environment, signals: Signals & { syncTimeoutMs?: number }): Promise<void>
}

/** The only key of its queue. */
const ONLY_KEY = 'all'

export function defineAggregator<A>(
  name: string,
  options: AggregatorOptions,
  build: (cache: Reader) => A | Promise<A>,
  act: (artefact: A, context: Context) => Promise<Next>,
): Aggregator {
  const { debounce = '50ms', timeout = '1m', leader = true, reportingController } = options
  const [debounceMs, timeoutMs] = [durationMs(debounce), durationMs(timeout)]
  const watched = options.kinds.map((given): WatchedKind => ('options' in given ? given : { kind: given, options: {} }))
  const [first] = watched
  if (first === undefined) throw new KubeError('AGGREGATOR', `aggregator ${name} watches no kind and would never build`)

  return {
    name,
    needsLeader: leader,
    incomplete: undefined,
    prepare: (environment) => requiredInformers(watchPairs(environment, watched)),
    async run(environment, { stop, kill, syncTimeoutMs }) {
      const log = environment.log.child({ controller: name, cluster: environment.cluster.name })
      const pairs = watchPairs(environment, watched)
      await waitForPairs(environment, pairs, { name, stop, timeoutMs: syncTimeoutMs })
      if (stop.aborted) return
      const run = async (context: Context) => act(await build(context), context)
      const workers = createWorkers(
        { name, kind: first.kind, reportingController, concurrency: 1, timeoutMs, run },
        environment,
      )
      const unsubscribes = pairs.map(({ watch, informer }) => {
        return informer.subscribe((change) => {
          unlessOwnWrite(environment, watch, change, (others) => {
            if (isAccepted(watch, others)) workers.queue.add(ONLY_KEY, { afterMs: debounceMs })
          })
        })
      })
      const unsubscribe = options.triggers?.(() => workers.queue.add(ONLY_KEY))
      // Build once even if there are no objects: the empty state must be delivered too.
      workers.queue.add(ONLY_KEY)
      log.info('aggregator started')
      await workers.run({ stop, kill })
      unsubscribe?.()
      for (const each of unsubscribes) each()
      log.info('aggregator stopped')
    },
  }
}

/** A predicate that throws accepts the change: an additional build is harmless. */
function isAccepted({ options }: WatchedKind, change: Parameters<NonNullable<WatchOptions<Obj>['when']>>[0]): boolean {
  try {
    return options.when?.(change) ?? true
  } catch {
    return true
  }
}
