/**
 * A Map with string keys that grows without long pauses. V8 copies a whole Map when it doubles (some 10 ms at 65 536
 * entries); this one consists of many small Maps (linear hashing): each `PART_ENTRIES` additional entries split one of
 * them in two.
 *
 * Guarantees: the behaviour of a Map except for the iteration order, which is insertion order only until the first
 * split. No call touches more than the entries of one part, about `PART_ENTRIES` to twice as many.
 */
const PART_ENTRIES = 128

export class PartitionedMap<V> {
  #parts: Map<string, V>[] = [new Map()]
  /** Number of parts before the current round of splits, minus one; a power of two minus one. */
  #mask = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Entries of the largest part: the upper bound of what one call touches. */
  get largestPart(): number {
    return Math.max(...this.#parts.map((part) => part.size))
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
    if (this.#size > this.#parts.length * PART_ENTRIES) this.#splitOne()
    return this
  }

  delete(key: string): boolean {
    const wasPresent = this.#partOf(key).delete(key)
    if (wasPresent) this.#size--
    return wasPresent
  }

  copy(): PartitionedMap<V> {
    const copied = new PartitionedMap<V>()
    copied.#parts = this.#parts.map((part) => new Map(part))
    copied.#mask = this.#mask
    copied.#size = this.#size
    return copied
  }

  *[Symbol.iterator](): IterableIterator<[string, V]> {
    for (const part of this.#parts) yield* part
  }

  *keys(): IterableIterator<string> {
    for (const part of this.#parts) yield* part.keys()
  }

  /** An array, because iterating with a generator costs more than the copy. */
  values(): V[] {
    const values: V[] = []
    for (const part of this.#parts) for (const value of part.values()) values.push(value)
    return values
  }

  #partOf(key: string): Map<string, V> {
    const parts = this.#parts
    return (parts.length === 1 ? parts[0] : parts[this.#indexOf(key)]) as Map<string, V>
  }

  /** Parts already split in this round use one more bit of the hash. */
  #indexOf(key: string): number {
    const hash = hashOf(key)
    const index = hash & (2 * this.#mask + 1)
    return index < this.#parts.length ? index : hash & this.#mask
  }

  #splitOne(): void {
    const parts = this.#parts
    const from = parts.length & this.#mask
    const whole = parts[from] as Map<string, V>
    parts[from] = new Map()
    parts.push(new Map())
    // forEach, because an iterator allocates an array per entry.
    whole.forEach((value, key) => this.#partOf(key).set(key, value))
    if (parts.length === 2 * (this.#mask + 1)) this.#mask = parts.length - 1
  }
}

/** Hashes the whole string: object names differ at the end, host names at the beginning. */
function hashOf(text: string): number {
  let hash = text.length
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  // Multiplying by 31 leaves similar names close to each other; the part is chosen by the lowest bits.
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return hash ^ (hash >>> 16)
}
