/**
 * Time that passes only when it is advanced: an hour costs the timers that fall due in it.
 *
 * One clock serves the API server (`schedule`) and processes under test (`after`, `monotonic`), so that their timers
 * interleave in one order: by due time, then by age. Between two timers everything that promises can do is done.
 */
import type { Clock as ServerClock } from '@seamark/apiserver'
import type { Clock as ProcessClock } from '@seamark/kube'

interface Entry {
  readonly at: number
  readonly order: number
  /** Undefined: it was cancelled. */
  task: (() => void) | undefined
}

const isEarlier = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/** Turns of the event loop without any work after which everything is taken to rest. */
const quietTurns = 2

export class VirtualClock implements ServerClock, ProcessClock {
  readonly #startMs: number
  /** A binary heap, the earliest first: a large fleet has a timer for every leaf that waits. */
  readonly #timers: Entry[] = []
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
    const entry: Entry = { at: this.#elapsedMs + Math.max(0, delayMs), order: (this.#order += 1), task }
    this.#push(entry)
    return () => {
      entry.task = undefined
    }
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
    for (let next = this.#pop(until); next !== undefined; next = this.#pop(until)) {
      if (next.task === undefined) continue
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

  #push(entry: Entry): void {
    const timers = this.#timers
    let index = timers.push(entry) - 1
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = timers[above]
      if (parent === undefined || !isEarlier(entry, parent)) break
      timers[index] = parent
      index = above
    }
    timers[index] = entry
  }

  /** Removes and returns the earliest timer that is due by then. */
  #pop(untilMs: number): Entry | undefined {
    const timers = this.#timers
    const [first] = timers
    if (first === undefined || first.at > untilMs) return undefined
    const last = timers.pop()
    if (last === undefined || timers.length === 0) return first
    let index = 0
    for (;;) {
      let below = 2 * index + 1
      const right = timers[below + 1]
      let child = timers[below]
      if (child !== undefined && right !== undefined && isEarlier(right, child)) {
        child = right
        below += 1
      }
      if (child === undefined || !isEarlier(child, last)) break
      timers[index] = child
      index = below
    }
    timers[index] = last
    return first
  }
}
