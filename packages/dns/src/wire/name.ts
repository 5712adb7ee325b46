/**
 * Domain names: presentation text ↔ wire labels, case folding, limits (RFC 1035 §2.3.4: label ≤ 63, name ≤ 255 octets).
 *
 * Two forms are used everywhere. `Fqdn` is the canonical text: lower case, absolute, with trailing dot, escaped as BIND
 * escapes; two names are equal exactly when their Fqdn are equal. Wire names are Uint8Array with the root label, without
 * compression, case kept. IDNA happens only here: text with non-ASCII characters becomes A-labels (RFC 5891).
 */
import { domainToASCII, domainToUnicode } from 'node:url'
import { DnsError } from '../error.ts'

export type Fqdn = string & { readonly __brand: 'Fqdn' }

export const MAX_NAME = 255
const MAX_LABEL = 63
const ROOT: Uint8Array = new Uint8Array(1)

const DOT = 0x2e
const BACKSLASH = 0x5c

const bad = (text: string, why: string) =>
  new DnsError('BAD_NAME', `bad name '${text.length > 80 ? `${text.slice(0, 80)}…` : text}': ${why}`)

/** U-labels to A-labels, label by label, so that URL quirks (percent signs, slashes, numbers) cannot reach the converter. */
function toAscii(text: string): string {
  const labels = text.split(/[.\u3002\uff0e\uff61]/)
  return labels
    .map((label) => {
      if (isAscii(label)) return label
      if (/[\0-\x20\x7f%/\\?#@:[\]<>^|]/.test(label))
        throw bad(text, 'an international label has a forbidden character')
      const ascii = domainToASCII(label)
      if (ascii === '' || ascii.includes('.')) throw bad(text, `'${label}' is not a valid international label`)
      return ascii
    })
    .join('.')
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

const scratch = new Uint8Array(MAX_NAME + 1)

/**
 * Text to wire. A name without a final dot is completed by `origin` (wire); without an origin it counts as absolute.
 * Throws DnsError BAD_NAME.
 */
export function nameToWire(source: string, origin?: Uint8Array): Uint8Array {
  const text = isAscii(source) ? source : toAscii(source)
  if (text === '.') return ROOT
  if (text === '') throw bad(source, 'it is empty')
  let start = 0 // of the length octet of the label being written
  let at = 1
  let isAbsolute = false
  for (let i = 0; i < text.length; i++) {
    let code = text.charCodeAt(i)
    if (code === DOT) {
      if (at === start + 1) throw bad(source, 'it has an empty label')
      scratch[start] = at - start - 1
      start = at++
      isAbsolute = i === text.length - 1
      continue
    }
    if (code === BACKSLASH) {
      const digits = text.slice(i + 1, i + 4)
      if (/^\d{3}$/.test(digits)) {
        code = Number(digits)
        if (code > 255) throw bad(source, `escape \\${digits} is over \\255`)
        i += 3
      } else {
        if (i + 1 >= text.length) throw bad(source, 'it ends in a backslash')
        code = text.charCodeAt(++i)
      }
    }
    if (at - start > MAX_LABEL) throw bad(source, `a label is longer than ${MAX_LABEL} octets`)
    if (at >= MAX_NAME) throw bad(source, `it is longer than ${MAX_NAME} octets`)
    scratch[at++] = code
  }
  if (isAbsolute || origin === undefined) {
    if (!isAbsolute) {
      scratch[start] = at - start - 1
      start = at++
    }
    scratch[start] = 0
    if (at > MAX_NAME) throw bad(source, `it is longer than ${MAX_NAME} octets`)
    return scratch.slice(0, at)
  }
  scratch[start] = at - start - 1
  if (at + origin.length > MAX_NAME) throw bad(source, `with its origin it is longer than ${MAX_NAME} octets`)
  const wire = new Uint8Array(at + origin.length)
  wire.set(scratch.subarray(0, at))
  wire.set(origin, at)
  return wire
}

const lowerCase = (code: number): number => (code >= 0x41 && code <= 0x5a ? code + 0x20 : code)

function printed(code: number): string {
  switch (code) {
    case 0x22: // "
    case 0x24: // $
    case 0x28: // (
    case 0x29: // )
    case DOT:
    case 0x3b: // ;
    case 0x40: // @
    case BACKSLASH:
      return `\\${String.fromCharCode(code)}`
  }
  return code > 0x20 && code < 0x7f ? String.fromCharCode(code) : `\\${String(code).padStart(3, '0')}`
}

const PRINTED = Array.from({ length: 256 }, (_, code) => printed(code))
const PRINTED_LOWER = Array.from({ length: 256 }, (_, code) => printed(lowerCase(code)))

function print(wire: Uint8Array, at: number, table: readonly string[]): string {
  if (wire[at] === 0) return '.'
  let text = ''
  for (let length = wire[at]!; length !== 0; length = wire[at]!) {
    for (const end = ++at + length; at < end; at++) text += table[wire[at]!]!
    text += '.'
  }
  return text
}

/** Wire to text, case kept: for display. `wire` must be a checked, uncompressed name. */
export const nameToText = (wire: Uint8Array, at = 0): string => print(wire, at, PRINTED)

/** Wire to the canonical text. `wire` must be a checked, uncompressed name. */
export const wireToFqdn = (wire: Uint8Array, at = 0): Fqdn => print(wire, at, PRINTED_LOWER) as Fqdn

/** The canonical name of any spelling of it; throws DnsError BAD_NAME. */
export function fqdn(text: string, origin?: Fqdn): Fqdn {
  return wireToFqdn(nameToWire(text, origin === undefined ? undefined : nameToWire(origin)))
}

/** As `fqdn`, for input whose badness is an expected outcome. */
export function parseName(text: string, origin?: Fqdn): Fqdn | DnsError {
  try {
    return fqdn(text, origin)
  } catch (error) {
    if (error instanceof DnsError) return error
    throw error
  }
}

/** For display: A-labels as Unicode. Never use the result as a key. */
export function toUnicode(name: Fqdn): string {
  return labelsOf(name)
    .map((label) => (label.startsWith('xn--') ? domainToUnicode(label) || label : label))
    .concat('')
    .join('.')
}

/** Labels of a canonical name, first to last, still escaped; the root has none. */
export function labelsOf(name: Fqdn): string[] {
  if (name === '.') return []
  const labels: string[] = []
  let start = 0
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if (code === BACKSLASH) i++
    else if (code === DOT) {
      labels.push(name.slice(start, i))
      start = i + 1
    }
  }
  return labels
}

/** The name without its first label, or undefined for the root. */
export function parentOf(name: Fqdn): Fqdn | undefined {
  if (name === '.') return undefined
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if (code === BACKSLASH) i++
    else if (code === DOT) return (i === name.length - 1 ? '.' : name.slice(i + 1)) as Fqdn
  }
  return undefined
}

/** True when `name` is `ancestor` or below it. */
export function isSubdomain(name: Fqdn, ancestor: Fqdn): boolean {
  if (ancestor === '.' || name === ancestor) return true
  if (!name.endsWith(`.${ancestor}`)) return false
  // The dot before the ancestor may be an escaped one: then an odd number of backslashes is before it.
  let slashes = 0
  for (let i = name.length - ancestor.length - 2; i >= 0 && name.charCodeAt(i) === BACKSLASH; i--) slashes++
  return slashes % 2 === 0
}

export const isWildcard = (name: Fqdn): boolean => name.startsWith('*.')

/** RFC 4034 §6.1 order: by labels from the root; used where output must be stable. */
export function compareNames(a: Fqdn, b: Fqdn): number {
  const left = labelsOf(a)
  const right = labelsOf(b)
  for (let i = 1; i <= Math.min(left.length, right.length); i++) {
    const x = left[left.length - i]!
    const y = right[right.length - i]!
    if (x !== y) return x < y ? -1 : 1
  }
  return left.length - right.length
}

/** Folds ASCII letters of a wire name into a new array (length octets are below 0x41 and stay). */
export function lowerWire(wire: Uint8Array): Uint8Array {
  const lower = new Uint8Array(wire.length)
  for (let i = 0; i < wire.length; i++) lower[i] = lowerCase(wire[i]!)
  return lower
}

/** Length in octets of the uncompressed wire name at `at`, including the root label. */
export function wireLength(wire: Uint8Array, at = 0): number {
  const start = at
  while (wire[at] !== 0) at += wire[at]! + 1
  return at + 1 - start
}
