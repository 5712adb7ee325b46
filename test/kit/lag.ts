/**
 * What a busy machine adds to every wait: how much later than asked for a timer of this process ends. A bound in seconds that an
 * issue or a page promises for an idle machine is tested with a few times this in addition.
 */
const PERIOD_MS = 20

export class Lag {
  /** Largest so far. */
  maxMs = 0
  readonly #timer: NodeJS.Timeout

  constructor() {
    let expectedMs = performance.now() + PERIOD_MS
    this.#timer = setInterval(() => {
      const nowMs = performance.now()
      this.maxMs = Math.max(this.maxMs, nowMs - expectedMs)
      expectedMs = nowMs + PERIOD_MS
    }, PERIOD_MS)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}
