/**
 * The kinds of fields that record data is made of. A record type is a list of fields (grammar.ts); from one description
 * follow parsing, printing, checking, decompression and compression, so that they always agree.
 */
import { ipv4Octets, ipv4Text, ipv6Octets, ipv6Text } from '../address.ts'
import { findType, typeName } from '../codes.ts'
import { parseDuration } from '../ttl.ts'
import { DnsError } from '../../error.ts'
import { nameToText, nameToWire } from '../name.ts'
import type { WireReader, WireWriter } from '../wire.ts'
import { quote, type Token, type Tokens, unescape } from './token.ts'

export interface Field {
  readonly what: string
  /** 'compressed': a name that may be written with a pointer (RFC 3597 §4: only the types of RFC 1035). */
  readonly name?: 'plain' | 'compressed'
  /** Text to wire. */
  parse(tokens: Tokens, out: WireWriter, origin: Uint8Array | undefined): void
  /** Wire to text; `undefined` prints nothing (an empty tail). */
  print(from: WireReader): string
  /** Moves past the field, throwing when it is malformed. Name fields are moved by the caller. */
  skip(from: WireReader): void
}

const bad = (what: string, token: Token) => new DnsError('BAD_RDATA', `'${token.text}' is not ${what}`)

function integer(what: string, bits: 8 | 16 | 32): Field {
  const limit = 2 ** bits - 1
  const get = (from: WireReader) => (bits === 8 ? from.u8() : bits === 16 ? from.u16() : from.u32())
  return {
    what,
    parse(tokens, out) {
      const token = tokens.next(what)
      const value = /^\d{1,10}$/.test(token.text) ? Number(token.text) : Number.NaN
      if (!(value <= limit)) throw bad(`${what}, a number from 0 to ${limit}`, token)
      if (bits === 8) out.u8(value)
      else if (bits === 16) out.u16(value)
      else out.u32(value)
    },
    print: (from) => String(get(from)),
    skip: get,
  }
}

export const u8 = (what: string): Field => integer(what, 8)
export const u16 = (what: string): Field => integer(what, 16)
export const u32 = (what: string): Field => integer(what, 32)

/** 32-bit seconds that may be written as 1h30m. */
export const seconds = (what: string): Field => ({
  ...u32(what),
  parse(tokens, out) {
    const token = tokens.next(what)
    const value = parseDuration(token.text)
    if (value === undefined) throw bad(`${what}, a number of seconds or a form such as 1h30m`, token)
    out.u32(value)
  },
})

const nameField = (what: string, name: 'plain' | 'compressed'): Field => ({
  what,
  name,
  parse(tokens, out, origin) {
    const token = tokens.next(what)
    out.name(token.text === '@' && origin !== undefined ? origin : nameToWire(token.text, origin), 0, 'none')
  },
  print: (from) => nameToText(from.name()),
  skip: (from) => from.name(),
})

export const name = (what: string): Field => nameField(what, 'plain')
export const compressedName = (what: string): Field => nameField(what, 'compressed')

const octets = (
  what: string,
  size: number,
  parse: (text: string) => Uint8Array,
  print: (from: Uint8Array) => string,
): Field => ({
  what,
  parse: (tokens, out) => out.put(parse(tokens.next(what).text)),
  print: (from) => print(from.take(size)),
  skip: (from) => from.take(size),
})

export const ipv4 = octets('an IPv4 address', 4, ipv4Octets, ipv4Text)
export const ipv6 = octets('an IPv6 address', 16, ipv6Octets, ipv6Text)

function putString(what: string, token: Token, out: WireWriter): void {
  const value = unescape(token.text)
  if (value.length > 255)
    throw new DnsError('BAD_RDATA', `${what} has ${value.length} octets, over 255; split it in several strings`)
  out.string(value)
}

export const string = (what: string): Field => ({
  what,
  parse: (tokens, out) => putString(what, tokens.next(what), out),
  print: (from) => quote(from.string()),
  skip: (from) => from.string(),
})

/** One or more character-strings up to the end. */
export const strings = (what: string): Field => ({
  what,
  parse(tokens, out) {
    do putString(what, tokens.next(what), out)
    while (!tokens.isEmpty)
  },
  print(from) {
    const parts: string[] = []
    do parts.push(quote(from.string()))
    while (from.left > 0)
    return parts.join(' ')
  },
  skip(from) {
    do from.string()
    while (from.left > 0)
  },
})

