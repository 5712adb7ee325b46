/** The server under abuse: floods, amplification, ten thousand idle connections, and the probes of RFC 8906. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createDnsClient,
  decodeMessage,
  DnsError,
  encodeMessage,
  type Message,
  rcodeName,
  type ServerAddress,
} from '@seamark/dns'
import { findProgram, needs } from '@seamark/kit'
import { oddPackets, sendRaw, silentPackets } from './packets.ts'

const SEAMARK = join(import.meta.dirname, '../../../bin/seamark')
const folder = mkdtempSync(join(tmpdir(), 'seamark-abuse-'))
const ZONE = `$ORIGIN z0.test.
$TTL 300
@ SOA ns host 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
www A 192.0.2.1
big TXT "${'x'.repeat(200)}" "${'y'.repeat(200)}" "${'z'.repeat(200)}" "${'z'.repeat(200)}"
${Array.from({ length: 1000 }, (_, i) => `host-${i} A 192.0.2.${i % 250}`).join('\n')}
`

interface Served extends ServerAddress {
  readonly port: number
  readonly child: ChildProcess
}

/** Its own process, as in real life: the flood must not share an event loop with the client that is measured. */
async function serve(...flags: string[]): Promise<Served> {
  const file = join(folder, 'z0.test.zone')
  writeFileSync(file, ZONE)
  const args = ['dns', 'serve', '--listen', '127.0.0.1:0', ...flags, file]
  const child = spawn(SEAMARK, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const chunk of child.stdout) {
    text += String(chunk)
    const port = /ready \S+:(\d+)/.exec(text)?.[1]
    if (port !== undefined) return { address: '127.0.0.1', port: Number(port), child }
  }
  throw new Error(`the server did not start: ${text}`)
}

async function stop({ child }: Served): Promise<number | null> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  return (await ended)[0] as number | null
}

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A client with an address of its own: 127.0.1.1 is another /24 than the flood's 127.0.0.1. */
async function askFrom(source: string, server: Served, name: string, timeoutMs: number): Promise<Message | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    const timer = setTimeout(() => socket.close(() => resolve(undefined)), timeoutMs)
    socket.on('error', reject)
    socket.once('message', (answer) => {
      clearTimeout(timer)
      const message = decodeMessage(answer)
      socket.close(() => (message instanceof DnsError ? reject(message) : resolve(message)))
    })
    const labels = name.split('.').map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)]))
    const question = Buffer.concat([
      Buffer.from([0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
      ...labels,
      Buffer.from([0, 0, 1, 0, 1]),
    ])
    socket.bind(0, source, () => socket.send(question, server.port, server.address))
  })
}

/**
 * Two floods, each a load on the server however fast the machine is. From a limited source: twenty times what its prefix may
 * have, whatever comes back. From an exempt one: as many questions in flight as the kernel holds for the server, so that it
 * is never idle; with more, the kernel would drop the packets of both clients before the server sees them.
 */
describe.skipIf(!needs('dnsperf')).each([
  ['limited', ['--limit-loopback'], ['-q', '20000', '-Q', '20000']],
  ['exempt, as loopback is by default', [], ['-q', '200']],
])('a flood from one source that is %s', (_, flags, load) => {
  it('leaves another client at least 99 % of its questions within three tries, and TCP always', async () => {
    const server = await serve(...flags)
    const questions = join(folder, 'flood')
    writeFileSync(questions, Array.from({ length: 1000 }, (__, i) => `host-${i}.z0.test A`).join('\n'))
    const target = ['-s', '127.0.0.1', '-p', String(server.port), '-d', questions]
    // Ended below; the limit of this test's own time ends it also when the test is cut off.
    const args = [...target, ...load, '-l', '120', '-c', '4', '-t', '1', '-T', '1']
    const flood = spawn(findProgram('dnsperf')!, args, { stdio: 'ignore' })
    const client = createDnsClient({ timeoutMs: 20_000, tries: 1 })
    try {
      let answered = 0
      let byTcp = 0
      const total = 200
      for (let i = 0; i < total; i++) {
        let reply: Message | undefined
        for (let attempt = 0; attempt < 3 && reply === undefined; attempt++)
          reply = await askFrom('127.0.1.1', server, `host-${i}.z0.test`, 3000)
        if (reply?.answers.length === 1) answered++
        if (i % 10 !== 0) continue
        const { message } = await client.query({ server, name: `host-${i}.z0.test`, type: 'A', transport: 'tcp' })
        if (message.answers.length === 1) byTcp++
      }
      expect(flood.exitCode, 'the flood went on to the end').toBeNull()
      expect(answered).toBeGreaterThanOrEqual(total * 0.99)
      expect(byTcp).toBe(total / 10)
    } finally {
      flood.kill()
      await client.close()
      expect(await stop(server)).toBe(0)
    }
  })
})

