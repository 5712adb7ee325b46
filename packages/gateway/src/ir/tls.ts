/** Which TLS settings are the same ones, so that a connection that one host accepted is as good as one for the other. */
import type { ClientValidation, TlsTermination } from './model.ts'

export function isSameValidation(a: ClientValidation | undefined, b: ClientValidation | undefined): boolean {
  return a === b || (a?.ca === b?.ca && a?.isOptional === b?.isOptional)
}

/** Certificate and client validation; undefined: no TLS. */
export function isSameTermination(a: TlsTermination | undefined, b: TlsTermination | undefined): boolean {
  return a?.certificate === b?.certificate && isSameValidation(a?.clientValidation, b?.clientValidation)
}
