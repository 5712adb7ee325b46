/** Recent writes of the controllers, by key of the object. In memory only: after a restart they are not needed. */

const MINUTE_MS = 60_000

/** When the records of a load balancer were changed within the last minute (INV-19). */
export class RecentChanges {
  readonly #times = new Map<string, readonly number[]>()

  of(key: string): readonly number[] {
    return this.#times.get(key) ?? []
  }

  add(key: string, nowMs: number): void {
    this.#times.set(key, [...this.of(key).filter((atMs) => nowMs - atMs < MINUTE_MS), nowMs])
  }

  forget(key: string): void {
    this.#times.delete(key)
  }
}

/** An Event equal to the last one of its object is not sent again, as in the original. */
export class RecentEvents {
  readonly #last = new Map<string, string>()

  isNew(key: string, text: string): boolean {
    if (this.#last.get(key) === text) return false
    this.#last.set(key, text)
    return true
  }

  forget(key: string): void {
    this.#last.delete(key)
  }
}
