/** AXFR from servers that end too early, answer something else or send names that are not theirs. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { CLASS, OPCODE, TYPE, typeCode } from '../wire/codes.ts'
import { encodeMessage, FLAG, type Message, type Question } from '../wire/message.ts'
import { fqdn } from '../wire/name.ts'
import { rdataFromText } from '../wire/rdata/grammar.ts'
import type { Resource } from '../wire/record.ts'
import { createDnsClient } from './client.ts'
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

let listening: Server | undefined

afterEach(async () => {
  const closing = listening
  listening = undefined
  if (closing !== undefined) await new Promise<void>((resolve) => closing.close(() => resolve()))
})

/** Sends these messages to every client, then closes the connection in order. */
async function transferFrom(...messages: ReadonlyArray<Partial<Message>>): Promise<string[]> {
  listening = createServer((socket) => {
    const deframer = new Deframer()
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      deframer.push(chunk)
      const id = deframer.next()?.readUInt16BE(0)
      if (id === undefined) return
      for (const message of messages) {
        const whole = { id, flags: FLAG.QR | FLAG.AA, opcode: OPCODE.QUERY, rcode: 0, questions: [], answers: [] }
        socket.write(frame(encodeMessage({ ...whole, authorities: [], additionals: [], ...message })))
      }
      socket.end()
    })
  })
  listening.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const { port } = listening.address() as AddressInfo
  const client = createDnsClient({ timeoutMs: 5000 })
  const names: string[] = []
  for await (const each of client.transfer({ server: { address: '127.0.0.1', port }, zone: ZONE }))
    names.push(each.name)
  return names
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
})
