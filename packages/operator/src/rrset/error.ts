/** Errors of records and providers. `code` is stable and for programs; the message says what to do next. */
import type { Reason } from '../reasons.ts'

export type RecordsErrorCode = 'STATE_UNREADABLE' | 'PLAN_UNREADABLE' | 'CONFIG_INVALID' | 'MANIFEST_INVALID'

export class RecordsError extends Error {
  readonly code: RecordsErrorCode
  constructor(code: RecordsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RecordsError'
    this.code = code
  }
}

/**
 * What a DNS service answered instead of doing it. `outcome` decides what the executor does next:
 * - `rejected`: nothing was written, and the same batch will be refused again: bisect it;
 * - `later`: nothing was written, try again after a while (throttling, outage, quota);
 * - `unknown`: something may have been written: read before anything is sent again;
 * - `moved`: nothing was written, because the base is not what the batch says (compare-and-swap).
 */
export class ProviderError extends Error {
  readonly code: Reason
  readonly outcome: 'rejected' | 'later' | 'unknown' | 'moved'
  /** The service named a time to wait. */
  readonly retryAfterMs: number | undefined

  constructor(
    code: Reason,
    outcome: ProviderError['outcome'],
    message: string,
    options?: ErrorOptions & { retryAfterMs?: number },
  ) {
    super(message, options)
    this.name = 'ProviderError'
    this.code = code
    this.outcome = outcome
    this.retryAfterMs = options?.retryAfterMs
  }
}
