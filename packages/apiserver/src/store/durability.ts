/**
 * How the changes of a store are written to disk. A write is visible to other requests of the process at once, and to clients only when it
 * is durable: every response and watch event waits until everything that it may be based on is on disk.
 */
import type { WatchSink } from '../exchange/exchange.ts'
import type { Stored } from './stored-object.ts'

export interface Durability {
  /** Called for every change, in revision order. `stored` is undefined for a delete. */
  append(collection: string, key: string, stored: Stored | undefined, revision: number): void
  /** Resolves when every change appended so far is durable; undefined: it is. Rejects when the disk failed. */
  pending(): Promise<void> | undefined
}

/** An object as it was written before a restart. */
export interface RestoredObject {
  readonly collection: string
  readonly stored: Stored
}

/** Delays each chunk until the changes it may contain are durable; the order of the chunks is kept. */
export class DurableSink implements WatchSink {
  readonly #sink: WatchSink
  readonly #durability: Durability
  /** The delivery of the last delayed chunk. */
  #last: Promise<void> | undefined
  #delayedBytes = 0

  constructor(sink: WatchSink, durability: Durability) {
    this.#sink = sink
    this.#durability = durability
  }

  get bufferedBytes(): number {
    return this.#sink.bufferedBytes + this.#delayedBytes
  }

  write(chunk: Buffer): void {
    this.#delayedBytes += chunk.length
    this.#afterDelayed(() => {
      this.#delayedBytes -= chunk.length
      this.#sink.write(chunk)
    })
  }

  end(): void {
    this.#afterDelayed(() => this.#sink.end())
  }

  abort(): void {
    this.#sink.abort()
  }

  #afterDelayed(deliver: () => void): void {
    const pending = this.#durability.pending()
    if (pending === undefined && this.#last === undefined) {
      deliver()
      return
    }
    const delivery = Promise.all([this.#last, pending]).then(() => {
      if (this.#last === delivery) this.#last = undefined
      deliver()
    })
    // The disk failed: the client must not see what may be lost.
    delivery.catch(() => this.#sink.abort())
    this.#last = delivery
  }
}
