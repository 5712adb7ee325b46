/**
 * How fast one account may be asked: additive increase, multiplicative decrease. Other programs, and other processes of
 * this one, use the same account; nobody tells us its limit but the service itself, by throttling.
 *
 * Guarantees: callers are served in order; never faster than `perSecond`; after a throttled call the rate halves and the
 * next call waits; no rate falls to zero, so nobody starves. Jitter keeps processes that started together apart.
 */
import { type Clock, sleep, systemClock } from '@seamark/kube'

export interface Limiter {
  /** Waits for its turn. After an abort it returns at once; look at `signal.aborted`. */
  acquire(signal: AbortSignal): Promise<void>
  succeeded(): void
  /** The service said: slow down. */
  throttled(retryAfterMs?: number): void
  /** Requests per second at the moment. */
  readonly rate: number
}

export interface LimiterOptions {
  readonly perSecond: number
  readonly clock?: Clock
  /** 0 ≤ x < 1. */
  readonly random?: () => number
}

/** Slowest rate: one request in 20 s still moves on, and 40 processes at it ask for two requests per second. */
const FLOOR_PER_SECOND = 0.05

/** Requests per second, gained per second without throttling. */
const GAIN_PER_SECOND = 0.005

export function createLimiter(options: LimiterOptions): Limiter {
  const { perSecond, clock = systemClock, random = Math.random } = options
  let rate = perSecond
  let nextAt = 0
  let tail: Promise<void> = Promise.resolve()

  const wait = async (signal: AbortSignal): Promise<void> => {
    for (let pause = nextAt - clock.monotonic(); pause > 0 && !signal.aborted; pause = nextAt - clock.monotonic()) {
      await sleep(clock, pause, signal)
    }
    // Between 0.75 and 1.25 of the interval: the mean is the rate.
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
      // The same gain per second for slow and fast alike is what makes shares equal in the end (Chiu and Jain 1989); a
      // success stands for 1/rate seconds.
      rate = Math.min(perSecond, rate + Math.min(GAIN_PER_SECOND / rate, rate))
    },
    throttled(retryAfterMs = 0) {
      rate = Math.max(FLOOR_PER_SECOND, rate / 2)
      const pause = Math.max(retryAfterMs, (500 / rate) * (0.5 + random()))
      nextAt = Math.max(nextAt, clock.monotonic() + pause)
    },
  }
}
