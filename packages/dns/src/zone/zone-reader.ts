/**
 * Splits a zone file into entries: the tokens of one record or directive, over several lines inside parentheses
 * (RFC 1035 §5.1). Works on the octets; only tokens become strings.
 */
import { DnsError } from '../error.ts'
import type { Token } from '../wire/rdata/token.ts'

const TAB = 0x09
const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const OPEN = 0x28
const CLOSE = 0x29
const SEMICOLON = 0x3b
const EQUALS = 0x3d
const BACKSLASH = 0x5c

/** 1 for octets that end an unquoted token. */
const ENDS = new Uint8Array(256)
for (const octet of [TAB, NEWLINE, RETURN, SPACE, QUOTE, OPEN, CLOSE, SEMICOLON]) ENDS[octet] = 1

const utf8 = new TextDecoder('utf-8', { fatal: true })

export class ZoneReader {
  readonly #text: Buffer
  readonly #start: number
  #at: number
  #newlines = 0
  /** Line of the entry's first token, from 1. */
  line = 1
  tokens: Token[] = []
  /** The entry's line did not begin with a blank: its first token is the owner, or a directive. */
  hasOwner = false

  constructor(text: Buffer) {
    this.#text = text
    const hasMark = text[0] === 0xef && text[1] === 0xbb && text[2] === 0xbf // a byte order mark
    this.#at = this.#start = hasMark ? 3 : 0
  }

  /** Reads the next entry; false at the end. Throws DnsError; `line` is then where. */
  next(): boolean {
    const text = this.#text
    this.tokens = []
    let depth = 0
    while (this.#at < text.length) {
      const octet = text[this.#at]!
      switch (octet) {
        case NEWLINE:
          this.#newlines++
          this.#at++
          if (depth === 0 && this.tokens.length > 0) return true
          break
        case SPACE:
        case TAB:
        case RETURN:
          this.#at++
          break
        case SEMICOLON: {
          const end = text.indexOf(NEWLINE, this.#at)
          this.#at = end === -1 ? text.length : end
          break
        }
        case OPEN:
          depth++
          this.#at++
          break
        case CLOSE:
          if (depth-- === 0) throw this.#fail('a parenthesis is closed that was not opened')
          this.#at++
          break
        default:
          this.#token(octet)
      }
    }
    if (depth > 0) throw this.#fail('a parenthesis is not closed')
    return this.tokens.length > 0
  }

  #fail(reason: string): DnsError {
    if (this.tokens.length === 0) this.line = this.#newlines + 1
    return new DnsError('BAD_ZONE', reason)
  }

  #token(octet: number): void {
    const text = this.#text
    if (this.tokens.length === 0) {
      this.line = this.#newlines + 1
      this.hasOwner = this.#at === this.#start || text[this.#at - 1] === NEWLINE
    }
    if (octet === QUOTE) {
      const end = this.#endOfQuoted(this.#at + 1)
      this.tokens.push({ text: this.#slice(this.#at + 1, end), isQuoted: true })
      this.#at = end + 1
      return
    }
    const start = this.#at
    let at = start
    for (; at < text.length; at++) {
      const here = text[at]!
      if (here === BACKSLASH) at++
      else if (ENDS[here] === 1) {
        if (here !== QUOTE || text[at - 1] !== EQUALS) break
        at = this.#endOfQuoted(at + 1)
      }
    }
    this.#at = Math.min(at, text.length)
    this.tokens.push({ text: this.#slice(start, this.#at), isQuoted: false })
  }

  #endOfQuoted(at: number): number {
    const text = this.#text
    for (; at < text.length && text[at] !== NEWLINE; at++) {
      if (text[at] === BACKSLASH) at++
      else if (text[at] === QUOTE) return at
    }
    throw this.#fail('a quoted string has no end on its line')
  }

  #slice(from: number, to: number): string {
    const text = this.#text
    for (let at = from; at < to; at++) {
      if (text[at]! < 0x80) continue
      try {
        return utf8.decode(text.subarray(from, to))
      } catch {
        throw this.#fail('the text is not UTF-8; write odd octets as \\DDD')
      }
    }
    return text.toString('latin1', from, to)
  }
}
