/**
 * Record data of every supported type, as a list of fields. Data of other types stays opaque and prints as `\# LENGTH HEX`
 * (RFC 3597 §5). Inside the package record data is wire octets without compression; this file converts from and to text.
 */
import { TYPE, typeName } from '../codes.ts'
import { DnsError } from '../../error.ts'
import { lowerWire } from '../name.ts'
import { WireReader, WireWriter } from '../wire.ts'
import {
  base64,
  compressedName,
  date,
  type Field,
  hex,
  ipv4,
  ipv6,
  name,
  rrType,
  seconds,
  string,
  strings,
  tag,
  tail,
  typeBitmap,
  u16,
  u32,
  u8,
} from './field.ts'
import { svcParams } from './svc-params.ts'
import { type Token, Tokens, tokenize } from './token.ts'

const svcb = [u16('the priority'), name('the target'), svcParams]
const association = [u8('the usage'), u8('the selector'), u8('the matching type'), hex('the association data')]
const dnskey = [u16('the flags'), u8('the protocol'), u8('the algorithm'), base64('the key')]
const ds = [u16('the key tag'), u8('the algorithm'), u8('the digest type'), hex('the digest')]

const GRAMMAR: ReadonlyMap<number, readonly Field[]> = new Map<number, readonly Field[]>([
  [TYPE.A, [ipv4]],
  [TYPE.AAAA, [ipv6]],
  [TYPE.NS, [compressedName('the name server')]],
  [TYPE.CNAME, [compressedName('the target')]],
  [TYPE.PTR, [compressedName('the target')]],
  [TYPE.DNAME, [name('the target')]],
  [
    TYPE.SOA,
    [
      compressedName('the primary server'),
      compressedName('the mailbox'),
      u32('the serial'),
      seconds('the refresh time'),
      seconds('the retry time'),
      seconds('the expire time'),
      seconds('the negative TTL'),
    ],
  ],
  [TYPE.MX, [u16('the preference'), compressedName('the exchange')]],
  [TYPE.TXT, [strings('a string')]],
  [TYPE.SPF, [strings('a string')]],
  [TYPE.HINFO, [string('the CPU'), string('the system')]],
  [TYPE.RP, [name('the mailbox'), name('the text name')]],
  [TYPE.AFSDB, [u16('the subtype'), name('the host')]],
  [TYPE.SRV, [u16('the priority'), u16('the weight'), u16('the port'), name('the target')]],
  [
    TYPE.NAPTR,
    [
      u16('the order'),
      u16('the preference'),
      string('the flags'),
      string('the services'),
      string('the pattern'),
      name('the replacement'),
    ],
  ],
  [TYPE.CAA, [u8('the flags'), tag('the tag'), tail('the value')]],
  [TYPE.URI, [u16('the priority'), u16('the weight'), tail('the target')]],
  [TYPE.TLSA, association],
  [TYPE.SMIMEA, association],
  [TYPE.SSHFP, [u8('the algorithm'), u8('the fingerprint type'), hex('the fingerprint')]],
  [TYPE.DS, ds],
  [TYPE.CDS, ds],
  [TYPE.DNSKEY, dnskey],
  [TYPE.CDNSKEY, dnskey],
  [TYPE.OPENPGPKEY, [base64('the key')]],
  [
    TYPE.RRSIG,
    [
      rrType('the covered type'),
      u8('the algorithm'),
      u8('the labels'),
      u32('the original TTL'),
      date('the expiration'),
      date('the inception'),
      u16('the key tag'),
      name('the signer'),
      base64('the signature'),
    ],
  ],
  [TYPE.NSEC, [name('the next name'), typeBitmap('the types')]],
  [TYPE.SVCB, svcb],
  [TYPE.HTTPS, svcb],
])

/** True for types whose data holds a name that answers compress: these are encoded per answer, others once per zone. */
const COMPRESSED: ReadonlySet<number> = new Set(
  [...GRAMMAR].filter(([, fields]) => fields.some((field) => field.name === 'compressed')).map(([type]) => type),
)
export const hasCompressedName = (type: number): boolean => COMPRESSED.has(type)

const NAMED: ReadonlySet<number> = new Set(
  [...GRAMMAR].filter(([, fields]) => fields.some((field) => field.name !== undefined)).map(([type]) => type),
)

const writer = new WireWriter(1024)

function parseGeneric(tokens: Tokens): Buffer {
  const length = tokens.next('the length after \\#').text
  const text = tokens.rest()
  if (
    !/^\d{1,5}$/.test(length) ||
    !/^([0-9A-Fa-f]{2})*$/.test(text) ||
    text.length !== Number(length) * 2 ||
    Number(length) > 65_535
  ) {
    throw new DnsError('BAD_RDATA', `'\\# ${length} …' needs a length and that many octets in hex`)
  }
  return Buffer.from(text, 'hex')
}

