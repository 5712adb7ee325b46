/**
 * When a service is down it is asked rarely, and never in a loop: after five failures in a row at most once a minute.
 * One breaker per provider account and zone; a broken one changes nothing elsewhere (INV-13).
 */
import { type Clock, systemClock } from '@seamark/kube'
import type { Reason } from '../../reasons.ts'

export interface BreakerStatus {
  readonly isOpen: boolean
  readonly failures: number
  /** What the service said last. */
  readonly code: Reason | undefined
  readonly message: string | undefined
  /** ms since the epoch of the first failure in a row. */
  readonly since: number | undefined
}

export interface Breaker {
  /** May the service be asked now? */
  allows(): boolean
  succeeded(): void
  failed(code: Reason, message: string): void
  readonly status: BreakerStatus
  /** ms until it may be asked again. */
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
    get status() {
      return { isOpen: failures >= FAILURES_TO_OPEN, failures, code: last?.code, message: last?.message, since }
    },
    get waitMs() {
      return failures < FAILURES_TO_OPEN ? 0 : Math.max(0, retryAt - clock.monotonic())
    },
  }
}
