/**
 * One index of a store: keys by index value.
 *
 * Guarantee: an index function that throws is reported, and the object is indexed under no value; other objects are not
 * affected.
 */
import type { Immutable, Key, Obj } from '../object/object.ts'
import { PartitionedMap } from './partitioned-map.ts'

export type IndexValues<T extends Obj> = (object: Immutable<T>) => readonly string[]

const NONE: readonly string[] = []

export class StoreIndex<T extends Obj> {
  readonly #values: IndexValues<T>
  readonly #onError: (error: unknown) => void
  /** A plain key where only one object has the value: one Set per value would take more memory than the object. */
  readonly #postings = new PartitionedMap<Key | Set<Key>>()

  constructor(values: IndexValues<T>, onError: (error: unknown) => void) {
    this.#values = values
    this.#onError = onError
  }

  /** An empty index with the same function. */
  createEmpty(): StoreIndex<T> {
    return new StoreIndex(this.#values, this.#onError)
  }

  keysOf(value: string): Iterable<Key> {
    const found = this.#postings.get(value)
    return found === undefined ? NONE : typeof found === 'string' ? [found] : found
  }

  add(key: Key, object: Immutable<T>): void {
    for (const value of this.#valuesOf(object)) this.#addPosting(value, key)
  }

  remove(key: Key, object: Immutable<T>): void {
    for (const value of this.#valuesOf(object)) this.#removePosting(value, key)
  }

  change(key: Key, old: Immutable<T>, object: Immutable<T>): void {
    const before = this.#valuesOf(old)
    const now = this.#valuesOf(object)
    for (const value of before) if (!now.includes(value)) this.#removePosting(value, key)
    for (const value of now) if (!before.includes(value)) this.#addPosting(value, key)
  }

  #valuesOf(object: Immutable<T>): readonly string[] {
    try {
      return this.#values(object)
    } catch (error) {
      this.#onError(error)
      return NONE
    }
  }

  #addPosting(value: string, key: Key): void {
    const found = this.#postings.get(value)
    if (found === undefined) this.#postings.set(value, key)
    else if (typeof found !== 'string') found.add(key)
    else if (found !== key) this.#postings.set(value, new Set([found, key]))
  }

  #removePosting(value: string, key: Key): void {
    const found = this.#postings.get(value)
    if (found === key) this.#postings.delete(value)
    else if (found instanceof Set) {
      found.delete(key)
      const [last] = found
      if (found.size === 1 && last !== undefined) this.#postings.set(value, last)
    }
  }
}
