/**
 * Circuit breaker: after five consecutive failures, at most one request a minute is sent until the service responds, and
 * one at once whenever an operator requests a verification.
 * One breaker per provider account and zone; a failing zone does not affect others (INV-13).
 */
import { type Clock, systemClock } from '@seamark/kube'
import type { Reason } from '../../reasons.ts'

export interface BreakerStatus {
  readonly isOpen: boolean
  readonly failures: number
  /** The last error of the service. */
  readonly code: Reason | undefined
  readonly message: string | undefined
  /** ms since the epoch of the first of the consecutive failures. */
  readonly since: number | undefined
}

export interface Breaker {
  /** Whether a request may be sent now. */
  allows(): boolean
  succeeded(): void
  failed(code: Reason, message: string): void
  /** The next request may be sent at once; a breaker that is open stays open until it succeeds. */
  retryNow(): void
  readonly status: BreakerStatus
  /** ms until the next request may be sent. */
  readonly waitMs: number
}

const FAILURES_TO_OPEN = 5
const RETRY_MS = 60_000

export function createBreaker(clock: Clock = systemClock): Breaker {
  let failures = 0
  let last: { code: Reason; message: string } | undefined
  let since: number | undefined
  let retryAt = 0
  return {
    allows: () => failures < FAILURES_TO_OPEN || clock.monotonic() >= retryAt,
    succeeded() {
      failures = 0
      last = undefined
      since = undefined
    },
    failed(code, message) {
      failures++
      last = { code, message }
      since ??= clock.now()
      retryAt = clock.monotonic() + RETRY_MS
    },
    retryNow() {
      retryAt = clock.monotonic()
    },
    get status() {
      return { isOpen: failures >= FAILURES_TO_OPEN, failures, code: last?.code, message: last?.message, since }
    },
    get waitMs() {
      return failures < FAILURES_TO_OPEN ? 0 : Math.max(0, retryAt - clock.monotonic())
    },
  }
}
