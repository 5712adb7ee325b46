import { connect } from 'node:http2'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, backend, forwardTo, irOf, raw, route, start, type TestBackend } from '../../../testing/proxy-fixture.ts'
import type { Action } from '../../ir/model.ts'

const INNER = 'GET /admin HTTP/1.1\r\nhost: x.test\r\n\r\n'
const METHODS = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'POST', 'PROPFIND']

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
const chunked = (method: string, more = ''): string =>
  `${method} /outer HTTP/1.1\r\nhost: x.test\r\n${more}transfer-encoding: chunked\r\n\r\n${chunk(INNER)}`
const measured = (method: string, more: string): string =>
  `${method} /outer HTTP/1.1\r\nhost: x.test\r\n${more}content-length: ${INNER.length}\r\n\r\n${INNER}`

const retry = { retry: { count: 1, on: ['5xx'], statusCodes: [] } } as const

async function overHttp1(port: number, octets: string): Promise<void> {
  // The second request on the connection makes the proxy close it.
  await raw(port, `${octets}GET /last HTTP/1.1\r\nhost: x.test\r\nconnection: close\r\n\r\n`)
}

async function overHttp2(port: number, method: string, headers: object = {}): Promise<void> {
  const session = connect(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  await new Promise<void>((resolve, reject) => {
    const stream = session.request(
      { ':method': method, ':path': '/outer', ':authority': 'x.test', ...headers },
      { endStream: false },
    )
    stream.on('error', reject)
    stream.on('close', resolve)
    stream.resume().end(INNER)
  })
}

interface Way {
  readonly name: string
  readonly send: (port: number, method: string) => Promise<void>
  readonly action?: Partial<Extract<Action, { kind: 'forward' }>>
}

const WAYS: readonly Way[] = [
  { name: 'chunks', send: async (port, method) => overHttp1(port, chunked(method)) },
  { name: 'a length', send: async (port, method) => overHttp1(port, measured(method, '')) },
  {
    name: 'a length that Connection names',
    send: async (port, method) => overHttp1(port, measured(method, 'connection: content-length\r\n')),
  },
  {
    name: 'chunks that Connection names',
    send: async (port, method) => overHttp1(port, chunked(method, 'connection: keep-alive, transfer-encoding\r\n')),
  },
  { name: 'data of HTTP/2 without a length', send: async (port, method) => overHttp2(port, method) },
  {
    name: 'data of HTTP/2 with a length',
    send: async (port, method) => overHttp2(port, method, { 'content-length': INNER.length }),
  },
  { name: 'chunks, kept for a retry', send: async (port, method) => overHttp1(port, chunked(method)), action: retry },
  {
    name: 'data of HTTP/2, kept for a retry',
    send: async (port, method) => overHttp2(port, method),
    action: retry,
  },
  {
    name: 'chunks, kept for a mirror',
    send: async (port, method) => overHttp1(port, chunked(method)),
    action: { mirrors: [{ cluster: 'mirror', percent: 100 }] },
  },
]

describe('a request with a body', () => {
  it.each(WAYS.flatMap((way) => METHODS.map((method) => [method, way.name, way] as const)))(
    '%s with %s is one request for every backend',
    async (method, _name, { send, action }) => {
      const echo = async (): Promise<TestBackend> =>
        backend(({ method: got, url }, respond) => {
          const attempts = one.seen.filter((each) => each.url === '/outer').length
          if (action === retry && url === '/outer' && attempts === 1) respond(503)
          else respond(200, { 'x-got': `${got} ${url}` })
        })
      const [one, mirror] = [await echo(), await echo()]
      const { port } = await start(
        irOf([route(forwardTo(['one'], action ?? {}))], [{ name: 'one' }, { name: 'mirror' }]),
        { one: [one], mirror: [mirror] },
      )
      await send(port, method)
      const next = await ask(port, '/next')
      expect(next.headers['x-got']).toBe('GET /next')
      for (const { seen } of [one, mirror]) {
        expect(seen.filter(({ url }) => url === '/admin')).toEqual([])
        for (const { url, method: got, body } of seen)
          if (url === '/outer') expect([got, body]).toEqual([method, INNER])
      }
      const outer = one.seen.filter(({ url }) => url === '/outer')
      expect(outer.length).toBe(action === retry ? 2 : 1)
    },
  )

  it.each([
    ['Host', 'connection: host\r\n'],
    ['Content-Length', 'connection: content-length\r\n'],
    ['Transfer-Encoding', 'connection: Transfer-Encoding\r\n'],
  ])('is sent on with what frames and routes it, although Connection names %s', async (_name, connection) => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    await overHttp1(port, `POST /outer HTTP/1.1\r\nhost: x.test\r\n${connection}content-length: 2\r\n\r\nab`)
    expect(one.seen[0]).toMatchObject({ url: '/outer', body: 'ab', headers: { host: 'x.test', 'content-length': '2' } })
  })
})

describe('a request that cannot be framed or routed', () => {
  it.each([
    [
      501,
      'a coding before the chunks',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    ],
    [501, 'identity', 'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: identity\r\n\r\n'],
    [
      501,
      'identity after the chunks',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    ],
    [501, 'a name like chunked', 'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n'],
    [
      501,
      'identity, and a second request',
      `GET / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: identity\r\n\r\n${INNER}`,
    ],
    [
      501,
      'another coding before a length',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc',
    ],
    [
      501,
      'another coding after a length',
      'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 3\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      501,
      'another coding with a length, and a second request with chunks',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: identity\r\ncontent-length: 3\r\n\r\nabc' +
        'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    [400, 'chunks in HTTP/1.0', 'POST / HTTP/1.0\r\nhost: x.test\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    [
      400,
      'a length and chunks',
      'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      400,
      'chunks and a length',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n',
    ],
    [400, 'a fragment', 'GET /a#b HTTP/1.1\r\nhost: x.test\r\n\r\n'],
    [400, 'a fragment in an absolute target', 'GET http://x.test#b HTTP/1.1\r\nhost: x.test\r\n\r\n'],
    [405, 'CONNECT', 'CONNECT x.test:443 HTTP/1.1\r\nhost: x.test\r\n\r\n'],
    [505, 'the version 2.0', 'GET / HTTP/2.0\r\nhost: x.test\r\n\r\n'],
    [505, 'the version 0.9', 'GET / HTTP/0.9\r\nhost: x.test\r\n\r\n'],
    [
      400,
      'a body before an upgrade',
      'GET / HTTP/1.1\r\nhost: x.test\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 3\r\n\r\nabc',
    ],
  ])('gets %i: %s', async (status, _name, octets) => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one'], { hasWebsocket: true }))]), { one: [one] })
    const answer = await raw(port, octets)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer.match(/HTTP\/1/g)).toHaveLength(1)
    expect(one.seen).toEqual([])
  })

  it('gets 400 over HTTP/2 for a fragment, and 405 for CONNECT', async () => {
    const { port } = await start(irOf([route(forwardTo(['one']))]), {})
    const session = connect(`http://127.0.0.1:${port}`)
    onTestFinished(() => session.destroy())
    const statusOf = async (headers: Record<string, string>): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ':authority': 'x.test', ...headers })
        stream.on('response', (received) => resolve(received[':status']))
        stream.on('error', reject)
        stream.resume().end()
      })
    expect(await statusOf({ ':path': '/a#b' })).toBe(400)
    expect(await statusOf({ ':method': 'CONNECT', ':authority': 'x.test:443' })).toBe(405)
  })
})
