/**
 * What a reconciler gets besides its object: cached reads, fenced writes, a signal, a log and events.
 *
 * Place in the flow: made per reconcile by controller.ts and aggregator.ts from the `Environment` of one cluster.
 * Guarantee: once the signal has aborted, nothing in it writes any more, however long the reconciler lives on.
 */
import { randomUUID } from 'node:crypto'
import type { Index, Reader } from '../cache/cache.ts'
import type { Client } from '../client/client.ts'
import type { Clock } from '../clock.ts'
import type { Cluster } from '../client/cluster.ts'
import type { DefaultBook } from '../apply/learned-defaults.ts'
import type { EventType, Recorder } from './events.ts'
import type { WriteFence } from '../manager/lease.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { apiVersionOf, type Immutable, type Key, type Kind, type Obj } from '../object/object.ts'
import type { Stop } from './stop-signal.ts'
import { fencedClient, FencedWriter, type Writer } from '../apply/writer.ts'

export interface Context extends Reader, Writer {
  readonly key: Key
  /** Name of the cluster the key is in. */
  readonly cluster: string
  /** On every log line of this reconcile. */
  readonly reconcileId: string
  /** Aborts at the timeout, when leadership is lost, and when a stop takes too long. */
  readonly signal: AbortSignal
  readonly log: Logger
  /** For what the methods here do not cover: live reads, creates, patches. Writes ask the fence. */
  readonly client: Client
  /**
   * Notes an Event about an object; returns at once.
   * @param about of the controller's own kind, unless it says its kind itself
   */
  event(about: Immutable<Obj>, type: EventType, reason: string, note: string, action?: string): void
}

/** What controllers of one cluster share. */
export interface Environment {
  readonly cluster: Cluster
  readonly fieldManager: string
  readonly fence: WriteFence
  readonly defaults: DefaultBook
  readonly recorder: Recorder
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Logger
}

export function createContext(
  environment: Environment,
  of: { key: Key; controller: string; kind?: Kind | undefined; stop: Stop },
): Context {
  return new ReconcileContext(environment, of)
}

/** A class, not closures: one is made for every reconcile. */
class ReconcileContext extends FencedWriter implements Context {
  readonly key: Key
  readonly #stop: Stop
  readonly #environment: Environment
  readonly #controller: string
  readonly #kind: Kind | undefined
  // Most reconciles need none of these: they are made when first asked for.
  #reconcileId: string | undefined
  #log: Logger | undefined
  #client: Client | undefined

  constructor(environment: Environment, { key, controller, kind, stop }: Parameters<typeof createContext>[1]) {
    super(environment, stop)
    this.key = key
    this.#stop = stop
    this.#environment = environment
    this.#controller = controller
    this.#kind = kind
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  get cluster(): string {
    return this.#environment.cluster.name
  }

  get reconcileId(): string {
    this.#reconcileId ??= randomUUID()
    return this.#reconcileId
  }

  get log(): Logger {
    const { key, cluster, reconcileId } = this
    this.#log ??= this.#environment.log.child({ controller: this.#controller, cluster, key, reconcileId })
    return this.#log
  }

  get client(): Client {
    const { cluster, fence } = this.#environment
    this.#client ??= fencedClient(cluster.client, fence, this.#stop)
    return this.#client
  }

  get<T extends Obj>(kind: Kind<T>, key: Key): Immutable<T> | undefined {
    return this.#environment.cluster.informers.get(kind, key)
  }

  list<T extends Obj>(kind: Kind<T>, namespace?: string): readonly Immutable<T>[] {
    return this.#environment.cluster.informers.list(kind, namespace)
  }

  by<T extends Obj>(index: Index<T>, value: string): readonly Immutable<T>[] {
    return this.#environment.cluster.informers.by(index, value)
  }

  event(about: Immutable<Obj>, type: EventType, reason: string, note: string, action?: string): void {
    const kind = this.#kind
    const { name, namespace, uid, resourceVersion } = about.metadata
    const apiVersion = about.apiVersion ?? (kind === undefined ? undefined : apiVersionOf(kind))
    const fields = { apiVersion, kind: about.kind ?? kind?.kind, name, namespace, uid, resourceVersion }
    const regarding = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
    this.#environment.recorder.record({ regarding, type, reason, note, ...(action === undefined ? {} : { action }) })
  }
}
