/**
 * A limit on decoding per turn of the event loop, shared by every watch and list of the process: a storm of events on
 * one cluster must not hold up a lease renewal, a probe or a write on another.
 *
 * Flow: a stream hands itself over with `run`; its `step` is called until there is no more or the turn's time is used
 * up; then it waits in line for the next turn. Guarantee: the sum of all steps between two turns stays below `limitMs`
 * plus one step.
 *
 * The default is short on purpose. When four fifths of the space for young objects are used, V8 collects them between two
 * turns, unless a turn fills the rest before: 0.5 ms of decoding fill about a quarter of that rest, in the space that
 * bin/seamark gives. And a turn in which the kernel takes the CPU away for one tick of 4 ms still stays below 5 ms.
 */
export interface Work {
  /** One small piece of work, such as one frame; true when there is more. */
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
  /** The longest time spent in one turn, ms of `meter`. */
  longestMs = 0
  /** Measures `longestMs` alone, for benches that want another time than that of the limit. @default the same clock */
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

  /** Works on `work` now as far as this turn allows, and on the rest later. Do not call it again while it waits. */
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
    // Those not reached go first next time.
    if (index < ready.length) this.#waiting = [...ready.slice(index), ...this.#waiting]
  }
}

/** One budget for the process: the event loop is one. */
export const processBudget = new TurnBudget()
