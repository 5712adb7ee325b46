import dnsPacket from 'dns-packet'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CLASS, TYPE } from './codes.ts'
import { encodeSubnet, decodeSubnet } from './edns.ts'
import { DnsError } from '../error.ts'
import { decodeMessage, encodeMessage, type Message } from './message.ts'
import { rdataFromText, rdataToText } from './rdata/grammar.ts'
import type { Resource } from './record.ts'

const label = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/)
const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => `${labels.join('.')}.`)
const record = fc
  .tuple(
    name,
    fc.integer({ min: 0, max: 0x7fffffff }),
    fc.oneof(
      fc.ipV4().map((value) => [TYPE.A, value] as const),
      name.map((value) => [TYPE.CNAME, value] as const),
      fc.tuple(fc.nat(65_535), name).map(([n, target]) => [TYPE.MX, `${n} ${target}`] as const),
      fc
        .tuple(fc.nat(65_535), fc.nat(65_535), name)
        .map(([n, port, target]) => [TYPE.SRV, `${n} 1 ${port} ${target}`] as const),
      fc.stringMatching(/^[ -!#-[\]-~]{0,60}$/).map((text) => [TYPE.TXT, `"${text}"`] as const),
      fc.tuple(name, name).map(([primary, mailbox]) => [TYPE.SOA, `${primary} ${mailbox} 1 2 3 4 5`] as const),
      fc
        .uint8Array({ maxLength: 30 })
        .map((octets) => [65_300, `\\# ${octets.length} ${Buffer.from(octets).toString('hex')}`] as const),
    ),
  )
  .map(([owner, ttl, [type, value]]) => ({ name: owner, type, class: CLASS.IN, ttl, data: rdataFromText(type, value) }))

const message: fc.Arbitrary<Message> = fc.record({
  id: fc.nat(65_535),
  flags: fc.nat(65_535).map((flags) => flags & 0x87f0),
  opcode: fc.constantFrom(0, 4),
  rcode: fc.nat(15),
  questions: fc.array(fc.record({ name, type: fc.nat(300), class: fc.constant<number>(CLASS.IN) }), { maxLength: 2 }),
  answers: fc.array(record, { maxLength: 6 }),
  authorities: fc.array(record, { maxLength: 3 }),
  additionals: fc.array(record, { maxLength: 3 }),
  edns: fc.record({
    size: fc.nat(65_535),
    version: fc.constant(0),
    isDo: fc.boolean(),
    options: fc.array(fc.record({ code: fc.nat(65_535), data: fc.uint8Array({ maxLength: 20 }) }), { maxLength: 3 }),
  }),
})

const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, each: unknown) =>
      each instanceof Uint8Array ? Buffer.from(each).toString('hex') : each,
    ),
    (_, each: unknown) =>
      typeof each === 'object' && each !== null && 'type' in each && each.type === 'Buffer' && 'data' in each
        ? Buffer.from(each.data as number[]).toString('hex')
        : each,
  )

/** Compression may turn a suffix into one written before in another case; nothing else may differ. */
const folded = (value: unknown): string => JSON.stringify(plain(value)).toLowerCase()

/** dns-packet's data as presentation text, for the types whose text is plain; the others are compared by name only. */
function theirText(answer: dnsPacket.Answer): string {
  if (answer.type === 'A') return answer.data
  if (answer.type === 'CNAME') return `${answer.data}.`
  return answer.type === 'MX' ? `${answer.data.preference} ${answer.data.exchange}.` : ''
}

const PLAIN: ReadonlySet<number> = new Set([TYPE.A, TYPE.CNAME, TYPE.MX])
const ourText = (each: Resource): string => (PLAIN.has(each.type) ? rdataToText(each.type, each.data) : '')

