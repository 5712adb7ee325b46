/**
 * The context of a reconciler or runnable: cached reads, fenced writes, a signal, a log and events.
 *
 * Place in the flow: created per reconcile by workers.ts and once per runnable by the manager, from the `Environment`
 * of one cluster.
 * Guarantee: once the signal has aborted, the context no longer writes, even if its user keeps a reference.
 */
import { randomUUID } from 'node:crypto'
import type { Index, Reader } from '../cache/cache.ts'
import type { Client } from '../client/client.ts'
import type { Clock } from '../clock.ts'
import type { Cluster } from '../cache/cluster.ts'
import type { LearnedDefaults } from '../apply/learned-defaults.ts'
import type { EventType, Recorder } from './events.ts'
import type { WriteFence } from '../apply/write-fence.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { apiVersionOf, type Immutable, type Key, type Kind, type Obj, type Stored } from '../object/object.ts'
import type { Stop } from '../stop-signal.ts'
import { fencedClient, FencedWriter, type Writer } from '../apply/writer.ts'

/** The argument of a runnable (`manager.add`). */
export interface RunnableContext extends Reader, Writer {
  /** Name of the cluster. */
  readonly cluster: string
  /** Aborts when the runnable must end: the manager stops, or leadership is lost. */
  readonly signal: AbortSignal
  readonly log: Logger
  readonly clock: Clock
  /** For operations not covered by the methods here: live reads, creates, patches. Its writes check the fence. */
  readonly client: Client
  /**
   * Records an Event about an object; does not block.
   * @param about an object of the controller's own kind, unless it has apiVersion and kind
   */
  event(about: Immutable<Obj>, type: EventType, reason: string, note: string, action?: string): void
}

/** The argument of a reconciler, besides its object. */
export interface Context extends RunnableContext {
  readonly key: Key
  /** Included in every log line of this reconcile. */
  readonly reconcileId: string
  /** Aborts at the timeout, when leadership is lost, and when a stop takes too long. */
  readonly signal: AbortSignal
}

/** Shared by the controllers of one cluster. */
export interface Environment {
  readonly cluster: Cluster
  readonly fieldManager: string
  readonly fence: WriteFence
  readonly defaults: LearnedDefaults
  readonly recorder: Recorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Logger
}

/** The owner of a context; one object for all reconciles of a controller. */
export interface ContextOwner {
  /** Name of the controller or runnable, for logs. */
  readonly name: string
  /** Kind of the objects that Events are about, if they have no apiVersion and kind. */
  readonly kind?: Kind | undefined
  /** reportingController of Events. @default that of the recorder */
  readonly reportingController?: string | undefined
}

export function createContext(environment: Environment, owner: ContextOwner, key: Key, stop: Stop): Context {
  return new ReconcileContext(environment, owner, key, stop)
}

export function createRunnableContext(
  environment: Environment,
  owner: ContextOwner,
  signal: AbortSignal,
): RunnableContext {
  return new ClusterContext(environment, owner, signal)
}

/** A class instead of closures, because one is created per reconcile. */
class ClusterContext extends FencedWriter implements RunnableContext {
  readonly #stop: Stop | AbortSignal
  readonly #environment: Environment
  readonly #owner: ContextOwner
  // Created on first use: most reconciles need none of these.
  #log: Logger | undefined
  #client: Client | undefined

  constructor(environment: Environment, owner: ContextOwner, stop: Stop | AbortSignal) {
    super(environment, stop)
    this.#stop = stop
    this.#environment = environment
    this.#owner = owner
  }

  get signal(): AbortSignal {
    return 'signal' in this.#stop ? this.#stop.signal : this.#stop
  }

  get cluster(): string {
    return this.#environment.cluster.name
  }

  get clock(): Clock {
    return this.#environment.clock
  }

  get log(): Logger {
    this.#log ??= this.#environment.log.child(this.logFields())
    return this.#log
  }

  get client(): Client {
    const { cluster, fence } = this.#environment
    this.#client ??= fencedClient(cluster.client, fence, this.#stop)
    return this.#client
  }

  get<T extends Obj>(kind: Kind<T>, key: Key): Immutable<Stored<T>> | undefined {
    return this.#environment.cluster.informers.get(kind, key)
  }

  list<T extends Obj>(kind: Kind<T>, namespace?: string): readonly Immutable<Stored<T>>[] {
    return this.#environment.cluster.informers.list(kind, namespace)
  }

  by<T extends Obj>(index: Index<T>, value: string): readonly Immutable<Stored<T>>[] {
    return this.#environment.cluster.informers.by(index, value)
  }

  event(about: Immutable<Obj>, type: EventType, reason: string, note: string, action?: string): void {
    const { kind, reportingController } = this.#owner
    const { name, namespace, uid, resourceVersion } = about.metadata
    const apiVersion = about.apiVersion ?? (kind === undefined ? undefined : apiVersionOf(kind))
    const fields = { apiVersion, kind: about.kind ?? kind?.kind, name, namespace, uid, resourceVersion }
    const regarding = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
    this.#environment.recorder.record({
      regarding,
      type,
      reason,
      note,
      ...(action !== undefined && { action }),
      ...(reportingController !== undefined && { reportingController }),
    })
  }

  /** Defaults to the reconciler's own kind if the object has no apiVersion and kind. */
  protected override findKind(object: Immutable<Obj>): Kind | undefined {
    return super.findKind(object) ?? (object.kind === undefined ? this.#owner.kind : undefined)
  }

  protected logFields(): Record<string, unknown> {
    return { controller: this.#owner.name, cluster: this.cluster }
  }
}

class ReconcileContext extends ClusterContext implements Context {
  readonly key: Key
  #reconcileId: string | undefined

  constructor(environment: Environment, owner: ContextOwner, key: Key, stop: Stop) {
    super(environment, owner, stop)
    this.key = key
  }

  get reconcileId(): string {
    this.#reconcileId ??= randomUUID()
    return this.#reconcileId
  }

  protected override logFields(): Record<string, unknown> {
    const { key, reconcileId } = this
    return { ...super.logFields(), key, reconcileId }
  }
}
