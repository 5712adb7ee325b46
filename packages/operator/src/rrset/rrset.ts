/**
 * RRsets of the planner: all values of one name and type, in one canonical text form, so that equality is string equality.
 * Input from a source or a provider passes `canonicalSet`; inside the package, sets are trusted.
 *
 * Canonical: names lower-case, absolute, with a trailing dot; values in presentation form, sorted, without duplicates;
 * addresses in their shortest form (RFC 5952); TXT as quoted strings of at most 255 octets.
 */
import { isIPv4 } from 'node:net'
import { domainToASCII } from 'node:url'
import { createHash } from 'node:crypto'
import { createRRset, DnsError, printable as printableText } from '@seamark/dns'

export interface RRset {
  readonly name: string
  readonly type: string
  /** Seconds. */
  readonly ttl: number
  readonly values: readonly string[]
}

/** A set read from a provider. */
export interface ObservedRRset extends RRset {
  /** A provider feature that a plain RRset cannot represent (`alias`, `weighted`): such a set is never changed. */
  readonly opaque?: string
}

/** Types that a source may request. Every other type at a provider is foreign. */
export const MANAGEABLE_TYPES = ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV', 'NS', 'PTR', 'CAA'] as const

const MAX_TTL = 2 ** 31 - 1

export type Invalid = { readonly invalid: string }

export function isInvalid(value: unknown): value is Invalid {
  return typeof value === 'object' && value !== null && 'invalid' in value
}

/** One string per (name, type); a name cannot contain a space in canonical form. */
export function setKey(set: { readonly name: string; readonly type: string }): string {
  return `${set.name} ${set.type}`
}

export function sameValues(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false
  return true
}

export function sameSet(a: RRset | undefined, b: RRset | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.name === b.name && a.type === b.type && a.ttl === b.ttl && sameValues(a.values, b.values)
}

export function compareSets(a: RRset, b: RRset): number {
  return compareText(a.name, b.name) || compareText(a.type, b.type)
}

/** Code-unit order: the same on every machine, unlike localeCompare. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Digest of a view of a zone: equal views, in any order, have the same digest. Without SOA, whose serial changes by itself. */
export function digestOf(sets: readonly ObservedRRset[]): string {
  const hash = createHash('sha256')
  const lines = sets.filter((set) => set.type !== 'SOA').map(printSet)
  for (const line of lines.sort(compareText)) hash.update(line).update('\n')
  return `sha256:${hash.digest('hex')}`
}

export function printSet(set: ObservedRRset): string {
  return `${set.name} ${set.ttl} ${set.type} ${set.values.join(' | ')}${set.opaque === undefined ? '' : ` (${set.opaque})`}`
}

export function isWithin(name: string, origin: string): boolean {
  if (!name.endsWith(origin)) return false
  // The dot before it is checked in place: this runs for every name of a zone.
  return name.length === origin.length || origin === '.' || name.charCodeAt(name.length - origin.length - 1) === 0x2e
}

/** `*.a.test.` → true: the leftmost label is an asterisk (RFC 4592 §2.1.1). */
export function isWildcard(name: string): boolean {
  return name.startsWith('*.')
}

/**
 * The canonical form of a name, or why it is invalid. Linear in the length: no backtracking expression is applied to
 * tenant text. Accepts U-labels (IDNA), upper case, and an absent trailing dot.
 */
export function canonicalName(text: string): string | Invalid {
  if (text.length === 0 || text.length > 1024) return { invalid: 'a name has 1 to 253 characters' }
  let ascii = text.endsWith('.') ? text.slice(0, -1) : text
  if (!isAscii(ascii)) {
    // domainToASCII rejects an asterisk label, so it is removed before and added after.
    const star = ascii.startsWith('*.') ? '*.' : ''
    const converted = domainToASCII(ascii.slice(star.length))
    if (converted === '') return { invalid: 'the name is not a valid internationalised name (IDNA)' }
    ascii = star + converted
  }
  ascii = ascii.toLowerCase()
  if (ascii.length > 253) return { invalid: `a name has at most 253 characters, this one has ${ascii.length}` }
  if (isIPv4(ascii)) return { invalid: 'an IP address is not a name' }
  for (const [index, label] of ascii.split('.').entries()) {
    if (label.length === 0) return { invalid: 'a name has no empty label' }
    if (label.length > 63) return { invalid: `a label has at most 63 characters, one here has ${label.length}` }
    if (label === '*' && index === 0) continue
    for (const char of label) {
      if (!isNameChar(char)) return { invalid: `'${printable(char)}' is not allowed in a name` }
    }
    if (label.startsWith('-') || label.endsWith('-'))
      return { invalid: 'a label neither begins nor ends with a hyphen' }
  }
  return `${ascii}.`
}

/** Whether a record may have the name; requests of others, such as a registry's, need not be names. */
export function isName(text: string): boolean {
  return !isInvalid(canonicalName(text))
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x7e) return false
  return true
}

function isNameChar(char: string): boolean {
  return (char >= 'a' && char <= 'z') || (char >= '0' && char <= '9') || char === '-' || char === '_'
}

/** One character for a message: control characters are escaped. */
function printable(char: string): string {
  const code = char.codePointAt(0) ?? 0
  return code > 0x20 && code < 0x7f ? char : `\\u{${code.toString(16)}}`
}

