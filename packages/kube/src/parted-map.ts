/**
 * A Map by text that never stops the process to grow. V8 copies a whole Map when it doubles (some 10 ms at 65 536 entries);
 * from `SPLIT_AT` entries on this one is many small ones, and only one of them grows at a time.
 *
 * Guarantees: what a Map does, except for the order: entries come in the order they were added only until the split.
 */
const SPLIT_AT = 2048
/** A power of two. With a million entries each part has some 4000. */
const PARTS = 256
/** Names mostly differ at their end. */
const HASHED_CHARACTERS = 12

export class PartedMap<V> {
  #parts: Map<string, V>[] = [new Map()]
  #size = 0

  get size(): number {
    return this.#size
  }

  get(key: string): V | undefined {
    return this.#partOf(key).get(key)
  }

  has(key: string): boolean {
    return this.#partOf(key).has(key)
  }

  set(key: string, value: V): this {
    const part = this.#partOf(key)
    const before = part.size
    part.set(key, value)
    this.#size += part.size - before
    if (this.#size > SPLIT_AT && this.#parts.length === 1) this.#split(part)
    return this
  }

  delete(key: string): boolean {
    const wasThere = this.#partOf(key).delete(key)
    if (wasThere) this.#size--
    return wasThere
  }

  copy(): PartedMap<V> {
    const copied = new PartedMap<V>()
    copied.#parts = this.#parts.map((part) => new Map(part))
    copied.#size = this.#size
    return copied
  }

  *[Symbol.iterator](): IterableIterator<[string, V]> {
    for (const part of this.#parts) yield* part
  }

  *keys(): IterableIterator<string> {
    for (const part of this.#parts) yield* part.keys()
  }

  /** All at once: an iterator would take longer than its entries. */
  values(): V[] {
    const values: V[] = []
    for (const part of this.#parts) for (const value of part.values()) values.push(value)
    return values
  }

  #partOf(key: string): Map<string, V> {
    const place = this.#parts.length === 1 ? 0 : hashOf(key) & (PARTS - 1)
    return this.#parts[place] as Map<string, V>
  }

  #split(whole: ReadonlyMap<string, V>): void {
    this.#parts = Array.from({ length: PARTS }, () => new Map<string, V>())
    for (const [key, value] of whole) this.#partOf(key).set(key, value)
  }
}

function hashOf(text: string): number {
  const { length } = text
  let hash = length
  for (let at = Math.max(0, length - HASHED_CHARACTERS); at < length; at++) {
    hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  }
  return hash ^ (hash >>> 15)
}
