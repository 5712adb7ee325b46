/**
 * The one error class of this package. `code` is stable and for programs; the message says what failed, with which value,
 * and what to do next, and is safe to print: values in it are text of others. Wire decoding throws it inside the package
 * only: the public decoders return it as a value.
 */
import { printable } from './printable.ts'

export const DNS_ERROR_CODES = [
  'BAD_NAME',
  'BAD_RDATA',
  'BAD_TYPE',
  'BAD_ZONE',
  'BAD_KEY',
  'BAD_ADDRESS',
  'MALFORMED',
  'TOO_LARGE',
  'TIMEOUT',
  'NETWORK',
  'ABORTED',
  'RCODE',
  'TRANSFER',
  'TSIG_BAD_KEY',
  'TSIG_BAD_SIG',
  'TSIG_BAD_TIME',
  'TSIG_BAD_TRUNC',
  'TSIG_MISSING',
  'STORE_CORRUPT',
  'STORE_VERSION',
  'STORE_WRITE',
  'STORE_TAKEN',
] as const

export type DnsErrorCode = (typeof DNS_ERROR_CODES)[number]

/** Characters. A hostile zone file has tokens of megabytes. */
const MAX_MESSAGE_LENGTH = 1000

export class DnsError extends Error {
  readonly code: DnsErrorCode

  constructor(code: DnsErrorCode, message: string, options?: ErrorOptions) {
    super(printable(message, MAX_MESSAGE_LENGTH), options)
    this.name = 'DnsError'
    this.code = code
  }
}
