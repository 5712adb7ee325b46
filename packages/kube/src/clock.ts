/**
 * Time as an argument: code that waits or measures takes a Clock, so tests pass the fake one (`testing/clock.ts`), and
 * durations do not depend on a wall clock that may jump.
 */
import type { StopSignal } from './stop-signal.ts'

export interface Clock {
  /** Wall clock, ms since the epoch. For timestamps only, never for durations. */
  now(): number
  /** Never goes back, ms from an arbitrary start. For durations and deadlines. */
  monotonic(): number
  /** Runs once after `ms`; the returned function cancels. A pending timer does not keep the process alive. */
  after(ms: number, run: () => void): () => void
}

/** The maximum of a Node timer, nearly 25 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, run) {
    if (Number.isNaN(ms)) throw new RangeError('a timer needs a number of milliseconds')
    // Node changes a longer delay to 1 ms.
    const timer = setTimeout(run, Math.min(ms, MAX_TIMER_MS))
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** Resolves after `ms`, or as soon as the signal aborts: callers check `signal.aborted` afterwards. */
export async function sleep(clock: Clock, ms: number, signal?: StopSignal): Promise<void> {
  if (signal?.aborted === true) return
  await new Promise<void>((resolve) => {
    const finish = () => {
      cancel()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const cancel = clock.after(ms, finish)
    signal?.addEventListener('abort', finish, { once: true })
  })
}
