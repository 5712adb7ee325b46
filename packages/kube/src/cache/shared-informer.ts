/**
 * One shared watch: store, reflector and subscribers of one (kind, selector, namespace, projection).
 */
import type { InformerOptions, InformerState, Change, Informer, SubscribeOptions, WatchFailure } from './informer.ts'
import { systemClock } from '../clock.ts'
import { messageOf } from '../errors.ts'
import type { Failure } from '../watch/reflector-machine.ts'
import { apiVersionOf, kindName, type Immutable, type Kind, type Obj } from '../object/object.ts'
import { Reflector, type ReflectorOptions, type Source } from '../watch/reflector.ts'
import { Store } from './store.ts'
import { Subscription } from './subscription.ts'
import { processBudget, type TurnBudget } from '../decode/decode-budget.ts'

export interface SharedInformerDeps<T extends Obj> extends ReflectorOptions {
  readonly source: Source<T>
  readonly budget?: TurnBudget
  readonly freeze?: boolean
  /** A subscribed handler or an index function threw. */
  readonly onUserError?: (what: string, error: unknown) => void
  readonly onAbsent?: () => void
  readonly onHealthChange?: () => void
}

/** Sample size for the estimate of a cache's size; bounds the cost of serialising. */
const SAMPLED_OBJECTS = 20

export class SharedInformer<T extends Obj> implements Informer<T> {
  readonly kind: Kind<T>
  /** One string shared by all objects. */
  readonly apiVersion: string
  readonly options: InformerOptions<T>
  readonly store: Store<T>
  readonly reflector: Reflector<T>
  readonly #deps: SharedInformerDeps<T>
  readonly #subscriptions = new Set<Subscription<Change<T>>>()
  readonly #waiting = new Set<() => void>()
  #isStarted = false
  #failure: WatchFailure | undefined
  #hasResponded = false

  constructor(kind: Kind<T>, options: InformerOptions<T>, deps: SharedInformerDeps<T>) {
    this.kind = kind
    this.apiVersion = apiVersionOf(kind)
    this.options = options
    this.#deps = deps
    this.store = new Store<T>((changes, count) => this.#publish(changes, count), {
      freeze: deps.freeze ?? false,
      ...(options.keepManagedFieldsOf !== undefined && { manager: options.keepManagedFieldsOf }),
      onIndexError: (index, error) => deps.onUserError?.(`index ${index} of ${kindName(kind)}`, error),
    })
    this.reflector = new Reflector(deps.source, this.store, {
      ...deps,
      onFailure: (failure, error) => {
        deps.onFailure?.(failure, error)
        this.#noteFailure(failure, error)
      },
      onResponse: () => {
        if (this.#failure === undefined && this.#hasResponded) return
        // Each attempt to read a set that exceeds a limit starts with a successful response: only a complete set clears
        // this failure.
        if (this.#failure?.reason === 'over-limit' && this.reflector.state.at !== 'watch') return
        this.#failure = undefined
        this.#hasResponded = true
        deps.onHealthChange?.()
      },
      onState: (state) => {
        deps.onState?.(state)
        if (state.at === 'absent') deps.onAbsent?.()
        this.#wake()
      },
    })
  }

  get hasSynced(): boolean {
    return this.store.hasSynced
  }

  get size(): number {
    return this.store.size
  }

  estimateBytes(): number {
    let [sampled, bytes] = [0, 0]
    for (const object of this.store.watched()) {
      if (sampled === SAMPLED_OBJECTS) break
      sampled++
      bytes += JSON.stringify(object).length
    }
    return sampled === 0 ? 0 : Math.round((bytes / sampled) * this.store.size)
  }

  get failure(): WatchFailure | undefined {
    return this.#failure
  }

  get lastReceivedAt(): number | undefined {
    return this.reflector.lastReceivedAt
  }

  get state(): InformerState {
    if (!this.#isStarted) return 'starting'
    switch (this.reflector.state.at) {
      case 'absent':
        return 'absent'
      case 'stream':
      case 'list':
      case 'probe':
        return 'syncing'
      case 'watch':
        return 'live'
      case 'wait':
        return 'backoff'
    }
  }

  subscribe(handler: (change: Change<T>) => void, { onError, onReplayed }: SubscribeOptions = {}): () => void {
    const report = onError ?? ((error: unknown) => this.#deps.onUserError?.(`handler of ${kindName(this.kind)}`, error))
    const subscription = new Subscription<Change<T>>(
      handler,
      (error) => {
        this.#subscriptions.delete(subscription)
        report(error)
      },
      this.#deps.budget ?? processBudget,
    )
    this.#subscriptions.add(subscription)
    if (this.hasSynced) {
      const known = [...this.store.watched()]
      subscription.push(initial(known, onReplayed), known.length)
    } else onReplayed?.()
    return () => {
      this.#subscriptions.delete(subscription)
      subscription.drop()
    }
  }

  async synced(signal?: AbortSignal): Promise<void> {
    if (this.hasSynced) return
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const finish = () => {
        if (!this.hasSynced) return
        stop()
        resolve()
      }
      const onAbort = () => {
        stop()
        reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal?.reason }))
      }
      const stop = () => {
        this.#waiting.delete(finish)
        signal?.removeEventListener('abort', onAbort)
      }
      this.#waiting.add(finish)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#isStarted = true
    await this.reflector.run(signal)
  }

  /**
   * Records only failures that keep the server from being read; the reflector handles an expired version or missing
   * WatchList itself.
   */
  #noteFailure(reason: Failure, error: unknown): void {
    if (!isReported(reason)) return
    const message = messageOf(error)
    const before = this.#failure
    if (before?.reason === reason && before.message === message) return
    const sinceMs = before?.sinceMs ?? (this.#deps.clock ?? systemClock).now()
    this.#failure = { reason, message, sinceMs }
    this.#deps.onHealthChange?.()
  }

  #publish(changes: Iterable<Change<T>>, count: number): void {
    if (this.#subscriptions.size === 0) return
    const [only] = this.#subscriptions
    if (this.#subscriptions.size === 1 && only !== undefined) only.push(changes, count)
    else {
      const all = Array.isArray(changes) ? (changes as Change<T>[]) : [...changes]
      for (const subscription of this.#subscriptions) subscription.push(all, count)
    }
  }

  #wake(): void {
    if (this.hasSynced) for (const finish of this.#waiting) finish()
  }
}

function* initial<T extends Obj>(
  objects: readonly Immutable<T>[],
  onReplayed: (() => void) | undefined,
): IterableIterator<Change<T>> {
  for (const object of objects) yield { type: 'added', object, initial: true }
  onReplayed?.()
}

/** The other failures are part of the protocol: the reflector immediately continues with another kind of request. */
function isReported(reason: Failure): reason is WatchFailure['reason'] {
  return (
    reason === 'denied' || reason === 'broken' || reason === 'busy' || reason === 'internal' || reason === 'over-limit'
  )
}
