/**
 * DNS messages (RFC 1035 §4.1, RFC 6891, RFC 2136 §2): octets ↔ `Message`. Used by the client, UPDATE, transfers and every
 * query that the server's fast path does not answer.
 *
 * `decodeMessage` never throws: hostile packets give a DnsError value. It decodes at most what the packet can hold, since
 * every counted record takes at least 11 octets of it. In UPDATE messages question is the zone section, answer the
 * prerequisites, authority the updates. OPT and TSIG are taken out of the additional section.
 */
import { CLASS, OPCODE, TYPE } from './codes.ts'
import { type Edns, readOptions, writeOpt } from './edns.ts'
import { DnsError } from '../error.ts'
import { nameToText, nameToWire } from './name.ts'
import { readRdata, writeRdata } from './rdata/grammar.ts'
import type { Resource } from './record.ts'
import { WireReader, WireWriter } from './wire.ts'

export const FLAG = { QR: 0x8000, AA: 0x0400, TC: 0x0200, RD: 0x0100, RA: 0x0080, AD: 0x0020, CD: 0x0010 } as const

export const MAX_MESSAGE = 65_535

export interface Question {
  /** Absolute presentation text, case as on the wire. */
  readonly name: string
  readonly type: number
  readonly class: number
}

/** Offset of the TSIG record; tsig.ts verifies it on the raw octets. */
interface TsigPosition {
  readonly start: number
}

export interface Message {
  readonly id: number
  /** The second header word without opcode and rcode: a sum of FLAG values (and the unassigned bit 0x40). */
  readonly flags: number
  readonly opcode: number
  /** With the upper bits of EDNS. */
  readonly rcode: number
  readonly questions: readonly Question[]
  readonly answers: readonly Resource[]
  readonly authorities: readonly Resource[]
  /** Without OPT and TSIG. */
  readonly additionals: readonly Resource[]
  readonly edns?: Edns
  readonly tsig?: TsigPosition
}

const FLAG_MASK = 0x87f0

interface Section {
  readonly records: Resource[]
  edns?: Edns
  extendedRcode: number
  tsig?: TsigPosition
}

function isDeletion(opcode: number, rrClass: number): boolean {
  // RFC 2136 §2.4, §2.5: "exists", "does not exist" and deletions carry no data, whatever the type.
  return opcode === OPCODE.UPDATE && (rrClass === CLASS.ANY || rrClass === CLASS.NONE)
}

function readSection(from: WireReader, count: number, opcode: number, isAdditional: boolean): Section {
  const section: Section = { records: [], extendedRcode: 0 }
  for (let i = 0; i < count; i++) {
    const start = from.at
    const owner = from.name()
    const type = from.u16()
    const rrClass = from.u16()
    if (type === TYPE.OPT) {
      if (!isAdditional) throw new DnsError('MALFORMED', 'OPT outside the additional section')
      if (section.edns !== undefined) throw new DnsError('MALFORMED', 'two OPT records')
      if (owner.length !== 1) throw new DnsError('MALFORMED', 'OPT with a name')
      section.extendedRcode = from.u8()
      const version = from.u8()
      const isDo = (from.u16() & 0x8000) !== 0
      const options = from.take(from.u16())
      section.edns = { size: rrClass, version, isDo, options: readOptions(options) }
      continue
    }
    const ttl = from.u32()
    const length = from.u16()
    if (type === TYPE.TSIG) {
      if (!isAdditional || i !== count - 1) throw new DnsError('MALFORMED', 'TSIG is not the last record')
      section.tsig = { start }
      from.take(length)
      continue
    }
    const isEmpty = length === 0 && isDeletion(opcode, rrClass)
    const data = isEmpty ? new Uint8Array(0) : readRdata(type, from, length)
    // RFC 2181 §8: a TTL with the top bit set counts as 0.
    section.records.push({ name: nameToText(owner), type, class: rrClass, ttl: ttl > 0x7fff_ffff ? 0 : ttl, data })
  }
  return section
}

function decode(bytes: Uint8Array): Message {
  const from = new WireReader(bytes)
  const id = from.u16()
  const word = from.u16()
  const opcode = (word >> 11) & 15
  const counts = [from.u16(), from.u16(), from.u16(), from.u16()] as const
  const questions: Question[] = []
  for (let i = 0; i < counts[0]; i++) questions.push({ name: from.nameText(), type: from.u16(), class: from.u16() })
  const answers = readSection(from, counts[1], opcode, false).records
  const authorities = readSection(from, counts[2], opcode, false).records
  const last = readSection(from, counts[3], opcode, true)
  if (from.left > 0) throw new DnsError('MALFORMED', `${from.left} octets after the message`)
  return {
    id,
    flags: word & FLAG_MASK,
    opcode,
    rcode: (word & 15) | (last.extendedRcode << 4),
    questions,
    answers,
    authorities,
    additionals: last.records,
    ...(last.edns !== undefined && { edns: last.edns }),
    ...(last.tsig !== undefined && { tsig: last.tsig }),
  }
}

export function decodeMessage(bytes: Uint8Array): Message | DnsError {
  try {
    return decode(bytes)
  } catch (error) {
    if (error instanceof DnsError) return error
    throw error
  }
}

function writeResource(record: Resource, out: WireWriter): void {
  out.name(nameToWire(record.name))
  out.u16(record.type)
  out.u16(record.class)
  out.u32(record.ttl)
  const at = out.at
  out.u16(0)
  writeRdata(record.type, record.data, out)
  out.closeLength(at)
}

const shared = new WireWriter(4096)

/** Encodes with compression. Throws TOO_LARGE above 65 535 octets; bound the number of records before. */
export function encodeMessage(message: Message): Buffer {
  const out = shared
  out.reset()
  out.u16(message.id)
  out.u16((message.flags & FLAG_MASK) | (message.opcode << 11) | (message.rcode & 15))
  out.u16(message.questions.length)
  out.u16(message.answers.length)
  out.u16(message.authorities.length)
  out.u16(message.additionals.length + (message.edns === undefined ? 0 : 1))
  for (const question of message.questions) {
    out.name(nameToWire(question.name))
    out.u16(question.type)
    out.u16(question.class)
  }
  for (const section of [message.answers, message.authorities, message.additionals]) {
    for (const record of section) {
      if (isDeletion(message.opcode, record.class) && record.data.length === 0) writeBare(record, out)
      else writeResource(record, out)
    }
  }
  if (message.edns !== undefined) writeOpt(message.edns, message.rcode, out)
  if (out.at > MAX_MESSAGE)
    throw new DnsError('TOO_LARGE', `the message has ${out.at} octets, over ${MAX_MESSAGE}; send fewer records`)
  return out.finish()
}

function writeBare(record: Resource, out: WireWriter): void {
  out.name(nameToWire(record.name))
  out.u16(record.type)
  out.u16(record.class)
  out.u32(record.ttl)
  out.u16(0)
}
