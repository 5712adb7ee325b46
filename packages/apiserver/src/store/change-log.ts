/**
 * Changes in revision order, first in, first out: of one collection, from which watches are resumed and earlier states are
 * computed, and of the whole store (history.ts).
 */
import type { Collection } from './collection.ts'
import type { Stored } from './stored-object.ts'

export interface Change {
  readonly resourceVersion: number
  readonly type: 'create' | 'update' | 'delete'
  readonly key: string
  readonly previous: Stored | undefined
  /** After the change; for a delete the last state, at the revision of the delete. */
  readonly current: Stored
  readonly timeMs: number
  readonly collection: Collection
}

export class ChangeLog {
  /** Undefined before `#head`: a change that was discarded is not kept in memory. */
  #items: (Change | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  at(index: number): Change | undefined {
    return this.#items[this.#head + index]
  }

  push(change: Change): void {
    this.#items.push(change)
  }

  shift(): Change | undefined {
    const first = this.#items[this.#head]
    if (first === undefined) return undefined
    this.#items[this.#head] = undefined
    this.#head += 1
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return first
  }

  /** Changes after a revision, oldest first. */
  *since(revision: number): Generator<Change> {
    for (let index = this.#firstAfter(revision); index < this.length; index += 1) yield this.at(index) as Change
  }

  /**
   * The state as of `revision` of the keys in [`from`, `to`) that changed after it; undefined: there was no object. Without
   * `to` the range is open.
   */
  undo(revision: number, from: string, to: string | undefined): Map<string, Stored | undefined> {
    const undone = new Map<string, Stored | undefined>()
    for (let index = this.length - 1; index >= 0; index -= 1) {
      const change = this.at(index) as Change
      if (change.resourceVersion <= revision) break
      if (change.key >= from && (to === undefined || change.key < to)) undone.set(change.key, change.previous)
    }
    return undone
  }

  #firstAfter(revision: number): number {
    let low = 0
    let high = this.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.at(middle) as Change).resourceVersion <= revision) low = middle + 1
      else high = middle
    }
    return low
  }
}
