/**
 * What a reconciler or a runnable gets: cached reads, fenced writes, a signal, a log and events.
 *
 * Place in the flow: made per reconcile by workers.ts and once per runnable by the manager, from the `Environment` of one
 * cluster.
 * Guarantee: once the signal has aborted, nothing in it writes any more, however long its user lives on.
 */
import { randomUUID } from 'node:crypto'
import type { Index, Reader } from '../cache/cache.ts'
import type { Client } from '../client/client.ts'
import type { Clock } from '../clock.ts'
import type { Cluster } from '../client/cluster.ts'
import type { LearnedDefaults } from '../apply/learned-defaults.ts'
import type { EventType, Recorder } from './events.ts'
import type { WriteFence } from '../manager/lease.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { apiVersionOf, type Immutable, type Key, type Kind, type Obj, type Stored } from '../object/object.ts'
import type { Stop } from './stop-signal.ts'
import { fencedClient, FencedWriter, type Writer } from '../apply/writer.ts'

/** What a runnable gets (`manager.add`). */
export interface RunnableContext extends Reader, Writer {
  /** Name of the cluster. */
  readonly cluster: string
  /** Aborts when the work has to end: the manager stops, or leadership is lost. */
  readonly signal: AbortSignal
  readonly log: Logger
  readonly clock: Clock
  /** For what the methods here do not cover: live reads, creates, patches. Its writes check the fence. */
  readonly client: Client
  /**
   * Records an Event about an object; returns at once.
   * @param about of the controller's own kind, unless it says its kind itself
   */
  event(about: Immutable<Obj>, type: EventType, reason: string, note: string, action?: string): void
}

/** What a reconciler gets besides its object. */
export interface Context extends RunnableContext {
  readonly key: Key
  /** On every log line of this reconcile. */
  readonly reconcileId: string
  /** Aborts at the timeout, when leadership is lost, and when a stop takes too long. */
  readonly signal: AbortSignal
}

/** What controllers of one cluster share. */
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

/** For whom a context is made; one object for all reconciles of a controller. */
export interface ContextOwner {
  /** The controller or runnable, for logs. */
  readonly name: string
  /** Of the objects that Events are about, where they do not say it themselves. */
  readonly kind?: Kind | undefined
  /** Who reports Events. @default the recorder's own */
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

/** A class, not closures: one is made for every reconcile. */
class ClusterContext extends FencedWriter implements RunnableContext {
  readonly #stop: Stop | AbortSignal
  readonly #environment: Environment
  readonly #owner: ContextOwner
  // Most reconciles need none of these: they are made when first asked for.
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

  /** A reconciler's own kind, where an object does not name one. */
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
