/** Why a probe did not pass: one code per cause, with the text that reaches status and `explain`. */
import type { ProbeOutcome } from './verdict.ts'

export const PROBE_CODES = {
  AddressDenied: 'the target resolves only to addresses that probes must not connect to',
  BodyMismatch: 'the body does not contain the expected text',
  NameUnresolved: 'the name of the target does not exist or has no address',
  Passed: 'the target answered as expected',
  ProberFault: 'the prober could not do the probe; it says nothing about the target',
  ProtocolError: 'the target did not answer in HTTP',
  RedirectRefused: 'the target redirects too often, or to something that is not HTTP',
  Refused: 'the target refuses connections',
  Reset: 'the target closed the connection before it had answered',
  StatusUnexpected: 'the target answered with another status code',
  TimedOut: 'the target did not answer in time',
  TlsFailed: 'the TLS handshake failed',
  Unreachable: 'a router reports that the target cannot be reached',
} as const satisfies Record<string, string>

export type ProbeCode = keyof typeof PROBE_CODES

export class ProbeFailure extends Error {
  readonly code: ProbeCode
  constructor(code: ProbeCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ProbeFailure'
    this.code = code
  }

  static from(error: unknown): ProbeFailure {
    if (error instanceof ProbeFailure) return error
    const code = codeOf(error)
    const message = error instanceof Error ? error.message : String(error)
    return new ProbeFailure(SYSTEM_CODES[code] ?? (code.startsWith('HPE_') ? 'ProtocolError' : 'Reset'), message, {
      cause: error,
    })
  }

  static fromTls(error: unknown): ProbeFailure {
    const failure = ProbeFailure.from(error)
    if (failure.code === 'TimedOut' || failure.code === 'ProberFault') return failure
    return new ProbeFailure('TlsFailed', failure.message, { cause: error })
  }

  /** A name that does not exist is the target's failure; a resolver that does not answer is ours. */
  static fromResolver(name: string, error: unknown): ProbeFailure {
    if (error instanceof ProbeFailure) return error
    const code = codeOf(error)
    return code === 'ENOTFOUND' || code === 'ENODATA'
      ? new ProbeFailure('NameUnresolved', `${name} does not resolve (${code})`, { cause: error })
      : new ProbeFailure('ProberFault', `the resolver did not answer for ${name} (${code})`, { cause: error })
  }
}

/** Error codes of the operating system. Errors of this host (no route, no descriptors, no ports) do not count against a target. */
const SYSTEM_CODES: Readonly<Record<string, ProbeCode>> = {
  ECONNREFUSED: 'Refused',
  ECONNRESET: 'Reset',
  EPIPE: 'Reset',
  ETIMEDOUT: 'TimedOut',
  EHOSTUNREACH: 'Unreachable',
  EADDRNOTAVAIL: 'ProberFault',
  EMFILE: 'ProberFault',
  ENETDOWN: 'ProberFault',
  ENETUNREACH: 'ProberFault',
  ENFILE: 'ProberFault',
  ENOBUFS: 'ProberFault',
  ENOMEM: 'ProberFault',
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'unknown error'
}

export function outcomeOf(code: ProbeCode): ProbeOutcome {
  return code === 'Passed' ? 'pass' : code === 'ProberFault' ? 'inconclusive' : 'fail'
}
