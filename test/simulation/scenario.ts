/**
 * What is simulated: objects that are there, things that people then do, the controller that answers them, and what
 * must never be false.
 *
 * Any controller fits: the factory gets a `fetch`, a clock, randomness and a signal, and runs until the signal. Those
 * written on @seamark/kube's manager and plain step functions differ only inside the factory.
 */
import type { Cluster, InProcessFetch } from '@seamark/apiserver'
import type { Clock } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'

/** One run of the program under test, from its start to its death. */
export interface SimulatedProcess {
  /** The API server, as user `controller`. Crashes, lost answers, stale views and latency happen here. */
  readonly fetch: InProcessFetch
  readonly clock: Clock
  readonly random: () => number
  /** Aborted when the process is killed or the run is over. */
  readonly signal: AbortSignal
}

export type Controller = (process: SimulatedProcess) => Promise<void>

/** One write that reached the store, whoever made it. */
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
}

/** What invariants and tests read: the store itself, never a cache. */
export interface World {
  find(kind: string, key: string): Obj | undefined
  list(kind: string): readonly Obj[]
}

export interface Invariant {
  readonly name: string
  /** Called after every single write; what is wrong, in words, or undefined. */
  check(world: World, write: Write): string | undefined
}

export interface Scenario {
  readonly name: string
  /** CRDs and objects in place before anything starts, in this order. */
  readonly given: readonly Obj[]
  /** What people do, one after the other; the controller has `convergeMs` after each. */
  readonly steps: readonly { readonly name: string; act(fetch: InProcessFetch, cluster: Cluster): Promise<void> }[]
  readonly controller: Controller
  readonly invariants?: readonly Invariant[]
  /** Virtual time after each step; longer than the controller's slowest way to heal. @default 12 min */
  readonly convergeMs?: number
}
