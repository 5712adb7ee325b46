/** A token bucket: `perSecond` on average, and as many at once. Times are of the monotonic clock, in ms. */
export class RateLimit {
  readonly #perSecond: number
  #tokens: number
  #atMs: number | undefined

  constructor(perSecond: number) {
    this.#perSecond = perSecond
    this.#tokens = perSecond
  }

  /** Takes a token and returns 0, or returns the time to wait until there is one. */
  take(nowMs: number): number {
    const passedMs = nowMs - (this.#atMs ?? nowMs)
    this.#atMs = nowMs
    this.#tokens = Math.min(this.#perSecond, this.#tokens + (passedMs * this.#perSecond) / 1000)
    if (this.#tokens >= 1) {
      this.#tokens--
      return 0
    }
    return Math.ceil(((1 - this.#tokens) * 1000) / this.#perSecond)
  }
}
