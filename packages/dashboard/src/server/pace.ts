/**
 * How often something may happen: after quiet times at once, for ever once in `periodMs`. In any span of `ms` it happens at most
 * `burst + ms / periodMs` times.
 */
export class Pace {
  readonly #burst: number
  readonly #periodMs: number
  /** When the whole burst is available again. */
  #fullAtMs = Number.NEGATIVE_INFINITY

  constructor(burst: number, periodMs: number) {
    this.#burst = burst
    this.#periodMs = periodMs
  }

  isOpen(nowMs: number): boolean {
    return this.#fullAtMs - nowMs <= (this.#burst - 1) * this.#periodMs
  }

  note(nowMs: number): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + this.#periodMs
  }
}
