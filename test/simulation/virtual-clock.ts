/**
 * Time that passes only when told: an hour costs the timers that fall due in it.
 *
 * One clock serves the API server (`schedule`) and processes under test (`after`, `monotonic`), so that their timers
 * interleave in one order: by due time, then by age. Between two timers everything that promises can do is done.
 */
import type { Clock as ServerClock } from '@seamark/apiserver'
import type { Clock as ProcessClock } from '@seamark/kube'

interface Entry {
  readonly at: number
  readonly order: number
  readonly task: () => void
}

/** Turns of the event loop without any work after which everything is taken to rest. */
const quietTurns = 2

export class VirtualClock implements ServerClock, ProcessClock {
  readonly #startMs: number
  readonly #timers = new Set<Entry>()
  #elapsedMs = 0
  #order = 0
  /** Raised by every action, so that `settle` notices it. */
  activity = 0

  constructor(startMs: number = Date.UTC(2030, 0, 1)) {
    this.#startMs = startMs
  }

  now(): number {
    return this.#startMs + this.#elapsedMs
  }

  monotonic(): number {
    return this.#elapsedMs
  }

  after(delayMs: number, task: () => void): () => void {
    const entry = { at: this.#elapsedMs + Math.max(0, delayMs), order: (this.#order += 1), task }
    this.#timers.add(entry)
    return () => this.#timers.delete(entry)
  }

  schedule(delayMs: number, task: () => void): { cancel(): void } {
    return { cancel: this.after(delayMs, task) }
  }

  async sleep(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => this.after(delayMs, resolve))
  }

  /** Lets `ms` pass, running what falls due on the way and what that starts. */
  async advance(ms: number): Promise<void> {
    const until = this.#elapsedMs + ms
    await this.settle()
    for (let next = this.#earliest(until); next !== undefined; next = this.#earliest(until)) {
      this.#timers.delete(next)
      this.#elapsedMs = next.at
      next.task()
      await this.settle()
    }
    this.#elapsedMs = until
  }

  /** Waits until promises and immediates have come to rest. */
  async settle(): Promise<void> {
    for (let quiet = 0, seen = this.activity; quiet < quietTurns; quiet += 1) {
      await new Promise((resolve) => setImmediate(resolve))
      if (seen !== this.activity) quiet = -1
      seen = this.activity
    }
  }

  #earliest(until: number): Entry | undefined {
    let earliest: Entry | undefined
    for (const timer of this.#timers) {
      if (timer.at > until) continue
      if (
        earliest === undefined ||
        timer.at < earliest.at ||
        (timer.at === earliest.at && timer.order < earliest.order)
      ) {
        earliest = timer
      }
    }
    return earliest
  }
}
