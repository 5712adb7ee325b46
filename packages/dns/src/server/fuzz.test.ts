/**
 * Mutated packets against the whole answer path, in process: no exception, no answer to an answer, the right rcodes, bounded
 * answers, flat memory. SEAMARK_FUZZ sets the number of packets, SEAMARK_SEED repeats a run.
 */
import { describe, expect, it } from 'vitest'
import { RCODE } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { decodeMessage, encodeMessage, type Message } from '../wire/message.ts'
import { fqdn } from '../wire/name.ts'
import { signMessage, TsigKey } from '../wire/tsig.ts'
import { updateMessage } from '../wire/update-message.ts'
import { isZoneFileError, loadZoneFile } from '../zone/zone-file.ts'
import { createDispatcher } from './server.ts'

const PACKETS = Number(process.env['SEAMARK_FUZZ'] ?? 50_000)
const SEED = Number(process.env['SEAMARK_SEED'])
const NOW = 1_800_000_000_000

const KEY = new TsigKey('k', 'hmac-sha256', 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0')
const TEXT = `$ORIGIN example.test.
$TTL 300
@ SOA ns host 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
www A 192.0.2.1
alias CNAME www
*.wild TXT "w"
a.b.c A 192.0.2.3
sub NS ns.sub
ns.sub A 192.0.2.4
d DNAME example.test.
big TXT "${'x'.repeat(250)}" "${'y'.repeat(250)}" "${'z'.repeat(250)}" "${'z'.repeat(250)}" "${'z'.repeat(250)}"
`

/** mulberry32 */
function seeded(seed: number): (limit: number) => number {
  let state = seed >>> 0
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * limit)
  }
}

function templates(): Buffer[] {
  const empty = { id: 1, flags: 0, opcode: 0, rcode: 0, answers: [], authorities: [], additionals: [] }
  const edns = {
    size: 1232,
    version: 0,
    isDo: false,
    options: [
      { code: 10, data: Buffer.alloc(8) },
      { code: 8, data: Buffer.of(0, 1, 24, 0, 1, 2, 3) },
    ],
  }
  const names = ['www', 'alias', 'x.wild', 'b.c', 'deep.sub', 'www.d', 'big', 'nope'].map(
    (label) => `${label}.example.test.`,
  )
  const queries = [...names, 'example.test.', 'other.test.', '.'].flatMap((name) =>
    [1, 2, 6, 16, 251, 252, 255].map((type) =>
      encodeMessage({ ...empty, questions: [{ name, type, class: 1 }], ...(type % 2 === 0 && { edns }) }),
    ),
  )
  const zone = fqdn('example.test')
  const update = encodeMessage({
    id: 2,
    ...updateMessage({
      zone,
      prerequisites: [
        { kind: 'name-in-use', name: fqdn('www.example.test') },
        { kind: 'set-equals', name: fqdn('www.example.test'), type: 'A', values: ['192.0.2.1'] },
      ],
      operations: [
        { kind: 'add', set: { name: fqdn('new.example.test'), type: 'MX', ttl: 5, values: ['10 mail.example.test.'] } },
        { kind: 'delete-name', name: fqdn('a.b.c.example.test') },
      ],
    }),
  })
  const notify = encodeMessage({ ...empty, opcode: 4, questions: [{ name: 'example.test.', type: 6, class: 1 }] })
  return [
    ...queries,
    update,
    notify,
    signMessage(update, KEY, NOW / 1000).bytes,
    signMessage(queries[0]!, KEY, NOW / 1000).bytes,
  ]
}

