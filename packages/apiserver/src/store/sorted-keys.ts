/**
 * A sorted set of strings with cheap inserts at any size: chunks of at most `chunkSize` keys, found by binary search.
 *
 * An insert moves at most one chunk, so a create costs the same at a hundred thousand keys as at a thousand; one flat sorted
 * array would move 400 kB per insert there.
 */
const chunkSize = 256

export class SortedKeys {
  readonly #chunks: string[][] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  add(key: string): void {
    if (this.#chunks.length === 0) {
      this.#chunks.push([key])
      this.#size = 1
      return
    }
    const index = this.#chunkFor(key)
    const chunk = this.#chunks[index] as string[]
    const at = lowerBound(chunk, key)
    if (chunk[at] === key) return
    chunk.splice(at, 0, key)
    this.#size += 1
    if (chunk.length > chunkSize) this.#split(index, at)
  }

  delete(key: string): void {
    if (this.#chunks.length === 0) return
    const index = this.#chunkFor(key)
    const chunk = this.#chunks[index] as string[]
    const at = lowerBound(chunk, key)
    if (chunk[at] !== key) return
    chunk.splice(at, 1)
    this.#size -= 1
    if (chunk.length === 0) this.#chunks.splice(index, 1)
  }

  /** Keys in `[from, to)`, ascending; without `to`, to the end. The set must not change meanwhile. */
  *range(from: string, to?: string): Generator<string> {
    for (let index = this.#chunks.length === 0 ? 0 : this.#chunkFor(from); index < this.#chunks.length; index += 1) {
      const chunk = this.#chunks[index] as string[]
      for (let at = lowerBound(chunk, from); at < chunk.length; at += 1) {
        const key = chunk[at] as string
        if (to !== undefined && key >= to) return
        yield key
      }
    }
  }

  /** How many keys are in `[from, to)`, without visiting them. */
  count(from: string, to?: string): number {
    return this.#rank(to) - this.#rank(from)
  }

  #rank(key: string | undefined): number {
    if (key === undefined) return this.#size
    if (this.#chunks.length === 0) return 0
    const index = this.#chunkFor(key)
    let rank = 0
    for (let before = 0; before < index; before += 1) rank += (this.#chunks[before] as string[]).length
    return rank + lowerBound(this.#chunks[index] as string[], key)
  }

  /** The last chunk whose first key is not after `key`; the first chunk when all are. */
  #chunkFor(key: string): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#chunks[middle]?.[0] as string) <= key) low = middle
      else high = middle - 1
    }
    return low
  }

  /** Appending in order is the common case: a full chunk then stays full instead of leaving halves behind. */
  #split(index: number, insertedAt: number): void {
    const chunk = this.#chunks[index] as string[]
    const keep = insertedAt === chunk.length - 1 ? chunk.length - 1 : chunk.length >> 1
    this.#chunks.splice(index + 1, 0, chunk.splice(keep))
  }
}

function lowerBound(sorted: readonly string[], key: string): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}