/** A tag without quotes (RFC 8659 §4.1): a length octet, then letters and digits. */
export const tag = (what: string): Field => ({
  what,
  parse(tokens, out) {
    const token = tokens.next(what)
    if (!/^[A-Za-z0-9]{1,255}$/.test(token.text)) throw bad(`${what} of letters and digits`, token)
    out.string(Buffer.from(token.text, 'latin1'))
  },
  print(from) {
    const text = Buffer.from(from.string()).toString('latin1')
    if (!/^[A-Za-z0-9]+$/.test(text))
      throw new DnsError('MALFORMED', `${what} has a character that is no letter or digit`)
    return text
  },
  skip(from) {
    if (from.string().length === 0) throw new DnsError('MALFORMED', `${what} is empty`)
  },
})

/** A quoted value without a length octet, up to the end (CAA, URI). */
export const tail = (what: string): Field => ({
  what,
  parse: (tokens, out) => out.put(unescape(tokens.next(what).text)),
  print: (from) => quote(from.rest()),
  skip: (from) => from.rest(),
})

/** The rest, which has no text form when it is nothing. */
function some(what: string, from: WireReader): Uint8Array {
  if (from.left === 0) throw new DnsError('MALFORMED', `${what} is missing`)
  return from.rest()
}

export const hex = (what: string): Field => ({
  what,
  parse(tokens, out) {
    const text = tokens.rest()
    if (text === '' || text.length % 2 !== 0 || !/^[0-9A-Fa-f]*$/.test(text))
      throw bad(`${what} in hex`, { text, isQuoted: false })
    out.put(Buffer.from(text, 'hex'))
  },
  print: (from) => Buffer.from(some(what, from)).toString('hex').toUpperCase(),
  skip: (from) => some(what, from),
})

export const base64 = (what: string): Field => ({
  what,
  parse(tokens, out) {
    const text = tokens.rest()
    if (text === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw bad(`${what} in base64`, { text, isQuoted: false })
    out.put(Buffer.from(text, 'base64'))
  },
  print: (from) => Buffer.from(some(what, from)).toString('base64'),
  skip: (from) => some(what, from),
})

/** A covered record type (RRSIG). */
export const rrType = (what: string): Field => ({
  ...u16(what),
  parse(tokens, out) {
    const token = tokens.next(what)
    const code = findType(token.text)
    if (code === undefined) throw bad(`${what}, a record type`, token)
    out.u16(code)
  },
  print: (from) => typeName(from.u16()),
})

/** Signature times as YYYYMMDDHHmmSS (RFC 4034 §3.2). */
export const date = (what: string): Field => ({
  ...u32(what),
  parse(tokens, out) {
    const token = tokens.next(what)
    const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(token.text)
    if (parts === null) throw bad(`${what}, a time such as 20260131235959`, token)
    const [year, month, day, hour, minute, second] = parts.slice(1).map(Number) as [
      number,
      number,
      number,
      number,
      number,
      number,
    ]
    out.u32((Date.UTC(year, month - 1, day, hour, minute, second) / 1000) >>> 0)
  },
  print: (from) => new Date(from.u32() * 1000).toISOString().replaceAll(/\D/g, '').slice(0, 14),
})

/** The type bitmap of NSEC (RFC 4034 §4.1.2). */
export const typeBitmap = (what: string): Field => ({
  what,
  parse(tokens, out) {
    const windows = new Map<number, Uint8Array>()
    const codes: number[] = []
    while (!tokens.isEmpty) {
      const token = tokens.next(what)
      const code = findType(token.text)
      if (code === undefined) throw bad('a record type', token)
      codes.push(code)
    }
    for (const code of codes.sort((a, b) => a - b)) {
      const bits = windows.get(code >> 8) ?? new Uint8Array(32)
      bits[(code & 0xff) >> 3]! |= 0x80 >> (code & 7)
      windows.set(code >> 8, bits)
    }
    for (const [window, bits] of windows) {
      out.u8(window)
      out.string(bits.subarray(0, bits.findLastIndex((octet) => octet !== 0) + 1))
    }
  },
  print(from) {
    const names: string[] = []
    while (from.left > 0) {
      const window = from.u8()
      for (const [i, octet] of from.string().entries()) {
        for (let bit = 0; bit < 8; bit++)
          if ((octet & (0x80 >> bit)) !== 0) names.push(typeName(window * 256 + i * 8 + bit))
      }
    }
    return names.join(' ')
  },
  skip(from) {
    while (from.left > 0) {
      from.u8()
      from.string()
    }
  },
})
