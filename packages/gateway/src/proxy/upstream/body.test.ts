import { once } from 'node:events'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Endpoint } from '../../ir/endpoint.ts'
import type { Action } from '../../ir/model.ts'
import { joinSmall } from './body.ts'
import { ask, forwardTo, irOf, listen, route, start } from '../../../testing/proxy-fixture.ts'

const DECLARED = 60
const SENT = '0123456789'

interface Watched extends Endpoint {
  /** What came that was neither a head nor a body that was declared: the beginning of what another client sent. */
  readonly requests: () => readonly string[]
  /** Requests whose body ended as a complete one. */
  readonly completed: () => readonly string[]
  readonly open: () => number
}

type When = 'early' | 'late'

/** Honours lengths and chunks, and keeps its connections. Answers at the head, or at the end of the request. */
async function http1Backend(when: When): Promise<Watched> {
  const requests: string[] = []
  const completed: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    const answer = (line: string) =>
      void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-line: ${line}\r\n\r\nok`)
    let text = ''
    let line: string | undefined
    let left = 0
    let isChunked = false
    const readBody = (): boolean => {
      if (isChunked) {
        const end = text.indexOf('0\r\n\r\n')
        if (end < 0) return false
        text = text.slice(end + 5)
        return true
      }
      const taken = Math.min(left, text.length)
      text = text.slice(taken)
      return (left -= taken) === 0
    }
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part
      for (;;) {
        if (line === undefined) {
          const end = text.indexOf('\r\n\r\n')
          if (end < 0) return
          const head = text.slice(0, end)
          text = text.slice(end + 4)
          line = head.split('\r\n', 1)[0] ?? ''
          requests.push(line)
          left = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
          isChunked = /transfer-encoding: chunked/i.test(head)
          if (when === 'early') answer(line)
        }
        if (!readBody()) return
        completed.push(line)
        if (when === 'late') answer(line)
        line = undefined
      }
    })
  })
  const at = await listen(server)
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()))
  return { ...at, requests: () => requests, completed: () => completed, open: () => sockets.size }
}

async function http2Backend(when: When): Promise<Watched> {
  const requests: string[] = []
  const completed: string[] = []
  const streams = new Set<ServerHttp2Stream>()
  const server = createHttp2Server()
  server.on('session', (session) => onTestFinished(() => session.destroy()))
  server.on('stream', (stream, headers) => {
    const line = `${headers[':method']} ${headers[':path']} HTTP/1.1`
    requests.push(line)
    streams.add(stream)
    const answer = () => {
      stream.respond({ ':status': 200, 'x-line': line })
      stream.end('ok')
    }
    stream.on('error', () => undefined)
    stream.on('close', () => streams.delete(stream))
    stream.resume().on('end', () => {
      // The only sign of a body that is not complete.
      if (stream.rstCode !== 0) return
      completed.push(line)
      if (when === 'late' && !stream.destroyed) answer()
    })
    if (when === 'early') answer()
  })
  const at = await listen(server)
  return { ...at, requests: () => requests, completed: () => completed, open: () => streams.size }
}

/** Sends a part of a body and goes away; `untilAnswered`: after the answer. */
type Leave = (port: number, body: 'measured' | 'unmeasured', reached: () => Promise<void>) => Promise<void>

function http1Client(leave: (socket: Socket) => void): Leave {
  return async (port, body, reached) => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined)
    const framing = body === 'measured' ? `content-length: ${DECLARED}` : 'transfer-encoding: chunked'
    const octets = body === 'measured' ? SENT : `a\r\n${SENT}\r\n`
    socket.resume().write(`POST /outer HTTP/1.1\r\nhost: x.test\r\n${framing}\r\n\r\n${octets}`)
    await reached()
    leave(socket)
  }
}

function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** Literals without indexing (RFC 7541 §6.2.2), each shorter than 127 octets. */
function headerBlock(fields: Readonly<Record<string, string>>): Buffer {
  const texts = Object.entries(fields).flatMap(([name, value]) => [name, value])
  return Buffer.concat(
    texts.flatMap((text, index) => [
      Buffer.from(index % 2 === 0 ? [0, text.length] : [text.length]),
      Buffer.from(text, 'latin1'),
    ]),
  )
}

/** Frame by frame: the client of Node ends a stream before it resets it. */
function http2Client(leave: 'reset' | 'fin' | number): Leave {
  return async (port, body, reached) => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined).resume()
    const headers = { ':method': 'POST', ':scheme': 'http', ':path': '/outer', ':authority': 'x.test' }
    const length = body === 'measured' ? { 'content-length': String(DECLARED) } : {}
    const octets = [
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      frame(4, 0, 0),
      frame(1, 4, 1, headerBlock({ ...headers, ...length })),
      frame(0, 0, 1, Buffer.from(SENT)),
    ]
    socket.write(Buffer.concat(octets))
    await reached()
    if (leave === 'reset') socket.resetAndDestroy()
    else if (leave === 'fin') socket.end()
    else socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, leave])))
  }
}

const CLIENTS: readonly (readonly [string, Leave])[] = [
  ['HTTP/1 FIN', http1Client((socket) => socket.end())],
  ['HTTP/1 reset', http1Client((socket) => void socket.resetAndDestroy())],
  ['HTTP/2 RST_STREAM NO_ERROR', http2Client(0)],
  ['HTTP/2 RST_STREAM STREAM_CLOSED', http2Client(5)],
  ['HTTP/2 RST_STREAM CANCEL', http2Client(8)],
  ['HTTP/2 FIN', http2Client('fin')],
  ['HTTP/2 reset', http2Client('reset')],
]
const BACKENDS = [
  ['http1', http1Backend],
  ['h2c', http2Backend],
] as const
const CASES = CLIENTS.flatMap(([name, leave]) =>
  BACKENDS.flatMap(([protocol, open]) =>
    (['early', 'late'] as const).flatMap((when) =>
      (['measured', 'unmeasured'] as const).map((body) => ({ name, leave, protocol, open, when, body })),
    ),
  ),
)

describe('a client that leaves in the middle of its body', () => {
  it.each(CASES)(
    '$name, $protocol backend that answers $when, $body body: the next request is served as it is, and nothing stays open',
    async ({ leave, protocol, open, when, body }) => {
      const one = await open(when)
      const { port } = await start(irOf([route(forwardTo(['one']))], [{ name: 'one', protocol }]), { one: [one] })
      await leave(port, body, async () => {
        await expect.poll(one.requests).toEqual(['POST /outer HTTP/1.1'])
      })
      // Requests one after another: one of them would get the connection.
      for (let index = 0; index < 3; index++)
        expect((await ask(port, '/next')).headers['x-line']).toBe('GET /next HTTP/1.1')
      await expect.poll(one.open).toBeLessThanOrEqual(protocol === 'http1' ? 1 : 0)
      expect(one.requests().slice(1)).toEqual(Array.from({ length: 3 }, () => 'GET /next HTTP/1.1'))
      expect(one.completed()).not.toContain('POST /outer HTTP/1.1')
    },
  )

  const POLICIES: readonly (readonly [string, Partial<Extract<Action, { kind: 'forward' }>>])[] = [
    ['a retry', { retry: { count: 1, on: ['5xx'], statusCodes: [] } }],
    ['a mirror', { mirrors: [{ cluster: 'mirror', percent: 100 }] }],
  ]
  const KEPT = CLIENTS.flatMap(([name, leave]) => POLICIES.map(([kept, policy]) => ({ name, leave, kept, policy })))
  it.each(KEPT)('$name: its body, kept for $kept, is sent to nobody', async ({ leave, policy }) => {
    const [one, mirror] = [await http1Backend('late'), await http1Backend('late')]
    const clusters = [{ name: 'one' }, { name: 'mirror' }]
    const { port } = await start(irOf([route(forwardTo(['one'], policy))], clusters), { one: [one], mirror: [mirror] })
    await leave(port, 'unmeasured', async () => {
      // The proxy has read what came before on another connection.
      await ask(port, '/next')
    })
    for (let index = 0; index < 3; index++) await ask(port, '/next')
    expect([...one.requests(), ...mirror.requests()]).not.toContain('POST /outer HTTP/1.1')
  })
})

it('an early answer ends the request to the backend: clients that leave then keep no connection open', async () => {
  const one = await http1Backend('early')
  const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
  for (let index = 0; index < 50; index++) {
    const socket = connect({ host: '127.0.0.1', port })
    socket.write(`POST /outer HTTP/1.1\r\nhost: x.test\r\ncontent-length: ${DECLARED}\r\n\r\n${SENT}`)
    await once(socket, 'data')
    socket.destroy()
  }
  await expect.poll(one.open).toBe(0)
})

it('a client whose request was answered early may complete it and send the next one', async () => {
  const one = await http1Backend('early')
  const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
  const socket = connect({ host: '127.0.0.1', port })
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('latin1').on('data', (part: string) => (text += part))
  socket.write(`POST /outer HTTP/1.1\r\nhost: x.test\r\ncontent-length: ${DECLARED}\r\n\r\n${SENT}`)
  await expect.poll(() => text).toContain('x-line: POST /outer')
  socket.write(`${'x'.repeat(DECLARED - SENT.length)}GET /second HTTP/1.1\r\nhost: x.test\r\n\r\n`)
  await expect.poll(() => text).toContain('x-line: GET /second')
  expect(one.requests()).toEqual(['POST /outer HTTP/1.1', 'GET /second HTTP/1.1'])
})

it('small chunks are joined in their order, and large ones stay as they are', () => {
  const taken: Buffer[] = []
  const { add, flush } = joinSmall((chunk) => void taken.push(chunk))
  const octets = Array.from({ length: 1_000 }, (_, index) => Buffer.from(String(index % 10)))
  expect(octets.filter((octet) => add(octet))).toHaveLength(4)
  const large = Buffer.alloc(4_096, 'x')
  expect(add(large)).toBe(false)
  expect(taken.at(-1)).toBe(large)
  add(Buffer.from('end'))
  flush()
  flush()
  expect(taken).toHaveLength(6)
  expect(Buffer.concat(taken).toString()).toBe(`${'0123456789'.repeat(100)}${'x'.repeat(4_096)}end`)
})
