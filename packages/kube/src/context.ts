/**
 * What a reconciler gets besides its object: cached reads, fenced writes, a signal, a log and events.
 *
 * Place in the flow: made per reconcile by controller.ts and aggregator.ts from the `Environment` of one cluster.
 * Guarantee: once the signal has aborted, nothing in it writes any more, however long the reconciler lives on.
 */
import { randomUUID } from 'node:crypto'
import type { Reader } from './cache.ts'
import type { Client } from './client.ts'
import type { Clock } from './clock.ts'
import type { Cluster } from './cluster.ts'
import type { DefaultBook } from './default-book.ts'
import type { EventType, Recorder } from './events.ts'
import type { WriteFence } from './lease.ts'
import type { Logger } from './log.ts'
import type { Metrics } from './metrics.ts'
import { apiVersionOf, type Immutable, type Key, type Kind, type Obj } from './object.ts'
import { createWriter, fencedClient, type Writer } from './writer.ts'

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
  of: { key: Key; controller: string; kind?: Kind | undefined; signal: AbortSignal },
): Context {
  const { cluster, fence, recorder } = environment
  const { informers } = cluster
  const { key, kind, signal } = of
  const reconcileId = randomUUID()
  let log: Logger | undefined
  let client: Client | undefined
  return {
    ...createWriter({ ...environment, signal }),
    get: (kind, key) => informers.get(kind, key),
    list: (kind, namespace) => informers.list(kind, namespace),
    by: (index, value) => informers.by(index, value),
    key,
    cluster: cluster.name,
    reconcileId,
    signal,
    // Most reconciles neither log nor need the client: both are made when first asked for.
    get log() {
      log ??= environment.log.child({ controller: of.controller, cluster: cluster.name, key, reconcileId })
      return log
    },
    get client() {
      client ??= fencedClient(cluster.client, fence, signal)
      return client
    },
    event(about, type, reason, note, action) {
      const { name, namespace, uid, resourceVersion } = about.metadata
      const apiVersion = about.apiVersion ?? (kind === undefined ? undefined : apiVersionOf(kind))
      const fields = { apiVersion, kind: about.kind ?? kind?.kind, name, namespace, uid, resourceVersion }
      const regarding = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
      recorder.record({ regarding, type, reason, note, ...(action === undefined ? {} : { action }) })
    },
  }
}
