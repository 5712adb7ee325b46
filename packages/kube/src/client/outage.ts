/**
 * Recognises the end of an outage of one API server from the responses to all requests of its connection, so that watches that
 * wait for their next attempt need not wait any longer.
 *
 * Guarantee: at most one end for each `MIN_OUTAGE_MS`, so that a watch that fails again and again on a server that answers
 * keeps its back-off.
 */
import type { Clock } from '../clock.ts'

/** A process that leads sends a request every 2 s. */
const MIN_OUTAGE_MS = 5_000

export class Outage {
  readonly #clock: Pick<Clock, 'monotonic'>
  #answeredAt: number | undefined
  #hasFailed = false

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** `status`: of the response; undefined: there was none. True when it ends an outage. */
  note(status: number | undefined): boolean {
    const now = this.#clock.monotonic()
    this.#answeredAt ??= now
    if (status === undefined || !isAnswer(status)) {
      this.#hasFailed = true
      return false
    }
    const isEnd = this.#hasFailed && now - this.#answeredAt >= MIN_OUTAGE_MS
    this.#hasFailed = false
    this.#answeredAt = now
    return isEnd
  }
}

/** A load balancer without a server responds with 502 to 504; a server that starts also with 403 and 500. */
function isAnswer(status: number): boolean {
  return status < 500 && status !== 401 && status !== 403 && status !== 429
}
