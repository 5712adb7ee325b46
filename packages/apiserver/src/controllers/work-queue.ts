/**
 * A keyed work queue: a key is processed by one worker at a time, after the write that added it has completed, and
 * again when it was added during processing. Failures are retried with increasing delays.
 */
import type { Clock, Timer } from '../clock.ts'

const firstRetryMs = 50
const lastRetryMs = 10_000

export class WorkQueue<T> {
  readonly #clock: Clock
  readonly #work: (item: T) => Promise<void>
  readonly #onError: (error: unknown) => void
  readonly #waiting = new Map<string, T>()
  readonly #failures = new Map<string, number>()
  readonly #timers = new Set<Timer>()
  #isRunning = false
  #isClosed = false

  constructor(clock: Clock, work: (item: T) => Promise<void>, onError: (error: unknown) => void) {
    this.#clock = clock
    this.#work = work
    this.#onError = onError
  }

  add(key: string, item: T, delayMs = 0): void {
    if (this.#isClosed) return
    if (delayMs > 0) {
      this.#later(delayMs, () => this.add(key, item))
      return
    }
    this.#waiting.set(key, item)
    if (this.#isRunning) return
    this.#isRunning = true
    this.#later(0, () => void this.#run())
  }

  #later(delayMs: number, task: () => void): void {
    const timer: Timer = this.#clock.schedule(delayMs, () => {
      this.#timers.delete(timer)
      task()
    })
    this.#timers.add(timer)
  }

  async #run(): Promise<void> {
    for (const [key, item] of this.#waiting) {
      if (this.#isClosed) break
      this.#waiting.delete(key)
      try {
        await this.#work(item)
        this.#failures.delete(key)
      } catch (error) {
        this.#onError(error)
        const failures = (this.#failures.get(key) ?? 0) + 1
        this.#failures.set(key, failures)
        this.add(key, item, Math.min(lastRetryMs, firstRetryMs * 2 ** failures))
      }
    }
    this.#isRunning = false
  }

  close(): void {
    this.#isClosed = true
    this.#waiting.clear()
    for (const timer of this.#timers) timer.cancel()
  }
}