function mutate(source: Buffer, random: (limit: number) => number): Buffer {
  let bytes = Buffer.from(source)
  for (let edits = random(6); edits > 0; edits--) {
    const at = random(bytes.length + 1)
    switch (random(7)) {
      case 0:
        if (at < bytes.length) bytes[at] = random(256)
        break
      case 1:
        if (at < bytes.length) bytes[at]! ^= 1 << random(8)
        break
      case 2:
        bytes = bytes.subarray(0, at)
        break
      case 3:
        bytes = Buffer.concat([
          bytes.subarray(0, at),
          Buffer.from(Array.from({ length: random(20) }, () => random(256))),
          bytes.subarray(at),
        ])
        break
      case 4:
        bytes = Buffer.concat([bytes, bytes.subarray(at)])
        break
      case 5: // a pointer, often to itself
        bytes = Buffer.concat([
          bytes.subarray(0, at),
          Buffer.of(0xc0, random(2) === 0 ? at : random(256)),
          bytes.subarray(at),
        ])
        break
      default: // counts and lengths
        if (bytes.length > 12) bytes[4 + random(8)] = random(4)
    }
  }
  if (random(2000) === 0) bytes = Buffer.concat([bytes, Buffer.alloc(65_535 - Math.min(65_535, bytes.length))])
  return bytes
}

describe(`mutated packets (seed ${SEED})`, () => {
  it(`${PACKETS} of them do no harm`, { timeout: 60_000 + PACKETS }, () => {
    const zone = loadZoneFile(TEXT)
    if (isZoneFileError(zone)) throw new Error(zone.reason)
    const random = seeded(SEED)
    const sources = templates()
    const failures: unknown[] = []
    const policy = { updateKeys: [KEY.name], transferKeys: [KEY.name] }
    const create = () =>
      createDispatcher({
        zones: [zone],
        listen: [],
        keys: [KEY],
        defaultPolicy: policy,
        now: () => NOW,
        onError: (error) => failures.push(error),
      })
    let server = create()
    const out = Buffer.alloc(65_537)
    const known = new Set<number>(Object.values(RCODE))
    let middle = 0
    for (let i = 0; i < PACKETS; i++) {
      const packet = mutate(sources[random(sources.length)]!, random)
      const transport = random(4) === 0 ? 'tcp' : 'udp'
      const peer = { address: '127.0.0.1', port: 5353, transport } as const
      const transfer = transport === 'tcp' ? server.transfer(packet) : undefined
      const answers = transfer === undefined ? [out.subarray(0, server.answer(packet, peer, out))] : [...transfer]
      for (const answer of answers) {
        if (answer.length === 0) {
          if (packet.length >= 12 && (packet[2]! & 0x80) === 0)
            throw new Error(`no answer to ${packet.toString('hex')}`)
          continue
        }
        const decoded = decodeMessage(answer)
        const what = `${packet.toString('hex')} gave ${Buffer.from(answer).toString('hex')}`
        if (decoded instanceof DnsError) throw new Error(`${decoded.message}: ${what}`)
        check(decoded, packet, answer, transport, what)
        if (!known.has(decoded.rcode)) throw new Error(`rcode ${decoded.rcode}: ${what}`)
      }
      // Updates that got through change the zone: begin afresh now and then.
      if (i % 10_000 === 0) server = create()
      if (i === PACKETS >> 1) middle = usedMemory()
    }
    expect(failures).toEqual([])
    expect(usedMemory() - middle).toBeLessThan(64 << 20)
  })
})

function check(message: Message, packet: Buffer, answer: Uint8Array, transport: string, what: string): void {
  if ((packet[2]! & 0x80) !== 0) throw new Error(`an answer was answered: ${what}`)
  if (message.id !== packet.readUInt16BE(0) || (message.flags & 0x8000) === 0)
    throw new Error(`not the answer to it: ${what}`)
  if (message.opcode !== ((packet[2]! >> 3) & 15)) throw new Error(`another opcode: ${what}`)
  if (transport === 'udp' && answer.length > 1232) throw new Error(`${answer.length} octets by UDP: ${what}`)
  if (![0, 4, 5].includes(message.opcode) && message.rcode !== RCODE.NOTIMP)
    throw new Error(`opcode not refused: ${what}`)
}

function usedMemory(): number {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
