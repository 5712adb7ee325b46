/**
 * When requests are handled: as they arrive, or, while more arrive than a turn of the event loop has time for, one of each
 * connection after another. So a client that sends thousands at once delays the others by a part of a turn.
 */
const TURN_MS = 10

export class RequestTurns {
  readonly #nowMs: () => number
  /** By connection, in the order of their next turns. */
  readonly #waiting = new Map<object, (() => void)[]>()
  #untilMs = 0
  #isScheduled = false

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** @param lateMs time that the work takes after it has returned */
  run(connection: object, work: () => void, lateMs = 0): void {
    this.#schedule()
    if (this.#waiting.size === 0 && this.#nowMs() < this.#untilMs) return this.#work(work, lateMs)
    const others = this.#waiting.get(connection)
    const run = () => this.#work(work, lateMs)
    if (others === undefined) this.#waiting.set(connection, [run])
    else others.push(run)
  }

  #work(work: () => void, lateMs: number): void {
    this.#untilMs -= lateMs
    work()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#untilMs = this.#nowMs() + TURN_MS
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#isScheduled = false
    if (this.#waiting.size === 0) return
    this.#schedule()
    while (this.#nowMs() < this.#untilMs) {
      const first = this.#waiting.entries().next().value
      if (first === undefined) return
      const [connection, works] = first
      const next = works.shift()
      this.#waiting.delete(connection)
      if (works.length > 0) this.#waiting.set(connection, works)
      next?.()
    }
  }
}
