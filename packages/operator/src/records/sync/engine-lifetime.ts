/**
 * The engine of a manager: opened by the first pass that can, closed when the manager stops.
 *
 * Guarantees: a missing Secret or an API server that does not answer fails only the pass, which is repeated; an invalid
 * configuration ends the manager. The operations of a pass end before the engine is closed.
 */
import { setMaxListeners } from 'node:events'
import { type Client, type RunnableContext, untilAborted } from '@seamark/kube'
import { RecordsError } from '../../rrset/error.ts'
import type { Engine } from '../engine.ts'
import type { GuardStore } from '../state/guard-state.ts'

export interface OpenedRecords {
  readonly engine: Engine
  readonly store: GuardStore
}

export class EngineLifetime {
  readonly #open: (client: Client) => Promise<OpenedRecords>
  readonly #started: Promise<Client>
  readonly #failed: Promise<never>
  readonly #closing = new AbortController()
  #onStart: (client: Client) => void = () => undefined
  #onFailure: (error: unknown) => void = () => undefined
  #opened: OpenedRecords | undefined
  #lastUse: Promise<unknown> = Promise.resolve()

  /** `open` gets a client whose writes are fenced by the lease, as long as the manager leads. */
  constructor(open: (client: Client) => Promise<OpenedRecords>) {
    this.#open = open
    this.#started = new Promise((resolve) => (this.#onStart = resolve))
    this.#failed = new Promise((_resolve, reject) => (this.#onFailure = reject))
    // Observed by `run`, which may begin later.
    this.#failed.catch(() => undefined)
  }

  /** A runnable of the manager. */
  async run({ client, signal }: Pick<RunnableContext, 'client' | 'signal'>): Promise<void> {
    this.#onStart(client)
    try {
      await Promise.race([untilAborted(signal), this.#failed])
    } finally {
      this.#closing.abort()
      await this.#lastUse.catch(() => undefined)
      await this.#opened?.engine.close()
    }
  }

  /** Undefined: the manager stops. */
  async use<T>(
    signal: AbortSignal,
    work: (opened: OpenedRecords, signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const client = await this.#started
    if (this.#closing.signal.aborted) return undefined
    const use = (async () => {
      this.#opened ??= await this.#openOrEnd(client)
      const either = AbortSignal.any([signal, this.#closing.signal])
      // Every request of a pass adds a listener; their number is bounded by the concurrency of the pass.
      setMaxListeners(0, either)
      return work(this.#opened, either)
    })()
    this.#lastUse = use
    return use
  }

  /** Providers whose circuit breaker is open are asked by the next pass. */
  retryNow(): void {
    this.#opened?.engine.retryNow()
  }

  async #openOrEnd(client: Client): Promise<OpenedRecords> {
    try {
      return await this.#open(client)
    } catch (error) {
      if (error instanceof RecordsError) this.#onFailure(error)
      throw error
    }
  }
}