/** The canonical set, or why it is invalid. An empty list of values is kept: it means "desired, but no target is known". */
export function canonicalSet(set: {
  readonly name: string
  readonly type: string
  readonly ttl: number
  readonly values: readonly string[]
}): RRset | Invalid {
  const name = canonicalName(set.name)
  if (isInvalid(name)) return name
  const type = set.type.toUpperCase()
  if (!Number.isInteger(set.ttl) || set.ttl < 0 || set.ttl > MAX_TTL) {
    return { invalid: `a TTL is a whole number of seconds from 0 to ${MAX_TTL}` }
  }
  const values: string[] = []
  for (const value of set.values) {
    const canonical = canonicalValue(type, value)
    if (isInvalid(canonical)) return canonical
    values.push(canonical)
  }
  if (type === 'CNAME' && new Set(values).size > 1) return { invalid: 'a CNAME has one target (RFC 1034 §3.6.2)' }
  return { name, type, ttl: set.ttl, values: sortedUnique(values) }
}

export function sortedUnique(values: readonly string[]): string[] {
  return values.length < 2 ? [...values] : [...new Set(values)].sort(compareText)
}

export function canonicalValue(type: string, value: string): string | Invalid {
  switch (type) {
    case 'A':
      return isIPv4(value) ? value : { invalid: `'${shown(value)}' is not an IPv4 address` }
    case 'CNAME':
    case 'NS':
    case 'PTR':
    case 'DNAME': {
      const name = canonicalName(value)
      return isInvalid(name) ? { invalid: `target '${shown(value)}': ${name.invalid}` } : name
    }
    case 'TXT':
      return canonicalTxt(value)
    default:
      return canonicalOther(type, value)
  }
}

function canonicalOther(type: string, value: string): string | Invalid {
  try {
    return createRRset('.', type, 0, [value]).values[0] ?? { invalid: 'the value is empty' }
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    return { invalid: `'${shown(value)}' is not a value of type ${shown(type)}: ${shown(error.message)}` }
  }
}

/** Sets of packages/dns, in the planner's order. */
export function fromDns(set: RRset): RRset {
  return { name: set.name, type: set.type, ttl: set.ttl, values: sortedUnique(set.values) }
}

/** Characters of an untrusted text that a message repeats. */
const SHOWN_LENGTH = 80

/** Text for a message: short, and without control characters (log and terminal injection). */
export function shown(text: string): string {
  return printableText(text, SHOWN_LENGTH)
}

const CHARACTER_STRING_MAX = 255

/** TXT in quoted form, split as RFC 1035 §3.3 requires. Text without quotes is one string. */
function canonicalTxt(value: string): string | Invalid {
  const octets = octetsOf(value)
  const text = octets.startsWith('"') ? txtStrings(octets) : [octets]
  if (isInvalid(text)) return text
  const strings = text.flatMap(splitString)
  if (strings.reduce((sum, part) => sum + part.length + 1, 0) > 65535) {
    return { invalid: 'a TXT record has at most 65535 octets' }
  }
  return strings.map(quote).join(' ')
}

/** One character per octet of the UTF-8 form. */
function octetsOf(text: string): string {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

function splitString(octets: string): string[] {
  if (octets.length <= CHARACTER_STRING_MAX) return [octets]
  const parts: string[] = []
  for (let at = 0; at < octets.length; at += CHARACTER_STRING_MAX)
    parts.push(octets.slice(at, at + CHARACTER_STRING_MAX))
  return parts
}

/** Octets that need no escape inside quotes. */
const PLAIN = /^[ !#-[\]-~]*$/

function quote(octets: string): string {
  if (PLAIN.test(octets)) return `"${octets}"`
  let out = '"'
  for (let at = 0; at < octets.length; at++) {
    const byte = octets.charCodeAt(at)
    if (byte === 0x22 || byte === 0x5c) out += `\\${octets[at]}`
    else if (byte < 0x20 || byte > 0x7e) out += `\\${String(byte).padStart(3, '0')}`
    else out += octets[at]
  }
  return `${out}"`
}

/** The character strings of a quoted TXT value, one latin1 character per octet. */
export function txtStrings(value: string): string[] | Invalid {
  const strings: string[] = []
  let at = 0
  while (at < value.length) {
    if (value[at] === ' ' || value[at] === '\t') {
      at++
      continue
    }
    if (value[at] !== '"') return { invalid: 'a TXT value is made of quoted strings' }
    let text = ''
    at++
    for (; at < value.length && value[at] !== '"'; at++) {
      if (value[at] !== '\\') {
        text += value[at]
        continue
      }
      const digits = value.slice(at + 1, at + 4)
      if (/^\d{3}$/.test(digits) && Number(digits) < 256) {
        text += String.fromCharCode(Number(digits))
        at += 3
      } else {
        at++
        text += value[at] ?? ''
      }
    }
    if (value[at] !== '"') return { invalid: 'a quoted string does not end' }
    at++
    strings.push(text)
  }
  return strings
}

/** The whole text of a TXT value, strings joined; undefined when it is not in quoted form. */
export function txtText(value: string): string | undefined {
  // Markers are plain ASCII in one string: the common case needs no scan per character.
  if (value.startsWith('"') && value.indexOf('"', 1) === value.length - 1 && !value.includes('\\')) {
    return value.slice(1, -1)
  }
  const strings = txtStrings(value)
  return isInvalid(strings) ? undefined : strings.join('')
}

export function txtValue(text: string): string {
  return splitString(octetsOf(text)).map(quote).join(' ')
}
