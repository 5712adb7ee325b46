/**
 * Route 53's form of names and values: octal escapes (`\052` is the asterisk) where zone files have decimal ones.
 * Everything else is presentation form.
 */
import { canonicalName, canonicalValue, isInvalid, sortedUnique, txtStrings } from '../../rrset/rrset.ts'

/** `\052.a.test.` → `*.a.test.` */
export function fromRoute53Name(text: string): string {
  const plain = text.replaceAll(/\\([0-7]{3})/g, (_all, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  )
  const name = canonicalName(plain)
  return isInvalid(name) ? plain.toLowerCase() : name
}

export function fromRoute53Values(type: string, values: readonly string[]): string[] {
  return sortedUnique(
    values.map((value) => {
      const plain = type === 'TXT' ? octalToDecimal(value) : value
      const canonical = canonicalValue(type, plain)
      return isInvalid(canonical) ? plain : canonical
    }),
  )
}

export function toRoute53Value(type: string, value: string): string {
  if (type !== 'TXT') return value
  const strings = txtStrings(value)
  return isInvalid(strings) ? value : strings.map(quoteOctal).join(' ')
}

function octalToDecimal(value: string): string {
  return value.replaceAll(
    /\\([0-7]{3})/g,
    (_all, digits: string) => `\\${String(Number.parseInt(digits, 8)).padStart(3, '0')}`,
  )
}

function quoteOctal(octets: string): string {
  let out = '"'
  for (let at = 0; at < octets.length; at++) {
    const code = octets.charCodeAt(at)
    if (code === 0x22 || code === 0x5c) out += `\\${octets[at]}`
    else if (code < 0x20 || code > 0x7e) out += `\\${code.toString(8).padStart(3, '0')}`
    else out += octets[at]
  }
  return `${out}"`
}

/** Route 53 sorts names by their labels from the right, with a final dot: `web-2` precedes `web`. */
export function route53Order(name: string): string {
  return `${name.replace(/\.$/, '').split('.').toReversed().join('.')}.`
}
