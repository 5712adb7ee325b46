/** Errors of records and providers. `code` is stable and for programs; the message states what to do next. */
import { DnsError, type DnsErrorCode } from '@seamark/dns'
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
 * The failure of a request to a DNS service. `outcome` determines how the executor continues:
 * - `rejected`: nothing was written, and the same batch will be refused again: bisect it;
 * - `later`: nothing was written, retry after a delay (throttling, outage, quota);
 * - `unknown`: something may have been written: read before anything is sent again;
 * - `moved`: nothing was written, because the zone differs from the base of the batch (compare-and-swap).
 */
export class ProviderError extends Error {
  readonly code: Reason
  readonly outcome: 'rejected' | 'later' | 'unknown' | 'moved'
  /** The delay that the service requested. */
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

/** Of our own code, about what was to be written: nothing was sent, and another attempt fails in the same way. */
const ABOUT_RECORDS: ReadonlySet<DnsErrorCode> = new Set([
  'BAD_NAME',
  'BAD_RDATA',
  'BAD_TYPE',
  'BAD_ADDRESS',
  'TOO_LARGE',
])

export function isAboutRecords(cause: unknown): cause is DnsError {
  return cause instanceof DnsError && ABOUT_RECORDS.has(cause.code)
}

/** The refusal of the records of one batch; it says nothing about the zone or the provider. */
export function rejected(cause: Error, where?: string): ProviderError {
  const text = where === undefined ? cause.message : `${where}: ${cause.message}`
  return new ProviderError('RecordRejected', 'rejected', text, { cause })
}
