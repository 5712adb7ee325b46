/**
 * Several informers of one kind, one per namespace, combined into one: for processes with access to some namespaces
 * only.
 *
 * Guarantee: synced when all parts are synced; `live` only while all parts are, so that an unreadable namespace is
 * never mistaken for an empty one.
 */
import type { Kind, Obj } from '../object/object.ts'
import type { Change, Informer, InformerState, SubscribeOptions, WatchFailure } from './informer.ts'

/** The combined state is the first of these that any part has. */
const WORST_FIRST: readonly InformerState[] = ['starting', 'backoff', 'syncing', 'absent', 'live']

export class JoinedInformer<T extends Obj> implements Informer<T> {
  readonly kind: Kind<T>
  readonly #parts: readonly Informer<T>[]

  constructor(kind: Kind<T>, parts: readonly Informer<T>[]) {
    this.kind = kind
    this.#parts = parts
  }

  get hasSynced(): boolean {
    return this.#parts.every(({ hasSynced }) => hasSynced)
  }

  get size(): number {
    return this.#parts.reduce((sum, { size }) => sum + size, 0)
  }

  get state(): InformerState {
    const states = new Set(this.#parts.map(({ state }) => state))
    return WORST_FIRST.find((state) => states.has(state)) ?? 'live'
  }

  get failure(): WatchFailure | undefined {
    return this.#parts.find(({ failure }) => failure !== undefined)?.failure
  }

  get lastReceivedAt(): number | undefined {
    const times = this.#parts.map(({ lastReceivedAt }) => lastReceivedAt)
    return times.includes(undefined) ? undefined : Math.min(...(times as number[]))
  }

  estimateBytes(): number {
    return this.#parts.reduce((sum, part) => sum + part.estimateBytes(), 0)
  }

  subscribe(handler: (change: Change<T>) => void, { onError, onReplayed }: SubscribeOptions = {}): () => void {
    let replaying = this.#parts.length
    const unsubscribes: (() => void)[] = []
    const unsubscribeAll = (): void => {
      for (const unsubscribe of unsubscribes) unsubscribe()
    }
    const options: SubscribeOptions = {
      onReplayed: () => {
        replaying--
        if (replaying === 0) onReplayed?.()
      },
      // A handler that threw is removed from every part.
      ...(onError !== undefined && {
        onError: (error: unknown) => {
          unsubscribeAll()
          onError(error)
        },
      }),
    }
    for (const part of this.#parts) unsubscribes.push(part.subscribe(handler, options))
    return unsubscribeAll
  }

  async synced(signal?: AbortSignal): Promise<void> {
    await Promise.all(this.#parts.map(async (part) => part.synced(signal)))
  }
}
