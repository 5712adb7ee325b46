/**
 * Keeps a store equal to the server: the driver of reflector-machine.ts. It performs one operation at a time (a watch,
 * a page of a list, a probe, a wait) and reports the result; every decision is made by the machine.
 *
 * Flow: run → step → effects on the store → the next operation → its outcome → step → …
 * Guarantees: never two operations at once; results of an aborted operation are ignored; `run` returns only after its
 * signal aborts and the last operation has ended.
 * Caveats: the store's callbacks run inside the decode budget and must not block.
 */
import { sleep, systemClock, type Clock } from '../clock.ts'
import { CacheLimitExceeded } from './cache-limits.ts'
import type { Decoded, Frame, ListPage } from '../decode/decode.ts'
import { ApiError, apiError, messageOf, TransportError } from '../errors.ts'
import { DEFAULT_MASS_LIMITS, type MassLimits } from '../mass-limits.ts'
import { type Key, keyOf, type Obj } from '../object/object.ts'
import {
  initialReflection,
  step,
  type Effect,
  type Failure,
  type Input,
  type Reflection,
  type StepContext,
} from './reflector-machine.ts'

/** The server's data of one watched set. */
export interface Source<T extends Obj> {
  /** Reads one page; `each` is called for every item. */
  list(
    request: { continueToken: string | undefined; limit: number | undefined },
    each: (decoded: Decoded<T>) => void,
    signal: AbortSignal,
  ): Promise<ListPage>
  /** Resolves when the server ends the stream; without a version the stream starts with the current state. */
  watch(
    request: { version: string | undefined; timeoutSeconds: number },
    each: (frame: Frame<T>) => void,
    onBytes: () => void,
    signal: AbortSignal,
  ): Promise<void>
  /** Whether the server serves this kind. */
  isServed(signal: AbortSignal): Promise<boolean>
}

/** The store that the reflector fills. A complete set is staged object by object and replaces the content at once. */
export interface ReflectorStore<T extends Obj> {
  upsert(decoded: Decoded<T>): void
  delete(object: T): void
  stage(decoded: Decoded<T>): void
  unstage(key: Key): void
  /** Number of stored objects, and how many of them the staged set would remove. */
  readonly removals: { known: number; removed: number }
  commit(resourceVersion: string): void
  discard(): void
  /** The kind is not served: the content is removed. */
  clear(): void
  advance(resourceVersion: string): void
}

export interface ReflectorOptions {
  readonly clock?: Clock
  readonly random?: () => number
  /** Interval of complete, consistent syncs. @default 1 h */
  readonly relistMs?: number
  /** Removals by one complete sync that a second one has to confirm. @default more than 5 and more than 30 % */
  readonly removalLimits?: MassLimits
  /** Objects per page. @default 500 */
  readonly pageSize?: number
  readonly onState?: (state: Reflection['state']) => void
  /** Called on every failure; for logs and metrics. */
  readonly onFailure?: (failure: Failure, error: unknown) => void
  /** Called when the server responds: bytes of a watch, or a page of a list. On the hot path. */
  readonly onResponse?: () => void
}

const RELIST_MS = 60 * 60_000
const PAGE_SIZE = 500
/** Bookmarks arrive every minute: a stream without a byte for longer is dead. */
const IDLE_MS = 90_000
/** A server that ignores sendInitialEvents sends the objects but no end bookmark; wait this long for it. */
const STALL_MS = 10_000
const CHECK_MS = 2500
/** Interval of retries for a server that exceeds the limits: each attempt costs as much as the limits allow. */
const OVER_LIMIT_RETRY_MS = 60_000

export class Reflector<T extends Obj> {
  readonly #source: Source<T>
  readonly #store: ReflectorStore<T>
  readonly #clock: Clock
  readonly #random: () => number
  readonly #options: ReflectorOptions
  readonly #context: StepContext
  #now: Reflection = initialReflection
  #operation: AbortController | undefined
  readonly #running = new Set<Promise<void>>()
  #lastBytesAt = 0
  #lastReceivedAt: number | undefined

