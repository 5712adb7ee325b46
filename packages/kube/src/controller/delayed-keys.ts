/**
 * Keys that become due later: failed keys after a per-key back-off that doubles, others after a given time.
 *
 * Guarantees: a key is due once, at the earlier of two times; a key that was processed in the meantime (`clear`) is no
 * longer due; keys delayed together share one timer.
 */
import type { Clock } from '../clock.ts'
import type { Key } from '../object/object.ts'

export interface DelayedKeysOptions {
  readonly clock: Clock
  readonly backoffBaseMs: number
  readonly backoffLimitMs: number
  readonly onDue: (keys: readonly Key[]) => void
}

/** Keys that share a timer. */
interface Batch {
  readonly dueAt: number
  readonly keys: Key[]
}

export class DelayedKeys {
  readonly #options: DelayedKeysOptions
  readonly #batchOf = new Map<Key, Batch>()
  readonly #failures = new Map<Key, number>()
  readonly #cancels = new Map<Batch, () => void>()
  #isClosed = false

  constructor(options: DelayedKeysOptions) {
    this.#options = options
  }

  add(keys: Iterable<Key>, delayMs: number): void {
    if (this.#isClosed) return
    const { clock, onDue } = this.#options
    const batch: Batch = { dueAt: clock.monotonic() + delayMs, keys: [] }
    for (const key of keys) {
      const known = this.#batchOf.get(key)
      if (known !== undefined && known.dueAt <= batch.dueAt) continue
      this.#batchOf.set(key, batch)
      batch.keys.push(key)
    }
    if (batch.keys.length === 0) return
    const cancel = clock.after(delayMs, () => {
      this.#cancels.delete(batch)
      const due = batch.keys.filter((key) => this.#batchOf.get(key) === batch)
      for (const key of due) this.#batchOf.delete(key)
      if (due.length > 0) onDue(due)
    })
    this.#cancels.set(batch, cancel)
  }

  /** Schedules each key after its own back-off. Returns the shortest delay, ms. */
  retry(keys: Iterable<Key>): number {
    const { backoffBaseMs, backoffLimitMs } = this.#options
    const byDelay = new Map<number, Key[]>()
    for (const key of keys) {
      const failures = this.#failures.get(key) ?? 0
      this.#failures.set(key, failures + 1)
      const delayMs = Math.min(backoffBaseMs * 2 ** failures, backoffLimitMs)
      const together = byDelay.get(delayMs)
      if (together === undefined) byDelay.set(delayMs, [key])
      else together.push(key)
    }
    for (const [delayMs, together] of byDelay) this.add(together, delayMs)
    return Math.min(...byDelay.keys())
  }

  /** The key is being processed: it is no longer due. Its failure count is kept. */
  clear(key: Key): void {
    this.#batchOf.delete(key)
  }

  /** Resets the back-off of the key. */
  forget(key: Key): void {
    this.#failures.delete(key)
  }

  clearAll(): void {
    this.#batchOf.clear()
    for (const cancel of this.#cancels.values()) cancel()
    this.#cancels.clear()
  }

  /** Resets the back-off of every key not in `failed`. */
  forgetExcept(failed: ReadonlySet<Key>): void {
    for (const key of this.#failures.keys()) if (!failed.has(key)) this.#failures.delete(key)
  }

  close(): void {
    this.#isClosed = true
    this.clearAll()
  }
}
