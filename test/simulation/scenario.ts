/**
 * What is simulated: objects that are there, what users then do, the controllers that answer them, and what
 * must never be false.
 *
 * Any controller fits: the factory gets a `fetch`, a clock, randomness and a signal, and runs until the signal. Those
 * written on @seamark/kube's manager and plain step functions differ only inside the factory.
 */
import type { ApiServer, Cluster, InProcessFetch } from '@seamark/apiserver'
import type { Clock } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import type { VirtualClock } from './virtual-clock.ts'

/** One run of the program under test, from its start to its death. */
export interface SimulatedProcess {
  /** The API server, as user `controller`. Crashes, lost answers, stale views and latency happen here. */
  readonly fetch: InProcessFetch
  /** Calls a service outside the cluster, with the same crashes, lost answers and latency as a request of `fetch`. */
  readonly call: ExternalCall
  readonly clock: Clock
  readonly random: () => number
  /** Aborted when the process is to end, is killed, or the run is over. */
  readonly signal: AbortSignal
}

/** `isWrite` counts the call among the writes at which a process may crash. */
export type ExternalCall = <T>(call: { readonly isWrite: boolean; readonly send: () => Promise<T> }) => Promise<T>

export type Controller = (process: SimulatedProcess) => Promise<void>

/** One write that reached the store, by any client. */
export interface Write {
  /** 1 is the first after the controller started. */
  readonly index: number
  readonly type: 'create' | 'update' | 'delete'
  readonly kind: string
  /** `namespace/name`. */
  readonly key: string
  readonly before: Obj | undefined
  /** Undefined after a delete. */
  readonly after: Obj | undefined
  /** A request of a controller for this object was under way. */
  readonly isByController: boolean
}

/** What invariants and tests read: the store itself, never a cache. */
export interface TestEnvironment {
  find(kind: string, key: string): Obj | undefined
  list(kind: string): readonly Obj[]
}

export interface Invariant {
  readonly name: string
  /** Called after every single write; what is wrong, in words, or undefined. */
  check(environment: TestEnvironment, write: Write): string | undefined
}

/** Where a scenario is played. Time passes only when the scenario lets it: `clock.advance`. */
export interface Stage {
  readonly server: ApiServer
  readonly clock: VirtualClock
  /** Something goes wrong in this run: counts of requests are not what they were. */
  readonly isDisturbed: boolean
  /** The objects as they are stored now. */
  stored(): TestEnvironment
  /** Another cluster of the same server, with the same faults on its watches. */
  addCluster(name: string): void
  /** Virtual milliseconds since a controller last wrote. */
  quietMs(): number
  /** Adds a write of a controller to a service outside the cluster to the history; invariants are checked after it. */
  recordWrite(write: Pick<Write, 'type' | 'kind' | 'key' | 'before' | 'after'>): void
  /** Adds the state of a service outside the cluster, read at the end, to the end state. */
  addEndState(read: () => ReadonlyMap<string, string>): void
  /** A process that faults may kill and that is then started again; `stop` lets it end by itself. */
  readonly start: (controller: Controller) => { stop(): Promise<void> }
}

export interface Scenario {
  readonly name: string
  /** CRDs and objects in place before anything starts, in this order. */
  readonly given: readonly Obj[]
  /** More that is there before anything starts; not part of the history. */
  prepare?(stage: Stage): Promise<void>
  /** What users do. A throw makes the run a failure. */
  play(stage: Stage): Promise<void>
  /** Replaces what differs between runs in names and values, such as hashes of UIDs. @default nothing */
  readonly mask?: (text: string) => string
  /** Made anew for each run: an invariant may keep what it saw. */
  readonly invariants?: (stage: Stage) => readonly Invariant[]
}

export interface Steps {
  readonly controller: Controller
  readonly steps: readonly { readonly name: string; act(fetch: InProcessFetch, cluster: Cluster): Promise<void> }[]
  /** Virtual time after each step; longer than the controller's slowest way to heal. @default 12 min */
  readonly convergeMs?: number
}

/** One controller all along, one step after the other, and after each the time to converge. */
export function inSteps({ controller, steps, convergeMs = 12 * 60_000 }: Steps): Scenario['play'] {
  return async ({ server, clock, start }) => {
    start(controller)
    await clock.advance(convergeMs)
    for (const step of steps) {
      await step.act(server.fetch, server.cluster)
      await clock.advance(convergeMs)
    }
    await clock.advance(convergeMs)
  }
}
