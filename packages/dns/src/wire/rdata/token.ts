/**
 * Tokens of record data in presentation form (RFC 1035 §5.1), with escapes still in them: it depends on the field whether
 * `\046` is an octet of a label or of a character-string.
 */
import { DnsError } from '../../error.ts'

export interface Token {
  readonly text: string
  /** Was in quotes; the text is without them. */
  readonly isQuoted: boolean
}

const SPACE = /[\t\n\r ]/

/** Splits one value such as `10 mail.example.test.` or `"a b" c`. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    if (SPACE.test(text[at]!)) {
      at++
      continue
    }
    if (text[at] === '"') {
      const end = endOfQuoted(text, at + 1)
      tokens.push({ text: text.slice(at + 1, end), isQuoted: true })
      at = end + 1
      continue
    }
    const start = at
    while (at < text.length && !SPACE.test(text[at]!)) {
      if (text[at] === '\\') at += 2
      else if (text[at] === '"') {
        if (text[at - 1] !== '=') break
        at = endOfQuoted(text, at + 1) + 1 // alpn="h2 h3": one token with its quotes (RFC 9460 §2.1)
      } else at++
    }
    tokens.push({ text: text.slice(start, at), isQuoted: false })
  }
  return tokens
}

function endOfQuoted(text: string, at: number): number {
  for (; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at
  }
  throw new DnsError('BAD_RDATA', 'a quoted string has no end')
}

/** The octets of a character-string token; characters beyond ASCII count as their UTF-8 octets. */
export function unescape(text: string): Uint8Array {
  if (!text.includes('\\')) return Buffer.from(text, 'utf8')
  const source = Buffer.from(text, 'utf8')
  const out = new Uint8Array(source.length)
  let length = 0
  for (let i = 0; i < source.length; i++) {
    let octet = source[i]!
    if (octet === 0x5c) {
      const digits = source.toString('latin1', i + 1, i + 4)
      if (/^\d{3}$/.test(digits)) {
        octet = Number(digits)
        if (octet > 255) throw new DnsError('BAD_RDATA', `escape \\${digits} is over \\255`)
        i += 3
      } else {
        if (i + 1 >= source.length) throw new DnsError('BAD_RDATA', 'a string ends in a backslash')
        octet = source[++i]!
      }
    }
    out[length++] = octet
  }
  return out.subarray(0, length)
}

/** Octets as a quoted string, as BIND prints it. */
export function quote(octets: Uint8Array): string {
  let text = '"'
  for (const octet of octets) {
    if (octet === 0x22 || octet === 0x5c) text += `\\${String.fromCharCode(octet)}`
    else text += octet >= 0x20 && octet < 0x7f ? String.fromCharCode(octet) : `\\${String(octet).padStart(3, '0')}`
  }
  return `${text}"`
}

/** Takes tokens one by one; a missing or left-over token is an error of the value. */
export class Tokens {
  readonly #tokens: readonly Token[]
  #at: number

  constructor(tokens: readonly Token[], at = 0) {
    this.#tokens = tokens
    this.#at = at
  }

  get isEmpty(): boolean {
    return this.#at >= this.#tokens.length
  }

  peek(): Token | undefined {
    return this.#tokens[this.#at]
  }

  next(what: string): Token {
    const token = this.#tokens[this.#at++]
    if (token === undefined) throw new DnsError('BAD_RDATA', `${what} is missing`)
    return token
  }

  rest(): string {
    const text = this.#tokens
      .slice(this.#at)
      .map((token) => token.text)
      .join('')
    this.#at = this.#tokens.length
    return text
  }
}
