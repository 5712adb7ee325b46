/**
 * A cluster as one part of the program sees it: the same connection and the same caches, but its subscriptions end when the
 * part ends, and so does its right to use the client.
 *
 * Place in the flow: a manager gives one to each control (manager/control.ts), so that what a control leaves behind in a
 * shared cache neither runs nor is kept in memory.
 */
import type { Client } from '../client/client.ts'
import type { Kind, Obj } from '../object/object.ts'
import type { Cluster } from './cluster.ts'
import type { Change, Informer, InformerState, Informers, SubscribeOptions, WatchFailure } from './informer.ts'

/** Functions to call when the part ends. */
export class Subscriptions {
  readonly #ends = new Set<() => void>()

  /** Returns a function that ends the subscription earlier. */
  add(end: () => void): () => void {
    this.#ends.add(end)
    return () => {
      if (this.#ends.delete(end)) end()
    }
  }

  end(): void {
    for (const end of this.#ends) end()
    this.#ends.clear()
  }
}

export function scopedCluster(cluster: Cluster, client: Client, subscriptions: Subscriptions): Cluster {
  const { informers } = cluster
  const scoped: Pick<Informers, 'informer' | 'onHealthChange'> = {
    informer: (kind, options) => new ScopedInformer(informers.informer(kind, options), subscriptions),
    onHealthChange: (listener) => subscriptions.add(informers.onHealthChange(listener)),
  }
  return Object.create(cluster, {
    client: { value: client },
    informers: {
      value: Object.create(informers, {
        informer: { value: scoped.informer },
        onHealthChange: { value: scoped.onHealthChange },
      }) as Informers,
    },
  }) as Cluster
}

class ScopedInformer<T extends Obj> implements Informer<T> {
  readonly kind: Kind<T>
  readonly #shared: Informer<T>
  readonly #subscriptions: Subscriptions

  constructor(shared: Informer<T>, subscriptions: Subscriptions) {
    this.kind = shared.kind
    this.#shared = shared
    this.#subscriptions = subscriptions
  }

  get hasSynced(): boolean {
    return this.#shared.hasSynced
  }

  get state(): InformerState {
    return this.#shared.state
  }

  get size(): number {
    return this.#shared.size
  }

  get failure(): WatchFailure | undefined {
    return this.#shared.failure
  }

  get lastReceivedAt(): number | undefined {
    return this.#shared.lastReceivedAt
  }

  estimateBytes(): number {
    return this.#shared.estimateBytes()
  }

  async synced(signal?: AbortSignal): Promise<void> {
    await this.#shared.synced(signal)
  }

  subscribe(handler: (change: Change<T>) => void, options?: SubscribeOptions): () => void {
    return this.#subscriptions.add(this.#shared.subscribe(handler, options))
  }
}
