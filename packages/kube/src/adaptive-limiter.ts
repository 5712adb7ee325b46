/**
 * Request rate of one account at a service: additive increase, multiplicative decrease (AIMD). Other programs, and other
 * processes of this one, share the account; its limit is learned from the throttling of the service.
 *
 * Guarantees: callers are served in order; never faster than `perSecond`; after a throttled call the rate halves and the
 * next call waits; the rate never reaches zero, so no caller starves. Jitter desynchronises processes that started together.
 */
import { type Clock, sleep, systemClock } from './clock.ts'
import type { StopSignal } from './stop-signal.ts'

export interface AdaptiveLimiter {
  /** Resolves when a request may be sent, or at once after an abort; check `signal.aborted`. */
  acquire(signal: StopSignal): Promise<void>
  succeeded(): void
  /** The service throttled a request. */
  throttled(retryAfterMs?: number): void
  /** Current rate in requests per second. */
  readonly rate: number
}

export interface AdaptiveLimiterOptions {
  readonly perSecond: number
  readonly clock?: Clock
  /** 0 ≤ x < 1. */
  readonly random?: () => number
}

/** Slowest rate: one request in 20 s still makes progress, and 40 processes at it send two requests per second. */
const FLOOR_PER_SECOND = 0.05

/** Increase of the rate, in requests per second, for each second without throttling. */
const GAIN_PER_SECOND = 0.005

export function createLimiter(options: AdaptiveLimiterOptions): AdaptiveLimiter {
  const { perSecond, clock = systemClock, random = Math.random } = options
  let rate = perSecond
  let nextAt = 0
  let tail: Promise<void> = Promise.resolve()

  const wait = async (signal: StopSignal): Promise<void> => {
    for (let pause = nextAt - clock.monotonic(); pause > 0 && !signal.aborted; pause = nextAt - clock.monotonic()) {
      await sleep(clock, pause, signal)
    }
    // Between 0.75 and 1.25 of the interval, so that the mean is the rate.
    if (!signal.aborted) nextAt = Math.max(clock.monotonic(), nextAt) + (1000 / rate) * (0.75 + random() / 2)
  }
  return {
    get rate() {
      return rate
    },
    acquire(signal) {
      const turn = tail.then(async () => wait(signal))
      tail = turn
      return turn
    },
    succeeded() {
      // The same increase per second for slow and fast callers makes their shares converge (Chiu and Jain 1989); a
      // success represents 1/rate seconds.
      rate = Math.min(perSecond, rate + Math.min(GAIN_PER_SECOND / rate, rate))
    },
    throttled(retryAfterMs = 0) {
      rate = Math.max(FLOOR_PER_SECOND, rate / 2)
      const pause = Math.max(retryAfterMs, (500 / rate) * (0.5 + random()))
      nextAt = Math.max(nextAt, clock.monotonic() + pause)
    },
  }
}
