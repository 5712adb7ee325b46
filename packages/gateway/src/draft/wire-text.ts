/**
 * Texts of objects that are sent in a request line or a header field. Control characters are refused when the object is
 * read: a data plane could not send them, and Envoy would reject the routes of every other object with them.
 */

// eslint-disable-next-line no-control-regex
const CONTROL_CHARACTERS = /[\u0000-\u0008\u000A-\u001F\u007F]/

/** Octets of the name and the value of a header field; Envoy rejects longer ones. */
export const MAX_FIELD_BYTES = 16_384

/** Why a text cannot be the value of a header field. Octets above ASCII and tabs are allowed (RFC 9110 §5.5). */
export function headerValueFault(text: string): string | undefined {
  if (CONTROL_CHARACTERS.test(text)) return 'the value contains control characters'
  return Buffer.byteLength(text) > MAX_FIELD_BYTES ? `the value is longer than ${MAX_FIELD_BYTES} octets` : undefined
}

/** A path to send: spaces and characters beyond ASCII are percent-encoded (RFC 3986 §2.1). */
export function readPathText(text: string): { readonly value: string } | { readonly fault: string } {
  if (CONTROL_CHARACTERS.test(text)) return { fault: `${JSON.stringify(text)} contains control characters` }
  return { value: text.replaceAll(/[^\u0021-\u007E]/gu, percentEncode) }
}

/** As in a server name of TLS (RFC 6066 §3); Envoy rejects a longer one. */
const MAX_HOST_LENGTH = 255

/** Why a text cannot be the host of a request or of a Location. */
export function hostTextFault(text: string): string | undefined {
  if (text.length > MAX_HOST_LENGTH) return `is longer than ${MAX_HOST_LENGTH} characters`
  return /^[\u0021-\u007E]+$/.test(text) ? undefined : `${JSON.stringify(text)} is not a host name`
}

function percentEncode(character: string): string {
  return [...Buffer.from(character)].map((octet) => `%${octet.toString(16).toUpperCase().padStart(2, '0')}`).join('')
}
