/** Odd packets by name: what RFC 8906 §8 asks servers to get right, and worse. Built by hand, since our encoder refuses them. */
import { createSocket } from 'node:dgram'
import { nameOctets } from './octets.ts'

export interface OddPacket {
  readonly name: string
  readonly bytes: Buffer
}

interface Shape {
  readonly word?: number
  readonly counts?: readonly [number, number, number, number]
  readonly qname?: string
  readonly type?: number
  readonly class?: number
  readonly tail?: readonly Buffer[]
}

const u16 = (value: number) => Buffer.from([value >> 8, value & 255])

const ID = 0x1234

function packet({ word = 0, counts, qname, type = 1, class: rrClass = 1, tail = [] }: Shape, name: string): OddPacket {
  const question = Buffer.concat([nameOctets(qname ?? 'www.z0.test.'), u16(type), u16(rrClass)])
  const header = [ID, word, ...(counts ?? [1, 0, 0, tail.length])].map(u16)
  return { name, bytes: Buffer.concat([...header, question, ...tail]) }
}

interface Opt {
  readonly version?: number
  readonly flags?: number
  readonly size?: number
  readonly options?: ReadonlyArray<readonly [number, Buffer]>
  readonly owner?: Buffer
}

function opt({ version = 0, flags = 0, size = 1232, options = [], owner = Buffer.of(0) }: Opt): Buffer {
  const data = Buffer.concat(options.flatMap(([code, value]) => [u16(code), u16(value.length), value]))
  return Buffer.concat([owner, u16(41), u16(size), Buffer.of(0, version), u16(flags), u16(data.length), data])
}

const octets = (length: number) => Buffer.alloc(length, 7)

export function oddPackets(): OddPacket[] {
  const list: OddPacket[] = []
  const add = (name: string, shape: Shape) => list.push(packet(shape, name))
  for (let opcode = 1; opcode < 16; opcode++) add(`opcode ${opcode}`, { word: opcode << 11 })
  for (let opcode = 1; opcode < 16; opcode++) add(`opcode ${opcode} with EDNS`, { word: opcode << 11, tail: [opt({})] })
  for (const type of [0, 41, 128, 249, 250, 251, 252, 253, 254, 255, 65_280, 65_535]) add(`type ${type}`, { type })
  for (const rrClass of [0, 2, 3, 4, 254, 255, 65_535]) add(`class ${rrClass}`, { class: rrClass })
  for (const bit of [0x400, 0x200, 0x100, 0x80, 0x40, 0x20, 0x10]) add(`header bit ${bit.toString(16)}`, { word: bit })
  add('rcode 5 in a question', { word: 5 })
  for (const version of [0, 1, 100, 255]) add(`EDNS version ${version}`, { tail: [opt({ version })] })
  add('EDNS version 1 with an unknown option', { tail: [opt({ version: 1, options: [[100, octets(4)]] })] })
  add('EDNS version 1 with DO', { tail: [opt({ version: 1, flags: 0x8000 })] })
  add('EDNS version 1 outside our zones', { qname: 'other.test.', tail: [opt({ version: 1 })] })
  for (const flags of [0x8000, 0x4000, 0x0001]) add(`EDNS flags ${flags.toString(16)}`, { tail: [opt({ flags })] })
  for (const size of [0, 100, 511, 512, 65_535]) add(`EDNS size ${size}`, { tail: [opt({ size })] })
  add('unknown option', { tail: [opt({ options: [[100, octets(4)]] })] })
  add('NSID', { tail: [opt({ options: [[3, octets(0)]] })] })
  for (const length of [8, 16, 24, 40]) add(`cookie of ${length}`, { tail: [opt({ options: [[10, octets(length)]] })] })
  for (const length of [0, 7, 9, 15, 41])
    add(`bad cookie of ${length}`, { tail: [opt({ options: [[10, octets(length)]] })] })
  add('client subnet', { tail: [opt({ options: [[8, Buffer.of(0, 1, 24, 0, 192, 0, 2)]] })] })
  add('padding', { tail: [opt({ options: [[12, octets(50)]] })] })
  add('all options', {
    tail: [
      opt({
        flags: 0x8000,
        options: [
          [3, octets(0)],
          [10, octets(8)],
          [100, octets(9)],
        ],
      }),
    ],
  })
  add('no such name with EDNS', { qname: 'nope.z0.test.', tail: [opt({})] })
  add('apex SOA', { qname: 'z0.test.', type: 6 })
  add('apex SOA with DO', { qname: 'z0.test.', type: 6, tail: [opt({ flags: 0x8000 })] })
  add('DNSKEY', { qname: 'z0.test.', type: 48 })
  add('outside our zones', { qname: 'other.test.' })
  add('root', { qname: '.', type: 2 })
  add('version.bind', { qname: 'version.bind.', type: 16, class: 3 })
  add('two questions', { counts: [2, 0, 0, 0], tail: [Buffer.concat([nameOctets('z0.test.'), u16(6), u16(1)])] })
  add('no question', { counts: [0, 0, 0, 0] })
  add('two OPT', { tail: [opt({}), opt({})] })
  add('OPT with a name', { tail: [opt({ owner: nameOctets('a.') })] })
  add('option longer than OPT', {
    tail: [Buffer.concat([Buffer.of(0), u16(41), u16(1232), Buffer.alloc(4), u16(4), u16(3), u16(9)])],
  })
  add('an answer in a question', {
    counts: [1, 1, 0, 0],
    tail: [Buffer.concat([nameOctets('a.'), u16(1), u16(1), Buffer.alloc(4), u16(4), octets(4)])],
  })
  add('garbage after the question', { counts: [1, 0, 0, 0], tail: [octets(5)] })
  add('garbage after OPT', { counts: [1, 0, 0, 1], tail: [opt({}), octets(5)] })
  add('more records promised than sent', { counts: [1, 0, 0, 3], tail: [opt({})] })
  const whole = packet({}, '').bytes
  for (const length of [12, 13, 20, whole.length - 4, whole.length - 1])
    list.push({ name: `cut to ${length} octets`, bytes: whole.subarray(0, length) })
  list.push({
    name: 'a pointer as name',
    bytes: Buffer.concat([whole.subarray(0, 12), Buffer.of(0xc0, 0x0c, 0, 1, 0, 1)]),
  })
  list.push({
    name: 'a label of type 0x40',
    bytes: Buffer.concat([whole.subarray(0, 12), Buffer.of(0x41, 1, 0, 0, 1, 0, 1)]),
  })
  return list
}

/** What must not be answered at all. */
export function silentPackets(): OddPacket[] {
  const whole = packet({}, '').bytes
  return [
    { name: 'nothing', bytes: Buffer.alloc(0) },
    { name: 'one octet', bytes: whole.subarray(0, 1) },
    { name: 'eleven octets', bytes: whole.subarray(0, 11) },
    packet({ word: 0x8000 }, 'an answer'),
    packet({ word: 0x8000 | (5 << 11) }, 'an answer to an update'),
  ]
}

/** Sends octets and resolves with the answer, or undefined after `timeoutMs` of silence. */
export async function sendRaw(
  server: { address: string; port?: number },
  bytes: Buffer,
  timeoutMs = 1000,
): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    const timer = setTimeout(() => socket.close(() => resolve(undefined)), timeoutMs)
    socket.on('error', reject)
    socket.once('message', (answer) => {
      clearTimeout(timer)
      socket.close(() => resolve(answer))
    })
    socket.send(bytes, server.port ?? 53, server.address)
  })
}
