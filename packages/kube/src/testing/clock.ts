/**
 * A clock that advances only on request. `advance` runs due timers in order and lets promises settle in between, so code
 * under test observes time as with a real clock.
 */
import type { Clock } from '../clock.ts'

export interface FakeClock extends Clock {
  /** Advances time by `ms` and runs due timers, including those scheduled meanwhile. */
  advance(ms: number): Promise<void>
  /** Advances both clocks without running timers: simulates a process that was stopped and resumed. */
  stall(ms: number): void
  /** Advances to the next timer and runs it; false if none is pending. */
  next(): Promise<boolean>
  readonly pending: number
}

interface Timer {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

export function fakeClock(startMs = Date.UTC(2030, 0, 1)): FakeClock {
  let elapsed = 0
  let order = 0
  const timers = new Set<Timer>()

  function findEarliest(): Timer | undefined {
    let earliest: Timer | undefined
    for (const timer of timers) {
      if (
        earliest === undefined ||
        timer.at < earliest.at ||
        (timer.at === earliest.at && timer.order < earliest.order)
      ) {
        earliest = timer
      }
    }
    return earliest
  }

  async function fire(timer: Timer): Promise<void> {
    timers.delete(timer)
    elapsed = Math.max(elapsed, timer.at)
    timer.run()
    await settle()
  }

  return {
    now: () => startMs + elapsed,
    monotonic: () => elapsed,
    after(ms, run) {
      const timer = { at: elapsed + Math.max(0, ms), order: order++, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    async advance(ms) {
      const until = elapsed + ms
      await settle()
      for (let timer = findEarliest(); timer !== undefined && timer.at <= until; timer = findEarliest()) {
        await fire(timer)
      }
      elapsed = Math.max(elapsed, until)
    },
    stall(ms) {
      elapsed += ms
    },
    async next() {
      await settle()
      const timer = findEarliest()
      if (timer === undefined) return false
      await fire(timer)
      return true
    },
    get pending() {
      return timers.size
    },
  }
}

/** A few event-loop turns, so that promise chains and immediates started by a timer complete. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
}
