/**
 * String formats of CustomResourceDefinitions, validated as kube-apiserver does. A format that is not listed here is
 * ignored, as in kube-apiserver.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net'

type FormatCheck = (text: string) => boolean

const HOST_LABEL = '[a-zA-Z0-9\\p{S}\\p{L}]'
const HOSTNAME = new RegExp(
  `^(${HOST_LABEL}((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|(${HOST_LABEL}(([a-zA-Z0-9\\-\\p{S}\\p{L}]{0,61}${HOST_LABEL})?)(\\.))+([a-zA-Z\\p{L}]){2,63})$`,
  'u',
)

function matches(pattern: RegExp): FormatCheck {
  return (text) => pattern.test(text)
}

function isDateTime(text: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,]\d+)?(?:[Zz]|[+-](\d\d):(\d\d))$/.exec(text)
  if (match === null) return false
  const [, year, month, day, hour, minute, second] = match.map(Number)
  return isDay(year!, month!, day!) && hour! < 24 && minute! < 60 && second! < 60
}

function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text)
  return match !== null && isDay(Number(match[1]), Number(match[2]), Number(match[3]))
}

function isDay(year: number, month: number, day: number): boolean {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  return month >= 1 && month <= 12 && day >= 1 && date.getUTCMonth() === month - 1
}

/** Go durations (`1h30m`), and numbers with a spelled-out unit (`22 ns`, `3 days`). */
function isDuration(text: string): boolean {
  // The alternatives are unambiguous, so that a long text that does not match takes linear time.
  if (/^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/.test(text)) return true
  return /^((\d+)\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?))+$/i.test(
    text.trim(),
  )
}

function isUri(text: string): boolean {
  if (text === '' || /[\s\p{Cc}]/u.test(text)) return false
  if (text.startsWith('/')) return !/%(?![0-9a-fA-F]{2})/.test(text)
  if (!/^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text)) return false
  const rest = text.slice(text.indexOf(':') + 1)
  return rest !== '' && !/%(?![0-9a-fA-F]{2})/.test(text)
}

function isCidr(text: string): boolean {
  const match = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text)
  if (match === null || (match[2]!.length > 1 && match[2]!.startsWith('0'))) return false
  const version = isIP(match[1]!)
  return version !== 0 && Number(match[2]) <= (version === 4 ? 32 : 128)
}

function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]/g, '')
  if (!/^\d{9}[\dX]$/.test(digits)) return false
  let sum = 0
  for (let i = 0; i < 10; i++) sum += (digits[i] === 'X' ? 10 : Number(digits[i])) * (10 - i)
  return sum % 11 === 0
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]/g, '')
  if (!/^\d{13}$/.test(digits)) return false
  let sum = 0
  for (let i = 0; i < 13; i++) sum += Number(digits[i]) * (i % 2 === 0 ? 1 : 3)
  return sum % 10 === 0
}

function isCreditCard(text: string): boolean {
  const digits = text.replace(/\D/g, '')
  const known =
    /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/
  if (!known.test(digits)) return false
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]) * (i % 2 === 1 ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return sum % 10 === 0
}

const FORMATS: ReadonlyMap<string, FormatCheck> = new Map<string, FormatCheck>([
  ['bsonobjectid', matches(/^[0-9a-fA-F]{24}$/)],
  ['uri', isUri],
  ['email', matches(/^(?:[^<>()@,;:\\".[\]\s]+(?:\.[^<>()@,;:\\".[\]\s]+)*)@[^<>()@,;:\\"[\]\s]+$/)],
  ['hostname', (text) => text.length <= 255 && HOSTNAME.test(text)],
  ['ipv4', (text) => isIPv4(text)],
  ['ipv6', (text) => isIPv6(text) && !text.includes('%')],
  ['cidr', isCidr],
  [
    'mac',
    matches(/^(?:[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4})$/),
  ],
  ['uuid', matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ['uuid3', matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ['uuid4', matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ['uuid5', matches(/^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ['isbn', (text) => isIsbn10(text) || isIsbn13(text)],
  ['isbn10', isIsbn10],
  ['isbn13', isIsbn13],
  ['creditcard', isCreditCard],
  ['ssn', matches(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/)],
  ['hexcolor', matches(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  [
    'rgbcolor',
    matches(/^rgb\(\s*(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*(?:,\s*(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\s*){2}\)$/),
  ],
  ['byte', isBase64],
  ['password', () => true],
  ['date', isDate],
  ['duration', isDuration],
  ['datetime', isDateTime],
  ['k8sshortname', (text) => text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text)],
  [
    'k8slongname',
    (text) => text.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text),
  ],
])

/** The check of a format, ignoring dashes in its name; undefined when the format is unknown. */
export function findFormat(name: string): FormatCheck | undefined {
  return FORMATS.get(name.replaceAll('-', ''))
}
