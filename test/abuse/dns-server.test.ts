/** The shipped `seamark dns serve` under hostile packets: it continues to answer, changes nothing, and amplifies little. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, type DnsClient, fqdn, RCODE, TsigKey } from '@seamark/dns'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type LimitedProcess, startLimited } from './limited-process.ts'

const HEAP_MIB = 256
const PEAK_MIB = 700
const NAMES = 100_000
const SECRET = 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0'
const KEY = new TsigKey('k', 'hmac-sha256', SECRET)
const ZONE = fqdn('big.test')

let folder = ''
let server: LimitedProcess
let client: DnsClient
let address = { address: '127.0.0.1', port: 0 }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-abuse-dns-'))
  const lines = Array.from({ length: NAMES }, (_, index) => `h${index} A 10.0.${(index >> 8) & 255}.${index & 255}\n`)
  const texts = Array.from({ length: 20 }, () => `txt TXT ${'x'.repeat(200)}\n`).map((line, index) =>
    line.replace('x', String.fromCodePoint(97 + index)),
  )
  writeFileSync(
    join(folder, 'big.test.zone'),
    `$TTL 60\n@ SOA ns host 1 3600 600 86400 30\n@ NS ns\nns A 127.0.0.1\n${texts.join('')}${lines.join('')}`,
  )
  writeFileSync(join(folder, 'key'), `key "k" { algorithm hmac-sha256; secret "${SECRET}"; };\n`)
  const zone = join(folder, 'big.test.zone')
  const flags = ['--listen', '127.0.0.1:0', '--key', join(folder, 'key'), '--limit-loopback']
  server = startLimited('bin/seamark', ['dns', 'serve', ...flags, zone], HEAP_MIB)
  const [, port = ''] = await server.line(/^ready \S+:(\d+)$/)
  address = { address: '127.0.0.1', port: Number(port) }
  client = createDnsClient()
}, 60_000)
afterAll(async () => {
  await client?.close()
  await server?.stop()
  await rm(folder, { recursive: true, force: true })
})
afterEach(async () => {
  expect(await lookUp('h7')).toBe(RCODE.NOERROR)
  const peak = await server.peakMib()
  if (peak !== undefined) expect(peak).toBeLessThan(PEAK_MIB)
})

/** By TCP: what a source sends by UDP is limited here. */
async function lookUp(name: string): Promise<number> {
  const { message } = await client.query({ server: address, name: `${name}.${ZONE}`, type: 'A', transport: 'tcp' })
  return message.rcode
}

async function withSocket(work: (socket: Socket) => Promise<void>): Promise<void> {
  const socket = createSocket('udp4')
  try {
    await work(socket)
  } finally {
    socket.close()
  }
}

/** A generator of numbers below `limit`: the same for the same seed. */
function numbers(): (limit: number) => number {
  let state = Number(process.env['SEAMARK_SEED']) >>> 0
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

describe('the DNS server', () => {
  it('goes on after twenty thousand malformed packets, and streams that say more than they send', async () => {
    const next = numbers()
    // h1.big.test A.
    const question = Buffer.from('0007000000010000000000000268310362696704746573740000010001', 'hex')
    await withSocket(async (socket) => {
      for (let sent = 0; sent < 20_000; sent++) {
        const packet = sent % 2 === 0 ? Buffer.from(question) : Buffer.alloc(next(600))
        for (let change = 0; change < 1 + next(12) && packet.length > 0; change++)
          packet[next(packet.length)] = next(256)
        socket.send(packet.subarray(0, next(packet.length + 1)), address.port, address.address)
        // The server has read what was sent before: what the kernel drops would not be tried.
        if (sent % 500 === 499) expect(await lookUp('h1')).toBe(RCODE.NOERROR)
      }
    })
    const sockets = Array.from({ length: 200 }, () => connect(address.port, address.address))
    for (const socket of sockets) {
      socket.on('error', () => undefined)
      socket.write(Buffer.from([255, 255, next(256), next(256)]))
    }
    expect(await lookUp('h1')).toBe(RCODE.NOERROR)
    for (const socket of sockets) socket.destroy()
  })

  it('transfers a hundred thousand names, also to those who do not read, and refuses an unsigned request', async () => {
    const idle = Array.from({ length: 5 }, () => client.transfer({ zone: ZONE, key: KEY, server: address }))
    // Each is begun and not read on.
    for (const transfer of idle) await transfer[Symbol.asyncIterator]().next()
    let records = 0
    for await (const record of client.transfer({ zone: ZONE, key: KEY, server: address }))
      if (record.type > 0) records++
    expect(records).toBe(NAMES + 3 + 20)
    for (const transfer of idle) await transfer[Symbol.asyncIterator]().return?.(undefined)
    const unsigned = async (): Promise<void> => {
      for await (const _record of client.transfer({ zone: ZONE, server: address })) throw new Error('transferred')
    }
    await expect(unsigned()).rejects.toMatchObject({ message: expect.stringMatching(/REFUSED|refused|NOTAUTH/) })
  })

  it('refuses an unsigned update and changes nothing', async () => {
    // Opcode 5, zone big.test SOA IN; one update: h1.big.test delete all.
    const update = Buffer.from(
      '00072800000100000001000003626967047465737400000600010268310362696704746573740000ff00ff000000000000',
      'hex',
    )
    // By TCP: what a source sends by UDP is limited here.
    const socket = connect(address.port, address.address)
    socket.write(Buffer.concat([Buffer.from([0, update.length]), update]))
    const [reply] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    expect([RCODE.REFUSED, RCODE.NOTAUTH]).toContain((reply[5] ?? 0) & 15)
    expect(await lookUp('h1')).toBe(RCODE.NOERROR)
  })

  it('sends at most five times the octets of questions without a cookie', async () => {
    // txt.big.test TXT with EDNS and 4000 octets.
    const question = Buffer.from(
      '0009000000010000000000010374787403626967047465737400001000010000290fa0000000000000',
      'hex',
    )
    await withSocket(async (socket) => {
      let received = 0
      socket.on('message', (reply) => (received += reply.length))
      for (let sent = 0; sent < 1_000; sent++) {
        socket.send(question, address.port, address.address)
        if (sent % 100 === 99) expect(await lookUp('h1')).toBe(RCODE.NOERROR)
      }
      expect(received).toBeGreaterThan(0)
      expect(received).toBeLessThanOrEqual(5 * 1_000 * question.length)
    })
  })
})