  constructor(source: Source<T>, store: ReflectorStore<T>, options: ReflectorOptions = {}) {
    const { clock = systemClock, random = Math.random, relistMs = RELIST_MS } = options
    const { removalLimits = DEFAULT_MASS_LIMITS } = options
    this.#source = source
    this.#store = store
    this.#options = options
    this.#clock = clock
    this.#random = random
    this.#context = {
      get now() {
        return clock.monotonic()
      },
      get random() {
        return random()
      },
      relistMs: relistMs * (0.8 + 0.4 * random()),
      removalLimits,
    }
  }

  get state(): Reflection['state'] {
    return this.#now.state
  }

  /** Time of the last data of this set (event, bookmark or page) on the monotonic clock. */
  get lastReceivedAt(): number | undefined {
    return this.#lastReceivedAt
  }

  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    this.#dispatch({ type: 'start' })
    await stopped
    this.#operation?.abort()
    this.#operation = undefined
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** A hint that an absent kind may now be served, or that a server answers again. */
  kick(): void {
    if (this.#now.state.at === 'absent' || this.#now.state.at === 'wait') this.#dispatch({ type: 'kicked' })
  }

  #dispatch(input: Input, subject?: Frame<T> | Decoded<T>): void {
    const { next, effects } = step(this.#now, input, this.#context)
    // The store changes before the state: the version is never ahead of what was applied.
    let operation: Effect | undefined
    for (const effect of effects) if (!this.#applyToStore(effect, subject)) operation = effect
    const hasChanged = next.state.at !== this.#now.state.at
    this.#now = next
    if (hasChanged) this.#options.onState?.(next.state)
    if (operation !== undefined) this.#begin(operation)
  }

  /** False if the effect is an operation to start. */
  #applyToStore(effect: Effect, subject: Frame<T> | Decoded<T> | undefined): boolean {
    switch (effect.do) {
      case 'apply':
        if (subject !== undefined && 'object' in subject) {
          if ('type' in subject && subject.type === 'DELETED') this.#store.delete(subject.object)
          else this.#store.upsert(subject)
        }
        return true
      case 'stage':
        if (subject !== undefined && 'object' in subject) {
          if ('type' in subject && subject.type === 'DELETED') this.#store.unstage(keyOf(subject.object))
          else this.#store.stage(subject)
        }
        return true
      case 'advance':
        this.#store.advance(effect.version)
        return true
      case 'commit':
        this.#store.commit(effect.version)
        return true
      case 'discard':
        this.#store.discard()
        return true
      case 'clear':
        this.#store.clear()
        return true
      case 'open-stream':
      case 'open-watch':
      case 'read-page':
      case 'probe':
      case 'wait':
        return false
    }
  }

  #begin(effect: Effect): void {
    this.#operation?.abort()
    const controller = new AbortController()
    this.#operation = controller
    const report = (input: Input, subject?: Frame<T> | Decoded<T>) => {
      if (this.#operation === controller) this.#dispatch(input, subject)
    }
    const running = this.#perform(effect, controller.signal, report)
      .catch((error: unknown) => {
        if (this.#operation !== controller) return
        const { failure, retryAfterMs } = classify(error)
        this.#options.onFailure?.(failure, error)
        report({ type: 'failed', failure, retryAfterMs })
      })
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async #perform(
    effect: Effect,
    signal: AbortSignal,
    report: (input: Input, subject?: Frame<T> | Decoded<T>) => void,
  ): Promise<void> {
    // Asynchronously, because the caller is in the middle of a step.
    await Promise.resolve()
    switch (effect.do) {
      case 'open-stream':
        await this.#watch(undefined, signal, report)
        break
      case 'open-watch':
        await this.#watch(effect.version, signal, report)
        break
      case 'read-page': {
        const limit = effect.isUnpaged ? undefined : (this.#options.pageSize ?? PAGE_SIZE)
        const each = (decoded: Decoded<T>) => {
          if (!signal.aborted)
            report({ type: 'object', version: decoded.object.metadata.resourceVersion ?? '' }, decoded)
        }
        const page = await this.#source.list({ continueToken: effect.continueToken, limit }, each, signal)
        const { resourceVersion: version, continueToken } = page
        this.#lastReceivedAt = this.#clock.monotonic()
        this.#options.onResponse?.()
        report({ type: 'page', version, continueToken, removals: this.#store.removals })
        break
      }
      case 'probe': {
        const isServed = await this.#source.isServed(signal)
        // Of a kind that is not served there is nothing else to read; one that is served may still be denied.
        if (!isServed) this.#options.onResponse?.()
        report({ type: 'probed', isServed })
        break
      }
      case 'wait':
        await sleep(this.#clock, effect.ms, signal)
        if (!signal.aborted) report({ type: 'waited' })
        break
      case 'stage':
      case 'apply':
      case 'advance':
      case 'commit':
      case 'discard':
      case 'clear':
        break
    }
  }

  async #watch(
    version: string | undefined,
    signal: AbortSignal,
    report: (input: Input, subject?: Frame<T>) => void,
  ): Promise<void> {
    const timeoutSeconds = 300 + Math.floor(this.#random() * 300)
    const stream = new AbortController()
    const onAbort = () => stream.abort()
    signal.addEventListener('abort', onAbort, { once: true })
    this.#lastBytesAt = this.#clock.monotonic()
    let silence: 'stalled' | 'dead' | undefined
    const check = () => {
      const silentMs = this.#clock.monotonic() - this.#lastBytesAt
      if (this.#now.state.at === 'stream' && silentMs >= STALL_MS) silence = 'stalled'
      else if (silentMs >= IDLE_MS) silence = 'dead'
      if (silence === undefined) cancelCheck = this.#clock.after(CHECK_MS, check)
      else stream.abort()
    }
    let cancelCheck = this.#clock.after(CHECK_MS, check)
    const each = (frame: Frame<T>) => {
      if (signal.aborted) return
      switch (frame.type) {
        case 'BOOKMARK': {
          const { resourceVersion, isInitialEnd } = frame
          const removals = isInitialEnd ? this.#store.removals : NO_REMOVALS
          report({ type: 'bookmark', version: resourceVersion, isInitialEnd, removals })
          break
        }
        case 'ERROR':
          throw apiError('watch', frame.status.code ?? 500, frame.status)
        case 'ADDED':
        case 'MODIFIED':
        case 'DELETED':
          report({ type: 'object', version: frame.object.metadata.resourceVersion ?? '' }, frame)
          break
      }
    }
    const onBytes = () => {
      this.#lastBytesAt = this.#clock.monotonic()
      this.#lastReceivedAt = this.#lastBytesAt
      this.#options.onResponse?.()
    }
    try {
      await this.#source.watch({ version, timeoutSeconds }, each, onBytes, stream.signal)
      report({ type: 'ended' })
    } catch (error) {
      if (silence === 'stalled') report({ type: 'stalled' })
      else if (silence === 'dead')
        throw new TransportError('DEADLINE', `no byte of the watch for ${IDLE_MS} ms`, { cause: error })
      else throw error
    } finally {
      cancelCheck()
      signal.removeEventListener('abort', onAbort)
      stream.abort()
    }
  }
}

const NO_REMOVALS = { known: 0, removed: 0 }

/** Maps an error to the failures of the machine. */
export function classify(error: unknown): { failure: Failure; retryAfterMs: number | undefined } {
  if (error instanceof CacheLimitExceeded) return { failure: 'over-limit', retryAfterMs: OVER_LIMIT_RETRY_MS }
  if (!(error instanceof ApiError)) return { failure: 'broken', retryAfterMs: undefined }
  const { httpStatus, retryAfterMs, status } = error
  const isTooLarge =
    status.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') === true ||
    messageOf(error).includes('Too large resource version')
  // kube-apiserver with etcd before 3.4.31 or 3.5.13 reports this with status 500 in the stream.
  const isWithoutProgress = status.message?.includes('RequestWatchProgress') === true
  if (isWithoutProgress) return { failure: 'unsupported', retryAfterMs }
  return { failure: isTooLarge ? 'too-large' : byStatus(httpStatus, status.reason), retryAfterMs }
}

function byStatus(httpStatus: number, reason: string | undefined): Failure {
  if (httpStatus === 410 || reason === 'Expired' || reason === 'Gone') return 'expired'
  if (httpStatus === 404) return 'absent'
  if (httpStatus === 401 || httpStatus === 403) return 'denied'
  if (httpStatus === 500) return 'internal'
  return httpStatus >= 400 && httpStatus < 500 && httpStatus !== 408 && httpStatus !== 429 ? 'unsupported' : 'busy'
}
