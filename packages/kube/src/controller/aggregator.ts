/**
 * An aggregator: for artefacts made of everything at once, such as the configuration of a proxy. Any change of a watched
 * kind marks it dirty; some milliseconds later one pure `build` reads the whole from the cache, and `act` delivers it.
 *
 * Guarantees: built only when every required kind is synced; at least once after the last change, and never two at a time;
 * `debounceMs` after the first change of a burst, however long it lasts. A build or delivery that fails is tried again with
 * back-off, and a failing build delivers nothing: what was delivered last stays.
 */
import type { Reader } from '../cache/cache.ts'
import type { Context, Environment } from './context.ts'
import type { WatchOptions } from './controller.ts'
import { type Duration, durationMs } from '../duration.ts'
import { KubeError } from '../errors.ts'
import type { Informer } from '../cache/informer.ts'
import type { Kind, Obj } from '../object/object.ts'
import type { Next } from './outcome.ts'
import { requiredInformers, unlessOwnWrite, waitForPairs, watchPairs } from './watched-kinds.ts'
import { createWorkers, type Signals } from './workers.ts'

export interface AggregatorOptions {
  /** Kinds whose changes count, plain or with watch options (`watching`). */
  kinds: readonly (Kind | WatchedKind)[]
  /** Changes are collected for this long. @default 50ms */
  debounce?: Duration
  /** Of one build and delivery. @default 1m */
  timeout?: Duration
  /** Only the leader builds. Proxies of every replica want false. @default true */
  leader?: boolean
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
  /** Never: an aggregator is declared in one call. */
  readonly incomplete: undefined
  prepare(environment: Environment): readonly Informer<Obj>[]
  run(environment: Environment, signals: Signals & { syncTimeoutMs?: number }): Promise<void>
}

/** The one key of its queue. */
const everything = 'all'

export function defineAggregator<A>(
  name: string,
  options: AggregatorOptions,
  build: (cache: Reader) => A,
  act: (artefact: A, context: Context) => Promise<Next>,
): Aggregator {
  const { debounce = '50ms', timeout = '1m', leader = true } = options
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
      const run = async (context: Context) => act(build(context), context)
      const workers = createWorkers({ name, kind: first.kind, concurrency: 1, timeoutMs, run }, environment)
      const unsubscribes = pairs.map(({ watch, informer }) => {
        return informer.subscribe((change) => {
          unlessOwnWrite(environment, watch, change, (others) => {
            if (isWanted(watch, others)) workers.queue.add(everything, { afterMs: debounceMs })
          })
        })
      })
      // Nothing at all is a state to deliver too.
      workers.queue.add(everything)
      log.info('aggregator started')
      await workers.run({ stop, kill })
      for (const unsubscribe of unsubscribes) unsubscribe()
      log.info('aggregator stopped')
    },
  }
}

/** A predicate that throws lets the change pass: one build too many is harmless. */
function isWanted({ options }: WatchedKind, change: Parameters<NonNullable<WatchOptions<Obj>['when']>>[0]): boolean {
  try {
    return options.when?.(change) ?? true
  } catch {
    return true
  }
}
