/**
 * A limit on decoding per turn of the event loop, shared by every watch and list of the process: many events of one
 * cluster must not delay a lease renewal, a probe or a write of another.
 *
 * Flow: a stream calls `run` with itself; its `step` is called until it has no more work or the turn's time is used up;
 * then it is queued for the next turn. Guarantee: the sum of all steps between two turns stays below `limitMs` plus one
 * step.
 *
 * The default is short for two reasons. V8 collects the young generation between two turns when four fifths of it are
 * used, unless a turn fills the rest first: 0.5 ms of decoding fills about a quarter of that rest with the young
 * generation size set by bin/seamark. And a turn preempted by the kernel for one tick of 4 ms still stays below 5 ms.
 */
import { type Clock, systemClock } from '../clock.ts'

export interface Work {
  /** One small piece of work, such as one frame; returns true if there is more. */
  step(): boolean
}

export class TurnBudget {
  readonly #limitMs: number
  readonly #now: () => number
  readonly #nextTurn: (run: () => void) => void
  #spentMs = 0
  #waiting: Work[] = []
  #isArmed = false
  #meteredMs = 0
  /** The longest time spent in one turn, in ms of `meter`. */
  longestMs = 0
  /** Clock for `longestMs`, for benchmarks that measure with a different clock. @default the clock of the limit */
  meter: () => number

  constructor(
    limitMs = 0.5,
    now: () => number = () => performance.now(),
    nextTurn: (run: () => void) => void = (run) => setImmediate(run),
  ) {
    this.#limitMs = limitMs
    this.#now = now
    this.meter = now
    this.#nextTurn = nextTurn
  }

  /**
   * Runs `work` as far as this turn allows, and the rest in later turns. Must not be called again while `work` is
   * queued.
   */
  run(work: Work): void {
    this.#arm()
    if (this.#spentMs >= this.#limitMs) this.#waiting.push(work)
    else this.#slice(work)
  }

  #slice(work: Work): void {
    const meteredFrom = this.meter()
    const startedAt = this.#now()
    const until = startedAt + this.#limitMs - this.#spentMs
    let isMore = work.step()
    let at = this.#now()
    while (isMore && at < until) {
      isMore = work.step()
      at = this.#now()
    }
    this.#spentMs += at - startedAt
    this.#meteredMs += this.meter() - meteredFrom
    if (this.#meteredMs > this.longestMs) this.longestMs = this.#meteredMs
    if (isMore) this.#waiting.push(work)
  }

  #arm(): void {
    if (this.#isArmed) return
    this.#isArmed = true
    this.#nextTurn(() => this.#turn())
  }

  #turn(): void {
    this.#isArmed = false
    this.#spentMs = 0
    this.#meteredMs = 0
    const ready = this.#waiting
    if (ready.length === 0) return
    this.#arm()
    this.#waiting = []
    let index = 0
    for (; index < ready.length && this.#spentMs < this.#limitMs; index++) {
      const work = ready[index]
      if (work !== undefined) this.#slice(work)
    }
    // Work not reached in this turn runs first in the next.
    if (index < ready.length) this.#waiting = [...ready.slice(index), ...this.#waiting]
  }
}

/** One budget per process, because there is one event loop. */
export const processBudget = new TurnBudget()

/**
 * The budget of connections with this clock. A simulated clock does not advance within a turn, so that its budget is never used up
 * and a simulated run does not depend on the speed of the machine.
 */
export function turnBudgetOf(clock: Clock): TurnBudget {
  return clock === systemClock ? processBudget : new TurnBudget(undefined, () => clock.monotonic())
}
