/**
 * Limits the writes to one member: `perSecond` on average, and as many at once after a pause. Times are of the monotonic
 * clock, in ms.
 *
 * Guarantee: a key that has to wait gets a time of its own, so that of many waiting keys only the next one is due. Keys that
 * all waited for the same token would each be tried again for every token.
 */
export class RateLimit {
  readonly #intervalMs: number
  readonly #burstMs: number
  /** When the bucket would be full again: the theoretical arrival time of the generic cell rate algorithm. */
  #fullAtMs = Number.NEGATIVE_INFINITY
  readonly #reserved = new Map<string, number>()

  constructor(perSecond: number) {
    this.#intervalMs = 1000 / perSecond
    this.#burstMs = 1000 - this.#intervalMs
  }

  /** How long the key has to wait for the time that it was given; 0 when it has none. */
  waitMs(key: string, nowMs: number): number {
    return Math.max(0, (this.#reserved.get(key) ?? nowMs) - nowMs)
  }

  /** 0: the key may write now. Else the time until it may, which is reserved for it. */
  take(key: string, nowMs: number): number {
    const reservedMs = this.#reserved.get(key)
    if (reservedMs !== undefined) {
      if (nowMs < reservedMs) return reservedMs - nowMs
      this.#reserved.delete(key)
      return 0
    }
    const slotMs = Math.max(this.#fullAtMs, nowMs)
    this.#fullAtMs = slotMs + this.#intervalMs
    const waitMs = Math.ceil(slotMs - this.#burstMs - nowMs)
    if (waitMs <= 0) return 0
    this.#reserved.set(key, nowMs + waitMs)
    return waitMs
  }

  /** The key does not write any more; its time passes unused. */
  release(key: string): void {
    this.#reserved.delete(key)
  }
}
