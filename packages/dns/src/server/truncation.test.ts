/** Answers by UDP: how large they may be for which client, and that a shortened one has TC set. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { createDnsClient, type DnsClient, type QueryOptions } from '../client/client.ts'
import { OPTION } from '../wire/edns.ts'
import { encodeMessage, FLAG } from '../wire/message.ts'
import { fqdn } from '../wire/name.ts'
import { createRRset } from '../wire/record.ts'
import { TsigKey } from '../wire/tsig.ts'
import { createZone } from '../zone/zone-table.ts'
import { createDnsServer, type DnsServerOptions } from './server.ts'

const ORIGIN = fqdn('example.test')
const KEY = new TsigKey('k', 'hmac-sha256', 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0')
const ZONE = createZone(ORIGIN, [
  createRRset(ORIGIN, 'SOA', 60, ['ns.example.test. host.example.test. 1 3600 600 86400 60']),
  createRRset(
    'mail.example.test',
    'MX',
    60,
    Array.from({ length: 60 }, (_, i) => `${i} host-number-${i}.elsewhere.test.`),
  ),
  createRRset(
    'many.example.test',
    'A',
    60,
    Array.from({ length: 60 }, (_, i) => `192.0.2.${i}`),
  ),
  createRRset(
    'edge.example.test',
    'A',
    60,
    // 12 header + 22 question + 71 × 16 + 11 OPT = 1181 octets: whole without a signature, over 1232 with one.
    Array.from({ length: 71 }, (_, i) => `192.0.2.${i}`),
  ),
  createRRset('www.example.test', 'A', 60, ['192.0.2.1', '192.0.2.2']),
])

const open: Array<{ close(): Promise<void> }> = []

afterEach(async () => {
  await Promise.all(open.splice(0).map(async (each) => each.close()))
})

async function start(options: Partial<DnsServerOptions> = {}) {
  const server = await createDnsServer({
    zones: [ZONE],
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [KEY],
    ...options,
  })
  const client = createDnsClient({ timeoutMs: 5000 })
  open.push(client, server)
  const at = server.addresses[0]!
  return { client, at, ask: ask.bind(undefined, client, at) }
}

async function ask(
  client: DnsClient,
  server: { address: string; port: number },
  name: string,
  type: string,
  options: Partial<QueryOptions> = {},
): Promise<{ isTruncated: boolean; records: number; transport: string; size: number }> {
  const { message, size, transport } = await client.query({
    server,
    name: `${name}.example.test`,
    type,
    isTruncationKept: true,
    ...options,
  })
  return { isTruncated: (message.flags & FLAG.TC) !== 0, records: message.answers.length, transport, size }
}

describe('an RRset that does not fit a UDP answer', () => {
  it.each([
    ['mail', 'MX', 'encoded with compressed names'],
    ['many', 'A', 'copied from the zone'],
    ['many', 'ANY', 'resolved'],
  ])('is left out whole and the answer is marked truncated: %s %s, %s', async (name, type) => {
    const { ask: askServer } = await start()
    const cut = await askServer(name, type, { ednsSize: 512 })
    expect(cut).toMatchObject({ isTruncated: true, records: 0 })
    expect(cut.size).toBeLessThanOrEqual(512)
    expect(await askServer(name, type, { ednsSize: 512, isTruncationKept: false })).toMatchObject({
      isTruncated: false,
      records: 60,
      transport: 'tcp',
    })
  })

  it('is marked truncated where the signature alone is too much', async () => {
    const { ask: askServer } = await start()
    expect(await askServer('edge', 'A')).toMatchObject({ isTruncated: false, records: 71 })
    const cut = await askServer('edge', 'A', { key: KEY })
    expect(cut).toMatchObject({ isTruncated: true, records: 0 })
    expect(cut.size).toBeLessThanOrEqual(1232)
    expect(await askServer('edge', 'A', { key: KEY, isTruncationKept: false })).toMatchObject({
      isTruncated: false,
      records: 71,
      transport: 'tcp',
    })
  })

  it('is marked truncated when the question is signed and the data alone is too much', async () => {
    const { ask: askServer } = await start()
    for (const [name, type] of [
      ['many', 'A'],
      ['mail', 'MX'],
    ] as const)
      expect(await askServer(name, type, { key: KEY, hasEdns: false })).toMatchObject({
        isTruncated: true,
        records: 0,
      })
  })
})

/** Sends again when no answer comes: a datagram may be lost on a busy machine. */
async function exchange(socket: Socket, question: Buffer, at: { address: string; port: number }): Promise<Buffer> {
  for (let tries = 0; tries < 30; tries++) {
    socket.send(question, at.port, at.address)
    const answered = once(socket, 'message', { signal: AbortSignal.timeout(1_000) }) as Promise<[Buffer]>
    const answer = await answered.catch(() => undefined)
    if (answer !== undefined) return answer[0]
  }
  throw new Error('no answer to 30 questions')
}

describe('a source that has not proved its address', () => {
  const limited = { rateLimit: { isLoopbackLimited: true } }

  it('gets at most five octets for each octet it sent, and the whole answer by TCP', async () => {
    const { ask: askServer, client, at } = await start(limited)
    expect(await askServer('www', 'A')).toMatchObject({ isTruncated: false, records: 2 })
    const cut = await askServer('many', 'A')
    expect(cut).toMatchObject({ isTruncated: true, records: 0 })
    expect(await ask(client, at, 'many', 'A', { isTruncationKept: false })).toMatchObject({
      isTruncated: false,
      records: 60,
      transport: 'tcp',
    })
  })

  it('gets no more than that for any question', async () => {
    const { at } = await start(limited)
    const socket = createSocket('udp4').bind(0, '127.0.0.1')
    await once(socket, 'listening')
    const edns = { size: 4096, version: 0, isDo: true, options: [{ code: OPTION.COOKIE, data: Buffer.alloc(8, 1) }] }
    try {
      for (const name of ['.', 'example.test.', 'many.example.test.', 'mail.example.test.', 'no.example.test.'])
        for (const type of [1, 2, 6, 15, 16, 43, 252, 255])
          for (const isPlain of [true, false]) {
            const question = encodeMessage({
              id: 7,
              flags: 0,
              opcode: 0,
              rcode: 0,
              questions: [{ name, type, class: 1 }],
              answers: [],
              authorities: [],
              additionals: [],
              ...(!isPlain && { edns }),
            })
            const answer = await exchange(socket, question, at)
            expect(answer.length, `${name} ${type}`).toBeLessThanOrEqual(5 * question.length)
          }
    } finally {
      socket.close()
    }
  })

  it('gets the whole answer by UDP with the cookie it was given', async () => {
    const { client, at, ask: askServer } = await start(limited)
    const own = { code: OPTION.COOKIE, data: Buffer.alloc(8, 7) }
    const first = await client.query({
      server: at,
      name: 'many.example.test',
      type: 'A',
      isTruncationKept: true,
      options: [own],
    })
    const given = first.message.edns?.options.find(({ code }) => code === OPTION.COOKIE)
    expect(first.message.answers).toEqual([])
    expect(await askServer('many', 'A', { options: [given!] })).toMatchObject({
      isTruncated: false,
      records: 60,
      transport: 'udp',
    })
  })
})