/** Tokens of a value to wire data; relative names are completed by `origin`. Throws DnsError. */
export function parseRdata(type: number, source: readonly Token[], at = 0, origin?: Uint8Array): Buffer {
  const tokens = new Tokens(source, at)
  const fields = GRAMMAR.get(type)
  const first = tokens.peek()
  if (first !== undefined && !first.isQuoted && first.text === '\\#') {
    tokens.next('\\#')
    const data = parseGeneric(tokens)
    return fields === undefined ? data : checked(type, data)
  }
  if (fields === undefined) {
    throw new DnsError('BAD_RDATA', `data of type ${typeName(type)} must be written as \\# LENGTH HEX (RFC 3597)`)
  }
  writer.reset()
  for (const field of fields) field.parse(tokens, writer, origin)
  if (!tokens.isEmpty) throw new DnsError('BAD_RDATA', `'${tokens.next('').text}' is too much for ${typeName(type)}`)
  return writer.finish()
}

function checked(type: number, data: Buffer): Buffer {
  try {
    const plain = readRdata(type, new WireReader(data), data.length)
    if (plain.equals(data)) return plain
  } catch (error) {
    throw new DnsError('BAD_RDATA', `the octets are no ${typeName(type)} data`, { cause: error })
  }
  throw new DnsError('BAD_RDATA', 'record data must not hold compression pointers')
}

export const rdataFromText = (type: number, text: string): Buffer => parseRdata(type, tokenize(text))

/** Wire data to text; data that does not fit its type prints in the generic form. */
export function rdataToText(type: number, data: Uint8Array): string {
  const fields = GRAMMAR.get(type)
  if (fields !== undefined) {
    try {
      const from = new WireReader(data)
      const parts = fields.map((field) => field.print(from)).filter((part) => part !== '')
      if (from.left === 0) return parts.join(' ')
    } catch (error) {
      if (!(error instanceof DnsError)) throw error
    }
  }
  return `\\# ${data.length}${data.length === 0 ? '' : ` ${Buffer.from(data).toString('hex').toUpperCase()}`}`
}

/** Takes `length` octets of record data out of a packet: checked, and with its names decompressed. Throws MALFORMED. */
export function readRdata(type: number, from: WireReader, length: number): Buffer {
  const fields = GRAMMAR.get(type)
  const outerEnd = from.end
  const end = from.at + length
  if (end > outerEnd) throw new DnsError('MALFORMED', `record data of ${length} octets runs past the end of the packet`)
  if (fields === undefined) return Buffer.from(from.take(length))
  from.end = end
  writer.reset()
  try {
    for (const field of fields) {
      if (field.name !== undefined) {
        writer.name(from.name(), 0, 'none')
        continue
      }
      const start = from.at
      field.skip(from)
      writer.put(from.bytes, start, from.at)
    }
    if (from.left > 0) throw new DnsError('MALFORMED', `${from.left} octets too many in ${typeName(type)} data`)
  } finally {
    from.end = outerEnd
  }
  return writer.finish()
}

/** Writes wire data with its names compressed where RFC 3597 §4 allows it. */
export function writeRdata(type: number, data: Uint8Array, out: WireWriter, from = 0, to = data.length): void {
  if (!NAMED.has(type)) {
    out.put(data, from, to)
    return
  }
  const reader = new WireReader(data, from, to)
  for (const field of GRAMMAR.get(type)!) {
    const start = reader.at
    field.skip(reader)
    // A name that stays whole can still be pointed to by later ones.
    if (field.name !== undefined) out.name(data, start, field.name === 'compressed' ? 'exact' : 'none')
    else out.put(data, start, reader.at)
  }
}

/** The same data with its names in lower case (RFC 4034 §6.2): equal data has equal canonical octets. */
export function canonicalRdata(type: number, data: Uint8Array): Uint8Array {
  if (!NAMED.has(type)) return data
  const reader = new WireReader(data)
  writer.reset()
  for (const field of GRAMMAR.get(type)!) {
    if (field.name !== undefined) {
      writer.name(lowerWire(reader.name()), 0, 'none')
      continue
    }
    const start = reader.at
    field.skip(reader)
    writer.put(data, start, reader.at)
  }
  return writer.finish()
}

/** The first name inside the data (target of CNAME, NS, MX, SRV …) as a view, or undefined. */
export function findTarget(type: number, data: Uint8Array): Uint8Array | undefined {
  const reader = new WireReader(data)
  for (const field of GRAMMAR.get(type) ?? []) {
    const start = reader.at
    field.skip(reader)
    if (field.name !== undefined) return data.subarray(start, reader.at)
  }
  return undefined
}
