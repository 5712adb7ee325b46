/** The shipped `seamark dns serve` with little memory: clients that do not read, and signed updates that are repeated. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createDnsClient, encodeMessage, fqdn, RCODE, TsigKey } from '@seamark/dns'
import { isThorough } from '@seamark/kit'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type LimitedProcess, startLimited } from './limited-process.ts'
import { watchVictim } from './victim.ts'

const HEAP_MIB = 512
const PEAK_MIB = 500
const ROUNDS = isThorough ? 2_000 : 150
const SECRET = 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0'
const KEY = new TsigKey('k', 'hmac-sha256', SECRET)
const ZONE = fqdn('a.test')

let folder = ''
let program: LimitedProcess
let server = { address: '127.0.0.1', port: 0 }

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'seamark-abuse-dns-attacks-'))
  const texts = Array.from({ length: 20 }, (_, index) => `big TXT ${String(index).padStart(200, 'x')}\n`)
  const zone = join(folder, 'a.test.zone')
  writeFileSync(
    zone,
    `$TTL 60\n@ SOA ns host 1 3600 600 86400 30\n@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.1\n${texts.join('')}`,
  )
  writeFileSync(join(folder, 'key'), `key "k" { algorithm hmac-sha256; secret "${SECRET}"; };\n`)
  const flags = ['--listen', '127.0.0.1:0', '--key', join(folder, 'key')]
  program = startLimited('bin/seamark', ['dns', 'serve', ...flags, zone], HEAP_MIB)
  const [, port = ''] = await program.line(/^ready \S+:(\d+)$/)
  server = { address: '127.0.0.1', port: Number(port) }
}, 60_000)
afterAll(async () => {
  await program?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const question = (id: number, name: string, type: number): Buffer =>
  encodeMessage({
    id,
    flags: 0,
    opcode: 0,
    rcode: 0,
    questions: [{ name: `${name}.${ZONE}`, type, class: 1 }],
    answers: [],
    authorities: [],
    additionals: [],
  })

const framed = (message: Uint8Array): Buffer =>
  Buffer.concat([Uint8Array.of(message.length >> 8, message.length), message])

const answerOf = async (name: string): Promise<string[]> => {
  const client = createDnsClient({ tries: 1, timeoutMs: 5_000 })
  try {
    const { message } = await client.query({ server, name: `${name}.${ZONE}`, type: 'A' })
    return message.answers.map(({ data }) => [...data].join('.'))
  } finally {
    await client.close()
  }
}

it(
  'answers UDP as fast beside 90 clients that ask 2 000 times by TCP and do not read',
  { timeout: 60_000 },
  async () => {
    const socket = createSocket('udp4')
    const asked = question(7, 'www', 1)
    const step = async (): Promise<void> => {
      const answered = once(socket, 'message', { signal: AbortSignal.timeout(10_000) })
      socket.send(asked, server.port, server.address)
      const [answer] = (await answered) as [Buffer]
      expect(answer.readUInt16BE(6)).toBe(1)
      await pause(2)
    }
    const pipelined = [question(1, 'www', 1), question(1, 'big', 16)].map((each) =>
      Buffer.concat(Array.from({ length: 2_000 }, () => framed(each))),
    )
    const sockets: Socket[] = []
    const over = new AbortController()
    try {
      const watched = await watchVictim(
        step,
        async () => {
          for (let client = 0; client < 90; client++) {
            const tcp = connect({ host: server.address, port: server.port })
            sockets.push(tcp)
            tcp.on('error', () => undefined)
            // What arrives stays in the system's buffers, and then at the server.
            tcp.pause()
            await once(tcp, 'connect')
          }
          while (!over.signal.aborted) {
            // All at once, small answers and large ones.
            for (const [index, tcp] of sockets.entries())
              if (tcp.writableLength === 0) tcp.write(pipelined[index % 2] as Buffer)
            await pause(500)
          }
        },
        ROUNDS,
        () => over.abort(),
      )
      process.stdout.write(`${expect.getState().currentTestName}: ${JSON.stringify(watched)}\n`)
      expect([watched.late, program.isRunning()]).toEqual([[], true])
      const peak = await program.peakMib()
      if (peak !== undefined) expect(peak).toBeLessThan(PEAK_MIB)
    } finally {
      for (const tcp of sockets) tcp.destroy()
      socket.close()
    }
  },
)

/** The octets that a client sends for an update by TCP, with its length. */
async function recordUpdate(name: string, address: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  const tap = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      const all = Buffer.concat(chunks)
      if (all.length >= 2 + all.readUInt16BE(0)) socket.destroy()
    })
  })
  tap.listen(0, '127.0.0.1')
  await once(tap, 'listening')
  const { port } = tap.address() as { port: number }
  const client = createDnsClient({ tries: 1, timeoutMs: 5_000 })
  const set = { name: fqdn(`${name}.${ZONE}`), type: 'A', ttl: 60, values: [address] }
  const operations = [
    { kind: 'delete-set' as const, name: set.name, type: 'A' },
    { kind: 'add' as const, set },
  ]
  const to = { address: '127.0.0.1', port }
  await client.update({ server: to, zone: ZONE, key: KEY, operations, transport: 'tcp' }).catch(() => undefined)
  await client.close()
  tap.close()
  return Buffer.concat(chunks)
}

