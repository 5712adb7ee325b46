/** AXFR from servers that end too early, answer something else or send names that are not theirs. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { CLASS, OPCODE, TYPE, typeCode } from '../wire/codes.ts'
import { decodeMessage, encodeMessage, FLAG, type Message, type Question } from '../wire/message.ts'
import { fqdn } from '../wire/name.ts'
import { rdataFromText } from '../wire/rdata/grammar.ts'
import type { Resource } from '../wire/record.ts'
import { readTsig, signMessage, TsigKey } from '../wire/tsig.ts'
import { createDnsClient } from './client.ts'
import type { TransferRequest } from './transfer.ts'
import type { ServerAddress } from './udp-exchange.ts'
import { Deframer, frame } from '../wire/tcp-frame.ts'

const ZONE = fqdn('example.test')

const record = (name: string, type: string, value: string): Resource => ({
  name,
  type: typeCode(type),
  class: CLASS.IN,
  ttl: 60,
  data: rdataFromText(typeCode(type), value),
})

const SOA = record('example.test.', 'SOA', 'ns.example.test. host.example.test. 1 2 3 4 5')
const WWW = record('www.example.test.', 'A', '192.0.2.1')
const QUESTION: Question = { name: ZONE, type: TYPE.AXFR, class: CLASS.IN }

const listening: Server[] = []

afterEach(async () => {
  for (const server of listening.splice(0)) await new Promise<void>((resolve) => server.close(() => resolve()))
})

const ID = 7
const client = createDnsClient({ timeoutMs: 5000, random: () => ID })

/** A server that gives every request and its connection to `serve`. */
async function listen(serve: (request: Buffer, socket: Socket) => void): Promise<ServerAddress> {
  const server = createServer((socket) => {
    const deframer = new Deframer()
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      deframer.push(chunk)
      const request = deframer.next()
      if (request !== undefined) serve(request, socket)
    })
  })
  listening.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { address: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

function encode(message: Partial<Message>): Buffer {
  const whole = { id: ID, flags: FLAG.QR | FLAG.AA, opcode: OPCODE.QUERY, rcode: 0, questions: [], answers: [] }
  return encodeMessage({ ...whole, authorities: [], additionals: [], ...message })
}

async function namesOf(request: TransferRequest): Promise<string[]> {
  const names: string[] = []
  for await (const each of client.transfer(request)) names.push(each.name)
  return names
}

/** Sends these messages to every client, then closes the connection in order. */
async function transferFrom(...messages: ReadonlyArray<Partial<Message>>): Promise<string[]> {
  const server = await listen((_request, socket) => {
    for (const message of messages) socket.write(frame(encode(message)))
    socket.end()
  })
  return namesOf({ server, zone: ZONE })
}

const KEY = new TsigKey('k', 'hmac-sha256', 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0')
const FORGER = new TsigKey('k', 'hmac-sha256', 'Zm9yZ2VkZm9yZ2VkZm9yZ2Vk')

/** A transfer in as many messages as there are signatures; the last one has the second SOA. */
async function signedTransfer(...signatures: readonly ('signed' | 'forged' | 'none')[]): Promise<string[]> {
  const server = await listen((request, socket) => {
    const { tsig } = decodeMessage(request) as Message
    let previousMac = readTsig(request, tsig!.start).mac
    let isContinued = false
    for (const [index, signature] of signatures.entries()) {
      const isLast = index === signatures.length - 1
      const bytes = encode({
        questions: index === 0 ? [QUESTION] : [],
        answers: [...(index === 0 ? [SOA] : []), WWW, ...(isLast ? [SOA] : [])],
      })
      if (signature === 'none') {
        socket.write(frame(bytes))
        continue
      }
      const key = signature === 'signed' ? KEY : FORGER
      const signed = signMessage(bytes, key, Math.floor(Date.now() / 1000), { previousMac, isContinued })
      previousMac = signed.mac
      isContinued = true
      socket.write(frame(signed.bytes))
    }
    socket.end()
  })
  return namesOf({ server, zone: ZONE, key: KEY })
}

describe('a transfer', () => {
  it('gives the records between the two SOA records, the first included', async () => {
    expect(await transferFrom({ questions: [QUESTION], answers: [SOA, WWW] }, { answers: [SOA] })).toEqual([
      'example.test.',
      'www.example.test.',
    ])
  })

  it('fails when the connection ends before the second SOA record', async () => {
    await expect(
      transferFrom({ questions: [QUESTION], answers: [SOA, WWW] }, { answers: [WWW] }),
    ).rejects.toMatchObject({
      code: 'TRANSFER',
      message: expect.stringContaining('before the last SOA'),
    })
  })

  it('fails when records follow the second SOA record', async () => {
    await expect(transferFrom({ questions: [QUESTION], answers: [SOA, WWW, SOA, WWW] })).rejects.toMatchObject({
      code: 'TRANSFER',
    })
  })

  it('fails when a message answers another question', async () => {
    for (const question of [
      { ...QUESTION, name: 'other.test.' },
      { ...QUESTION, type: TYPE.SOA },
    ])
      await expect(transferFrom({ questions: [question], answers: [SOA, SOA] })).rejects.toMatchObject({
        code: 'TRANSFER',
      })
  })

  it('leaves out names that are not in the zone', async () => {
    const foreign = ['other.test.', 'test.', 'notexample.test.', 'a\\.example.test.'].map((name) =>
      record(name, 'A', '198.51.100.1'),
    )
    const answers = [SOA, ...foreign, WWW, record('deep.www.example.test.', 'A', '192.0.2.2'), SOA]
    expect(await transferFrom({ questions: [QUESTION], answers })).toEqual([
      'example.test.',
      'www.example.test.',
      'deep.www.example.test.',
    ])
  })

  it('leaves out names that are not in the zone when it asks for changes, too', async () => {
    const foreign = record('other.test.', 'A', '198.51.100.1')
    const server = await listen((_request, socket) => {
      socket.end(frame(encode({ questions: [QUESTION], answers: [SOA, foreign, WWW, SOA] })))
    })
    const result = await client.transferChanges({ server, zone: ZONE })
    expect(result).toMatchObject({ kind: 'zone', records: [{ name: 'example.test.' }, { name: 'www.example.test.' }] })
  })

  it('fails when a message has another id', async () => {
    await expect(transferFrom({ id: ID + 1, questions: [QUESTION], answers: [SOA, SOA] })).rejects.toMatchObject({
      code: 'TRANSFER',
    })
  })

  it('with a key is taken only when it is signed from the first message to the last', async () => {
    expect(await signedTransfer('signed', 'signed')).toHaveLength(3)
    await expect(signedTransfer('none', 'signed')).rejects.toMatchObject({ code: 'TSIG_MISSING' })
    await expect(signedTransfer('signed', 'none')).rejects.toMatchObject({ code: 'TSIG_MISSING' })
    await expect(signedTransfer('signed', 'forged')).rejects.toMatchObject({ code: 'TSIG_BAD_SIG' })
    await expect(signedTransfer('forged')).rejects.toMatchObject({ code: 'TSIG_BAD_SIG' })
    const unsigned = Array.from({ length: 100 }, () => 'none' as const)
    await expect(signedTransfer('signed', ...unsigned, 'signed')).rejects.toMatchObject({ code: 'TSIG_MISSING' })
  })

  it('ends when the server sends nothing more, or when it is aborted', async () => {
    const server = await listen((_request, socket) => {
      socket.write(frame(encode({ questions: [QUESTION], answers: [SOA, WWW] })))
    })
    await expect(namesOf({ server, zone: ZONE, idleMs: 50 })).rejects.toMatchObject({ code: 'TIMEOUT' })
    const controller = new AbortController()
    const transfer = client.transfer({ server, zone: ZONE, idleMs: 100_000, signal: controller.signal })
    await transfer.next()
    await transfer.next()
    const third = transfer.next()
    controller.abort()
    await expect(third).rejects.toMatchObject({ code: 'ABORTED' })
  })
})
