/**
 * Encoded parts of the last configuration by what they were made of: a change of one host encodes one host. What a
 * configuration does not use is dropped with the next one, so that the memory is that of two configurations at most.
 */
export class Memo<T> {
  #previous: ReadonlyMap<string, T> = new Map()
  #current = new Map<string, T>()

  /** @param key everything that the value depends on */
  get(key: string, make: () => T): T {
    let value = this.#current.get(key)
    if (value !== undefined) return value
    value = this.#previous.get(key) ?? make()
    this.#current.set(key, value)
    return value
  }

  /** Begins the next configuration. */
  advance(): void {
    this.#previous = this.#current
    this.#current = new Map()
  }
}