async function send(message: Buffer): Promise<number> {
  const socket = connect({ host: server.address, port: server.port })
  socket.write(message)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return (answer[5] ?? 0) & 15
}

/** The message without TSIG, signed again at another time and for longer (RFC 8945 §4.3.3). */
function signAgain(message: Buffer, time: number, fudge: number): Buffer {
  const [keyName, algorithm] = ['\x01k\0', '\x0bhmac-sha256\0'].map((name) => Buffer.from(name, 'latin1')) as [
    Buffer,
    Buffer,
  ]
  const body = message.subarray(2)
  const any = Buffer.from([0, 255, 0, 0, 0, 0])
  const unsigned = Buffer.from(body.subarray(0, body.lastIndexOf(Buffer.concat([keyName, Buffer.from([0, 250]), any]))))
  unsigned.writeUInt16BE(0, 10)
  const times = Buffer.alloc(8)
  times.writeUIntBE(time, 0, 6)
  times.writeUInt16BE(fudge, 6)
  const mac = KEY.mac([unsigned, keyName, any, algorithm, times, Buffer.alloc(4)])
  const data = Buffer.concat([
    algorithm,
    times,
    Buffer.from([0, mac.length]),
    mac,
    unsigned.subarray(0, 2),
    Buffer.alloc(4),
  ])
  const record = Buffer.concat([keyName, Buffer.from([0, 250]), any, Buffer.from([0, data.length]), data])
  const signed = Buffer.concat([unsigned, record])
  signed.writeUInt16BE(1, 10)
  return framed(signed)
}

it('takes a signed update once', async () => {
  const first = await recordUpdate('once', '192.0.2.1')
  expect([await send(first), await answerOf('once')]).toEqual([RCODE.NOERROR, ['192.0.2.1']])
  expect([await send(await recordUpdate('once', '192.0.2.2')), await answerOf('once')]).toEqual([0, ['192.0.2.2']])
  // Somebody on the path repeats it; it gets the answer of the first, and changes nothing.
  expect([await send(first), await answerOf('once')]).toEqual([RCODE.NOERROR, ['192.0.2.2']])
})

it('does not take an update for longer than 300 s, whatever fudge it was signed with', async () => {
  const now = Math.floor(Date.now() / 1_000)
  const update = await recordUpdate('old', '192.0.2.1')
  expect(await send(signAgain(update, now - 400, 65_535))).toBe(RCODE.NOTAUTH)
  expect(await answerOf('old')).toEqual([])
  // The same octets with a time within it: what is refused above is the time.
  expect(await send(signAgain(update, now - 200, 65_535))).toBe(RCODE.NOERROR)
  expect(await answerOf('old')).toEqual(['192.0.2.1'])
})
