/** Zone transfers over real sockets: complete, with back-pressure, and only for the keys that the policy names. */
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createDnsClient, type DnsClient } from '../../client/client.ts'
import { Deframer, frame } from '../../wire/tcp-frame.ts'
import { DnsError } from '../../error.ts'
import { CLASS, OPCODE, TYPE } from '../../wire/codes.ts'
import { decodeMessage, encodeMessage } from '../../wire/message.ts'
import { fqdn } from '../../wire/name.ts'
import { createRRset, type RRset } from '../../wire/record.ts'
import { signMessage, TsigKey } from '../../wire/tsig.ts'
import { createZone } from '../../zone/zone-table.ts'
import { createDnsServer, type DnsServer, type DnsServerOptions } from '../server.ts'

const ORIGIN = fqdn('example.test')
const KEY = new TsigKey('k', 'hmac-sha256', 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0')
const SOA = createRRset(ORIGIN, 'SOA', 60, ['ns.example.test. host.example.test. 1 3600 600 86400 60'])
const WWW = createRRset('www.example.test', 'A', 60, ['192.0.2.1'])

const open: Array<{ close(): Promise<void> }> = []

afterEach(async () => {
  await Promise.all(open.splice(0).map(async (each) => each.close()))
})

async function start(
  sets: readonly RRset[],
  options: Partial<DnsServerOptions> = {},
): Promise<{ server: DnsServer; client: DnsClient; at: { address: string; port: number } }> {
  const server = await createDnsServer({
    zones: [createZone(ORIGIN, [SOA, ...sets])],
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [KEY],
    ...options,
  })
  const client = createDnsClient({ timeoutMs: 5000 })
  open.push(client, server)
  return { server, client, at: server.addresses[0]! }
}

const TRANSFERABLE = { defaultPolicy: { transferKeys: [KEY.name] } }

function axfr(): Buffer {
  const plain = encodeMessage({
    id: 7,
    flags: 0,
    opcode: OPCODE.QUERY,
    rcode: 0,
    questions: [{ name: ORIGIN, type: TYPE.AXFR, class: CLASS.IN }],
    answers: [],
    authorities: [],
    additionals: [],
  })
  return frame(signMessage(plain, KEY, Math.floor(Date.now() / 1000)).bytes)
}

/** RRsets of about 40 kB each: megabytes of transfer from few names. */
const LARGE = Array.from({ length: 400 }, (_, i) =>
  createRRset(
    `large-${i}.example.test`,
    'TXT',
    60,
    Array.from({ length: 160 }, (__, j) => `"${j} ${'x'.repeat(245)}"`),
  ),
)

describe('a transfer', () => {
  it('reaches a peer that starts to read only after the buffers of the connection are full', async () => {
    const { at, server } = await start(LARGE, TRANSFERABLE)
    const socket = connect(at.port, at.address)
    socket.pause()
    socket.write(axfr())
    // The server counts the transfer and fills the buffers in the same turn of the event loop.
    await expect.poll(() => server.counters().transfers).toBe(1)
    const deframer = new Deframer()
    let records = 0
    let soas = 0
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      deframer.push(chunk)
      for (let bytes = deframer.next(); bytes !== undefined; bytes = deframer.next()) {
        const message = decodeMessage(bytes)
        if (message instanceof DnsError) throw message
        records += message.answers.length
        soas += message.answers.filter(({ type }) => type === TYPE.SOA).length
      }
      if (soas === 2) break
    }
    expect([soas, records]).toEqual([2, 2 + 400 * 160])
  })

  it('is followed by the answers to questions that were pipelined behind it', async () => {
    const { at } = await start(LARGE, TRANSFERABLE)
    const socket = connect(at.port, at.address)
    const question = encodeMessage({
      id: 8,
      flags: 0,
      opcode: OPCODE.QUERY,
      rcode: 0,
      questions: [{ name: ORIGIN, type: TYPE.SOA, class: CLASS.IN }],
      answers: [],
      authorities: [],
      additionals: [],
    })
    socket.write(Buffer.concat([axfr(), frame(question)]))
    const deframer = new Deframer()
    const ids = new Set<number>()
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      deframer.push(chunk)
      for (let bytes = deframer.next(); bytes !== undefined; bytes = deframer.next()) ids.add(bytes.readUInt16BE(0))
      if (ids.has(8)) break
    }
    expect([...ids]).toEqual([7, 8])
  })

  it('is encoded no further when the peer closes the connection', async () => {
    const encoded: number[] = []
    const { at, server } = await start(LARGE, {
      ...TRANSFERABLE,
      // Each signed message asks for the time once.
      now: () => encoded.push(0) && Date.now(),
    })
    const socket = connect(at.port, at.address)
    socket.pause()
    socket.write(axfr())
    await expect.poll(() => server.counters().transfers).toBe(1)
    socket.destroy()
    await expect.poll(() => server.counters().tcpConnections).toBe(0)
    const before = encoded.length
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    expect(encoded.length).toBe(before)
    expect(before).toBeLessThan(400)
  })

  it('is refused to a known key when the zone has no transfer keys', async () => {
    for (const options of [
      {},
      { defaultPolicy: {} },
      { defaultPolicy: { updateKeys: [KEY.name], transferKeys: [] } },
    ]) {
      const { at, client, server } = await start([WWW], options)
      await expect(client.transferRRsets({ server: at, zone: ORIGIN, key: KEY })).rejects.toMatchObject({
        code: 'RCODE',
        message: expect.stringContaining('REFUSED'),
      })
      expect(server.counters().transfers).toBe(0)
    }
  })
})
