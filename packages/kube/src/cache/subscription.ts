/**
 * One handler of an informer. It receives every change in order; a long batch (first sync, relist, replay for a late
 * subscriber) is delivered over several event-loop turns, and later changes are queued after it.
 *
 * A handler that throws is removed and its `onError` called; other handlers are not affected.
 */
import type { TurnBudget, Work } from '../decode/decode-budget.ts'

/** Batches up to this size are delivered in one turn. */
const AT_ONCE = 32

export class Subscription<C> implements Work {
  readonly #handler: (change: C) => void
  readonly #onError: (error: unknown) => void
  readonly #budget: TurnBudget
  #waiting: Iterator<C>[] = []
  #isRunning = false
  #isDropped = false

  constructor(handler: (change: C) => void, onError: (error: unknown) => void, budget: TurnBudget) {
    this.#handler = handler
    this.#onError = onError
    this.#budget = budget
  }

  get isDropped(): boolean {
    return this.#isDropped
  }

  push(changes: Iterable<C>, count: number): void {
    if (this.#isDropped) return
    if (!this.#isRunning && count <= AT_ONCE) {
      for (const change of changes) this.#deliver(change)
      return
    }
    this.#waiting.push(changes[Symbol.iterator]())
    if (this.#isRunning) return
    this.#isRunning = true
    this.#budget.run(this)
  }

  drop(): void {
    this.#isDropped = true
    this.#waiting = []
  }

  step(): boolean {
    const next = this.#waiting[0]?.next()
    if (next === undefined) {
      this.#isRunning = false
      return false
    }
    if (next.done === true) this.#waiting.shift()
    else this.#deliver(next.value)
    return true
  }

  #deliver(change: C): void {
    if (this.#isDropped) return
    try {
      this.#handler(change)
    } catch (error) {
      this.drop()
      this.#onError(error)
    }
  }
}
