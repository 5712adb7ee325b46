/** Which packets the client takes for an answer, against servers that send wrong ones first. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { DnsError } from '../error.ts'
import { CLASS, OPCODE, RCODE, TYPE } from '../wire/codes.ts'
import { decodeMessage, encodeMessage, FLAG, type Message } from '../wire/message.ts'
import { fqdn } from '../wire/name.ts'
import { rdataFromText } from '../wire/rdata/grammar.ts'
import { recordText } from '../wire/record.ts'
import { createDnsClient } from './client.ts'

const open: Socket[] = []

afterEach(async () => {
  for (const socket of open.splice(0)) await new Promise<void>((resolve) => socket.close(() => resolve()))
})

/** A UDP server that sends the given packets for each message it receives. */
async function serve(reply: (query: Message, count: number) => readonly Message[]) {
  const socket = createSocket('udp4')
  open.push(socket)
  let count = 0
  socket.on('message', (bytes, source) => {
    const query = decodeMessage(bytes)
    if (query instanceof DnsError) throw query
    for (const message of reply(query, count++)) socket.send(encodeMessage(message), source.port, source.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { server: { address: '127.0.0.1', port: socket.address().port }, received: () => count }
}

const answer = (query: Message, address: string): Message => ({
  ...query,
  flags: FLAG.QR | FLAG.AA,
  answers: [{ name: 'www.test.', type: TYPE.A, class: CLASS.IN, ttl: 5, data: rdataFromText(TYPE.A, address) }],
})

describe('the client', () => {
  const client = createDnsClient({ timeoutMs: 5000, tries: 1 })
  const ask = async (server: { address: string; port: number }) => {
    const { message } = await client.query({ server, name: 'www.test', type: 'A' })
    return [message.rcode, ...message.answers.map((record) => recordText(record).split('\t').at(-1))]
  }

  it.each<[string, (query: Message) => Message]>([
    ['without its question', (query) => ({ ...answer(query, '198.51.100.1'), questions: [] })],
    ['REFUSED without its question', (query) => ({ ...query, flags: FLAG.QR, rcode: RCODE.REFUSED, questions: [] })],
    [
      'FORMERR without its question but with records',
      (query) => ({ ...answer(query, '198.51.100.1'), rcode: RCODE.FORMERR, questions: [] }),
    ],
    [
      'with two questions',
      (query) => ({ ...answer(query, '198.51.100.1'), questions: [...query.questions, ...query.questions] }),
    ],
    [
      'to another type',
      (query) => ({ ...answer(query, '198.51.100.1'), questions: [{ ...query.questions[0]!, type: TYPE.MX }] }),
    ],
    ['with another id', (query) => ({ ...answer(query, '198.51.100.1'), id: query.id ^ 1 })],
    ['that is a query', (query) => ({ ...answer(query, '198.51.100.1'), flags: 0 })],
  ])('ignores an answer %s and waits for the right one', async (_, forge) => {
    const { server } = await serve((query) => [forge(query), answer(query, '192.0.2.1')])
    expect(await ask(server)).toEqual([RCODE.NOERROR, '192.0.2.1'])
  })

  it('asks again without EDNS when a server cannot read the question', async () => {
    const { server, received } = await serve((query) => {
      const { edns, ...plain } = query
      return edns === undefined
        ? [answer(plain, '192.0.2.1')]
        : [{ ...plain, flags: FLAG.QR, rcode: RCODE.FORMERR, questions: [] }]
    })
    expect(await ask(server)).toEqual([RCODE.NOERROR, '192.0.2.1'])
    expect(received()).toBe(2)
  })

  it('ends by its deadline, and at once when it is aborted', async () => {
    const client = createDnsClient({ timeoutMs: 600_000 })
    const { server, received } = await serve(() => [])
    const question = { server, name: 'www.test', type: 'A' }
    await expect(client.query({ ...question, deadlineMs: 50 })).rejects.toMatchObject({ code: 'TIMEOUT' })
    const controller = new AbortController()
    const waiting = client.query({ ...question, signal: controller.signal })
    await expect.poll(received).toBe(2)
    controller.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'ABORTED' })
  })

  it('takes the answer to an update without its zone section (RFC 2136 §3.8)', async () => {
    const { server } = await serve((query) => [
      { ...query, opcode: OPCODE.UPDATE, flags: FLAG.QR, rcode: RCODE.REFUSED, questions: [], authorities: [] },
    ])
    const { message } = await client.update({
      server,
      zone: fqdn('test'),
      operations: [{ kind: 'delete-name', name: fqdn('www.test') }],
    })
    expect(message.rcode).toBe(RCODE.REFUSED)
  })
})