describe('messages', () => {
  it('decode to what was encoded', () => {
    fc.assert(
      fc.property(message, (original) => {
        const decoded = decodeMessage(encodeMessage(original))
        expect(decoded).not.toBeInstanceOf(DnsError)
        expect(folded({ ...(decoded as Message) })).toBe(folded(original))
      }),
    )
  })

  it('are read by dns-packet as we wrote them', () => {
    fc.assert(
      fc.property(message, (original) => {
        // dns-packet throws on options it knows with data it does not expect.
        const theirs = dnsPacket.decode(
          encodeMessage({ ...original, opcode: 0, edns: { ...original.edns!, options: [] } }),
        )
        expect(theirs.id).toBe(original.id)
        expect(theirs.questions?.map((question) => `${question.name}.`.toLowerCase())).toEqual(
          original.questions.map((question) => question.name.toLowerCase()),
        )
        const texts = (theirs.answers ?? []).map((answer) => `${answer.name}. ${theirText(answer)}`.toLowerCase())
        const expected = original.answers.map((each) => `${each.name} ${ourText(each)}`.toLowerCase())
        expect(texts).toEqual(expected)
      }),
    )
  })

  it('that dns-packet writes are read by us', () => {
    fc.assert(
      fc.property(name, fc.ipV4(), name, (owner, address, target) => {
        const bytes = dnsPacket.encode({
          type: 'response',
          id: 7,
          questions: [{ type: 'A', name: owner.slice(0, -1) }],
          answers: [
            { type: 'A', name: owner.slice(0, -1), ttl: 5, data: address },
            { type: 'CNAME', name: owner.slice(0, -1), ttl: 5, data: target.slice(0, -1) },
          ],
        })
        const ours = decodeMessage(bytes) as Message
        expect(ours.answers.map((each) => rdataToText(each.type, each.data))).toEqual([address, target])
      }),
    )
  })

  it('compress names: ten addresses of one name fit 200 octets', () => {
    const answers = Array.from({ length: 10 }, (_, i) => ({
      name: 'www.example.test.',
      type: TYPE.A,
      class: 1,
      ttl: 60,
      data: Uint8Array.of(1, 2, 3, i),
    }))
    const bytes = encodeMessage({
      id: 1,
      flags: 0,
      opcode: 0,
      rcode: 0,
      questions: [{ name: 'www.example.test.', type: 1, class: 1 }],
      answers,
      authorities: [],
      additionals: [],
    })
    expect(bytes.length).toBe(12 + 22 + 10 * 16)
  })

  it.each([
    ['a pointer to itself', '000100000001000000000000c00c00010001'],
    ['a pointer forwards', '000100000001000000000000c01000010001'],
    ['two pointers at each other', '000100000001000100000000016100000100010161c01cc01a00010001'],
    ['a label longer than the packet', '0001000000010000000000003f61'],
    ['an extended label type', '0001000000010000000000004100010001'],
    ['nothing', ''],
    ['a header only that promises 65535 records', '00010000ffffffffffffffff'],
    ['an address of five octets', '0001800000000001000000000161000001000100000000000501020304ff'],
    ['two OPT records', '000100000000000000000002000029ffff000000000000000029ffff000000000000'],
  ])('with %s are an error value', (_, hex) => {
    expect(decodeMessage(Buffer.from(hex, 'hex'))).toBeInstanceOf(DnsError)
  })

  it('of random and of mutated octets never throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
        decodeMessage(octets)
      }),
    )
    fc.assert(
      fc.property(message, fc.array(fc.tuple(fc.nat(500), fc.nat(255)), { maxLength: 8 }), (original, edits) => {
        const bytes = encodeMessage(original)
        for (const [at, value] of edits) bytes[at % bytes.length] = value
        decodeMessage(bytes)
      }),
    )
  })

  it('carry a client subnet that is cut to its prefix', () => {
    const option = encodeSubnet({ address: '192.0.2.255', sourcePrefix: 25, scopePrefix: 0 })
    expect(decodeSubnet(option.data)).toEqual({ address: '192.0.2.128', sourcePrefix: 25, scopePrefix: 0 })
    expect(() => decodeSubnet(Uint8Array.of(0, 1, 24, 0, 1, 2, 3, 4))).toThrow(/client subnet/)
    expect(() => decodeSubnet(Uint8Array.of(0, 1, 20, 0, 1, 2, 3))).toThrow(/beyond/)
  })
})
