/** Service parameters of SVCB and HTTPS (RFC 9460 §2.1, §7): `alpn="h2,h3" port=443 ipv4hint=192.0.2.1 key65333="x"`. */
import { ipv4Octets, ipv4Text, ipv6Octets, ipv6Text } from '../address.ts'
import { DnsError } from '../../error.ts'
import { WireReader, WireWriter } from '../wire.ts'
import type { Field } from './field.ts'
import { quote, tokenize, unescape } from './token.ts'

const KEYS = [
  'mandatory',
  'alpn',
  'no-default-alpn',
  'port',
  'ipv4hint',
  'ech',
  'ipv6hint',
  'dohpath',
  'ohttp',
] as const

const bad = (why: string) => new DnsError('BAD_RDATA', why)
const malformed = (why: string) => new DnsError('MALFORMED', why)

function findKey(text: string): number | undefined {
  const known = (KEYS as readonly string[]).indexOf(text)
  if (known !== -1) return known
  const number = /^key(0|[1-9]\d{0,4})$/.exec(text)?.[1]
  return number !== undefined && Number(number) < 65_535 ? Number(number) : undefined
}

const keyName = (key: number): string => KEYS[key] ?? `key${key}`

/** Splits a comma list whose items may hold `\,` (RFC 9460 appendix A.1); the octets are already unescaped once. */
function splitList(octets: Uint8Array): Uint8Array[] {
  const items: Uint8Array[] = []
  let item: number[] = []
  for (let i = 0; i < octets.length; i++) {
    const octet = octets[i]!
    if (octet === 0x2c) {
      items.push(Uint8Array.from(item))
      item = []
    } else item.push(octet === 0x5c && i + 1 < octets.length ? octets[++i]! : octet)
  }
  items.push(Uint8Array.from(item))
  return items
}

const joinList = (items: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(
    items.flatMap((item, i) => [
      ...(i === 0 ? [] : [0x2c]),
      ...[...item].flatMap((octet) => (octet === 0x2c || octet === 0x5c ? [0x5c, octet] : [octet])),
    ]),
  )

function encodeValue(key: number, text: string | undefined): Uint8Array {
  const name = keyName(key)
  if (text === undefined || text === '') {
    if (name === 'no-default-alpn' || name === 'ohttp' || key >= KEYS.length) return new Uint8Array(0)
    throw bad(`service parameter ${name} needs a value`)
  }
  const octets = unescape(text)
  const out = new WireWriter(64)
  switch (name) {
    case 'mandatory': {
      const keys = text.split(',').map(findKey)
      const codes = keys.filter((code) => code !== undefined).sort((a, b) => a - b)
      if (codes.length !== keys.length || codes.includes(0) || new Set(codes).size !== codes.length) {
        throw bad(`'${text}' is no list of different service parameters`)
      }
      for (const code of codes) out.u16(code)
      break
    }
    case 'alpn':
      for (const item of splitList(octets)) {
        if (item.length === 0 || item.length > 255) throw bad(`'${text}' has an empty or too long protocol`)
        out.string(item)
      }
      break
    case 'port':
      if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw bad(`'${text}' is no port`)
      out.u16(Number(text))
      break
    case 'ipv4hint':
      for (const address of text.split(',')) out.put(ipv4Octets(address))
      break
    case 'ipv6hint':
      for (const address of text.split(',')) out.put(ipv6Octets(address))
      break
    case 'ech':
      if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw bad('service parameter ech is not base64')
      out.put(Buffer.from(text, 'base64'))
      break
    case 'no-default-alpn':
    case 'ohttp':
      throw bad(`service parameter ${name} takes no value`)
    default: // dohpath and unknown keys: the octets as they are
      out.put(octets)
  }
  return out.finish()
}

const chunks = (octets: Uint8Array, size: number): Uint8Array[] => {
  if (octets.length === 0 || octets.length % size !== 0) throw malformed('a service parameter has a wrong length')
  return Array.from({ length: octets.length / size }, (_, i) => octets.subarray(i * size, (i + 1) * size))
}

const codeOf = (pair: Uint8Array): number => pair[0]! * 256 + pair[1]!

function decodeValue(key: number, octets: Uint8Array): string {
  switch (keyName(key)) {
    case 'mandatory':
      return `=${chunks(octets, 2)
        .map((pair) => keyName(codeOf(pair)))
        .join(',')}`
    case 'alpn': {
      const from = new WireReader(octets)
      const items: Uint8Array[] = []
      while (from.left > 0) items.push(from.string())
      if (items.length === 0) throw malformed('alpn is empty')
      return `=${quote(joinList(items))}`
    }
    case 'port':
      return `=${codeOf(chunks(octets, 2)[0]!)}`
    case 'ipv4hint':
      return `=${chunks(octets, 4).map(ipv4Text).join(',')}`
    case 'ipv6hint':
      return `=${chunks(octets, 16).map(ipv6Text).join(',')}`
    case 'ech':
      return `=${Buffer.from(octets).toString('base64')}`
    default:
      return octets.length === 0 ? '' : `=${quote(octets)}`
  }
}

export const svcParams: Field = {
  what: 'service parameters',
  parse(tokens, out) {
    const params = new Map<number, Uint8Array>()
    while (!tokens.isEmpty) {
      const { text } = tokens.next('a service parameter')
      const [, name = text, value] = /^([^=]*)=(.*)$/s.exec(text) ?? []
      const key = findKey(name.toLowerCase())
      if (key === undefined) throw bad(`'${name}' is not a service parameter; write key123 for a number`)
      if (params.has(key)) throw bad(`service parameter ${name} is given twice`)
      params.set(key, encodeValue(key, value?.startsWith('"') === true ? tokenize(value)[0]!.text : value))
    }
    for (const [key, value] of [...params].sort(([a], [b]) => a - b)) {
      out.u16(key)
      out.u16(value.length)
      out.put(value)
    }
  },
  print(from) {
    const parts: string[] = []
    while (from.left > 0) {
      const key = from.u16()
      parts.push(`${keyName(key)}${decodeValue(key, from.take(from.u16()))}`)
    }
    return parts.join(' ')
  },
  skip(from) {
    let last = -1
    while (from.left > 0) {
      const key = from.u16()
      if (key <= last) throw malformed('service parameters are not in ascending order')
      last = key
      decodeValue(key, from.take(from.u16()))
    }
  },
}