/** A source whose packets and answers are counted, and which detects when the server has processed all it sent. */
class CountedSource {
  received = 0
  readonly #socket = createSocket('udp4')
  readonly #server: Served
  #marker: Buffer | undefined
  #markerAnswered: (() => void) | undefined

  constructor(server: Served) {
    this.#server = server
    this.#socket.on('message', (answer) => {
      if (answer.readUInt16BE(0) !== MARKER_ID) this.received += answer.length
      else this.#markerAnswered?.()
    })
  }

  send(packet: Buffer): void {
    this.#socket.send(packet, this.#server.port, this.#server.address)
  }

  /**
   * Waits until everything sent before is answered or dropped: a question with a valid cookie is always answered, and
   * packets of one source keep their order on the way. It is sent again when the kernel dropped it.
   */
  async settle(): Promise<void> {
    this.#marker ??= cookieQuestion(await cookieOf(this.#server))
    const marker = this.#marker
    const answered = new Promise<void>((resolve) => (this.#markerAnswered = resolve))
    this.send(marker)
    const again = setInterval(() => this.send(marker), 200)
    await answered
    clearInterval(again)
  }

  close(): void {
    this.#socket.close()
  }
}

const MARKER_ID = 0xffff

function cookieQuestion(cookie: Uint8Array): Buffer {
  return encodeMessage({
    id: MARKER_ID,
    flags: 0,
    opcode: 0,
    rcode: 0,
    questions: [{ name: 'z0.test.', type: 6, class: 1 }],
    answers: [],
    authorities: [],
    additionals: [],
    edns: { size: 1232, version: 0, isDo: false, options: [{ code: 10, data: cookie }] },
  })
}

async function cookieOf(server: Served): Promise<Uint8Array> {
  const client = createDnsClient({ timeoutMs: 20_000 })
  const option = { code: 10, data: Buffer.alloc(8, 7) }
  try {
    const { message } = await client.query({
      server,
      name: 'z0.test',
      type: 'SOA',
      transport: 'tcp',
      options: [option],
    })
    return message.edns!.options.find(({ code }) => code === 10)!.data
  } finally {
    await client.close()
  }
}

describe('one source prefix without a cookie', () => {
  it('gets at most five times the octets it sent, limited or not', async () => {
    const server = await serve('--limit-loopback')
    const source = new CountedSource(server)
    const question = Buffer.from(
      '00090000000100000000000103626967027a30047465737400001000010000290fa0000000000000',
      'hex',
    )
    const burst = async (count: number) => {
      for (let i = 0; i < count; i++) {
        source.send(question)
        // No more in flight than the kernel holds: what it drops, the server cannot count.
        if (i % 100 === 99) await source.settle()
      }
      await source.settle()
    }
    try {
      for (const count of [10, 2000]) {
        source.received = 0
        await burst(count)
        expect(source.received).toBeLessThanOrEqual(5 * count * question.length)
        expect(source.received).toBeGreaterThan(0) // over the limit of 20 a second every second one is answered, truncated
      }
    } finally {
      source.close()
      await stop(server)
    }
  })
})

describe('ten thousand idle connections', () => {
  it('do not keep a newcomer out, and go away by themselves', async () => {
    const server = await serve()
    const sockets: Socket[] = []
    const client = createDnsClient({ timeoutMs: 5000 })
    try {
      for (let batch = 0; batch < 100; batch++) {
        const opened = Array.from({ length: 100 }, () =>
          connect({ port: server.port, host: '127.0.0.1' }).on('error', () => {}),
        )
        sockets.push(...opened)
        await Promise.all(opened.map(async (socket) => once(socket, 'connect').catch(() => {})))
      }
      const { message } = await client.query({ server, name: 'www.z0.test', type: 'A', transport: 'tcp' })
      expect(message.answers).toHaveLength(1)
      await expect
        .poll(() => sockets.filter((socket) => !socket.closed).length, { timeout: 20_000, interval: 200 })
        .toBeLessThanOrEqual(100)
      expect((await client.query({ server, name: 'www.z0.test', type: 'A' })).message.answers).toHaveLength(1)
    } finally {
      for (const socket of sockets) socket.destroy()
      await client.close()
      expect(await stop(server)).toBe(0)
    }
  })
})

describe('the probes of RFC 8906', () => {
  let server: Served
  beforeAll(async () => {
    server = await serve()
  })
  afterAll(async () => stop(server))

  /** What §8 expects of an authoritative server: rcode, and whether OPT comes back. */
  const EXPECTED: ReadonlyMap<string, string> = new Map([
    ['apex SOA', 'NOERROR plain'],
    ['type 65280', 'NOERROR plain'],
    ['header bit 10', 'NOERROR plain'],
    ['header bit 20', 'NOERROR plain'],
    ['header bit 40', 'NOERROR plain'],
    ['header bit 100', 'NOERROR plain'],
    ['opcode 15', 'NOTIMP plain'],
    ['opcode 15 with EDNS', 'NOTIMP edns 0'],
    ['EDNS version 0', 'NOERROR edns 0'],
    ['EDNS version 1', 'BADVERS edns 0'],
    ['EDNS version 1 with an unknown option', 'BADVERS edns 0'],
    ['EDNS version 1 with DO', 'BADVERS edns 0 do'],
    ['EDNS flags 4000', 'NOERROR edns 0'],
    ['EDNS flags 1', 'NOERROR edns 0'],
    ['EDNS size 512', 'NOERROR edns 0'],
    ['DNSKEY', 'NOERROR plain'],
    ['EDNS flags 8000', 'NOERROR edns 0 do'],
    ['unknown option', 'NOERROR edns 0'],
    ['all options', 'NOERROR edns 0 do'],
    ['apex SOA with DO', 'NOERROR edns 0 do'],
    ['version.bind', 'REFUSED plain'],
    ['NSID', 'NOERROR edns 0'],
  ])

  it('are all among the packets', () => {
    const names = new Set(oddPackets().map(({ name }) => name))
    expect([...EXPECTED.keys()].filter((name) => !names.has(name))).toEqual([])
  })

  it('are answered by TCP too (§8.1.6)', async () => {
    const client = createDnsClient({ timeoutMs: 5000 })
    try {
      const { message } = await client.query({ server, name: 'z0.test', type: 'SOA', transport: 'tcp', hasEdns: false })
      expect([rcodeName(message.rcode), message.answers.length, message.edns]).toEqual(['NOERROR', 1, undefined])
    } finally {
      await client.close()
    }
  })

  it.each(oddPackets().filter(({ name }) => EXPECTED.has(name)))('$name', async ({ name, bytes }) => {
    const answer = await sendRaw(server, bytes)
    const message = decodeMessage(answer!) as Message
    const edns = message.edns === undefined ? 'plain' : `edns ${message.edns.version}${message.edns.isDo ? ' do' : ''}`
    expect(`${rcodeName(message.rcode)} ${edns}`).toBe(EXPECTED.get(name))
    // No reserved header bit, no AD, no echo of unknown options or flags; NSID and version stay hidden.
    expect(message.flags & 0x60).toBe(0)
    expect(message.edns?.options.filter(({ code }) => code !== 10) ?? []).toEqual([])
  })

  it.each(silentPackets())('$name is not answered', async ({ bytes }) => {
    expect(await sendRaw(server, bytes, 200)).toBeUndefined()
  })
})
