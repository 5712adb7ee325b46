import { createServer as createHttp2Server, connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { createServer as createTcpServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, backend, forwardTo, irOf, listen, raw, route, start } from '../../testing/proxy-fixture.ts'
import type { Endpoint } from '../ir/endpoint.ts'
import type { Cluster, HeaderMutation, Route } from '../ir/model.ts'

/** A backend of HTTP/1 that answers every request with these octets. */
async function scripted(octets: string): Promise<Endpoint> {
  const server = createTcpServer((socket) => {
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write(octets))
  })
  return await listen(server)
}

interface Http2Backend extends Endpoint {
  readonly seen: IncomingHttpHeaders[]
}

async function http2Backend(): Promise<Http2Backend> {
  const seen: IncomingHttpHeaders[] = []
  const server = createHttp2Server()
  server.on('session', (session) => onTestFinished(() => session.destroy()))
  server.on('stream', (stream, headers) => {
    seen.push(headers)
    stream.respond({ ':status': 200 })
    stream.end('ok')
  })
  return { ...(await listen(server)), seen }
}

async function askHttp2(port: number, headers: Record<string, string> = {}): Promise<number | 'closed'> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  onTestFinished(() => session.destroy())
  return await new Promise((resolve) => {
    const stream = session.request({ ':authority': 'x.test', ...headers })
    stream.on('response', (received) => resolve(Number(received[':status'])))
    stream.on('error', () => undefined)
    stream.on('close', () => resolve('closed'))
    stream.resume()
  })
}

const only = (mutation: Partial<HeaderMutation>): HeaderMutation => ({ set: [], add: [], remove: [], ...mutation })

async function inFrontOf(one: Endpoint, cluster: Partial<Cluster> = {}, extra: Partial<Route> = {}): Promise<number> {
  const { port } = await start(irOf([route(forwardTo(['one']), extra)], [{ name: 'one', ...cluster }]), { one: [one] })
  return port
}

const KEPT = 'content-length: 2\r\n\r\nok'

describe('an answer that cannot be passed on', () => {
  it.each(['000', '001', '099', '101', '600', '999'])('with status %s is 502 for every client', async (status) => {
    const port = await inFrontOf(await scripted(`HTTP/1.1 ${status} x\r\n${KEPT}`))
    expect((await ask(port)).status).toBe(502)
    expect(await askHttp2(port)).toBe(502)
    expect(await raw(port, 'GET / HTTP/1.0\r\nhost: x.test\r\n\r\n')).toMatch(/^HTTP\/1\.1 502 /)
  })

  it.each(['600', '999', '099'])('with status %s of HTTP/2 is 502 for every client', async (status) => {
    const server = createHttp2Server()
    server.on('session', (session) => {
      onTestFinished(() => session.destroy())
      session.on('error', () => undefined)
    })
    server.on('stream', (stream) => {
      stream.on('error', () => undefined)
      // Past the checks of Node.
      const own = stream as unknown as { respond(headers: object): void }
      try {
        own.respond({ ':status': Number(status) })
      } catch {
        stream.close(2)
      }
      stream.end('ok')
    })
    const port = await inFrontOf(await listen(server), { protocol: 'h2c' })
    expect([502, 503]).toContain((await ask(port)).status)
    expect([502, 503]).toContain(await askHttp2(port))
  })

  it('that changes the protocol is 502', async () => {
    const port = await inFrontOf(await scripted('HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'))
    expect((await ask(port)).status).toBe(502)
    expect(await askHttp2(port)).toBe(502)
  })

  it('in an unknown transfer coding is 502', async () => {
    const port = await inFrontOf(
      await scripted('HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'),
    )
    expect((await ask(port)).status).toBe(502)
  })
})

describe('an answer with fields of its connection', () => {
  it.each(['http2-settings: AAMAAABk', 'keep-alive: timeout=5', 'proxy-connection: close', 'upgrade: h2c', 'te: gzip'])(
    'is passed on without %s',
    async (field) => {
      const port = await inFrontOf(await scripted(`HTTP/1.1 200 OK\r\n${field}\r\n${KEPT}`))
      expect(await askHttp2(port)).toBe(200)
      const { status, headers } = await ask(port)
      expect([status, headers[field.split(':', 1)[0] ?? '']]).toEqual([200, undefined])
    },
  )

  const TRAILERS =
    'HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n'

  it('and trailers reaches clients of HTTP/1.0, and of HEAD', async () => {
    const head = await inFrontOf(await scripted('HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ncontent-length: 2\r\n\r\n'))
    expect((await ask(head, '/', { method: 'HEAD' })).status).toBe(200)
    const port = await inFrontOf(await scripted(TRAILERS))
    expect(await raw(port, 'GET / HTTP/1.0\r\nhost: x.test\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 [^]*ok$/)
    expect(await askHttp2(port)).toBe(200)
    const announced = await ask(port)
    expect([announced.status, announced.headers['trailer'], announced.body]).toEqual([200, 'x-sum', 'ok'])
  })

  it.each(['connection: close', 'transfer-encoding: chunked', 'http2-settings: x', 'host: y'])(
    'in its trailers is passed on without %s',
    async (field) => {
      const port = await inFrontOf(
        await scripted(
          `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${field}\r\nx-sum: 1\r\n\r\n`,
        ),
      )
      expect(await askHttp2(port)).toBe(200)
      expect((await ask(port)).body).toBe('ok')
    },
  )
})

describe('a request', () => {
  it('with HTTP2-Settings reaches backends and mirrors of HTTP/2 without it', async () => {
    const [one, mirror] = [await http2Backend(), await http2Backend()]
    const { port } = await start(
      irOf(
        [route(forwardTo(['one'], { mirrors: [{ cluster: 'mirror', percent: 100 }] }))],
        [
          { name: 'one', protocol: 'h2c' },
          { name: 'mirror', protocol: 'h2c' },
        ],
      ),
      { one: [one], mirror: [mirror] },
    )
    expect((await ask(port, '/', { headers: { 'http2-settings': 'AAMAAABk' } })).status).toBe(200)
    await expect.poll(() => mirror.seen.length).toBe(1)
    for (const headers of [...one.seen, ...mirror.seen]) expect(headers['http2-settings']).toBeUndefined()
  })

  it.each(['constructor', 'toString', '__proto__', 'hasownproperty'])(
    'that has no field %s is compared with a condition on it',
    async (name) => {
      const one = await backend()
      const match = {
        path: { kind: 'prefix', value: '/' },
        headers: [{ name, kind: 'contains', value: 'x' }],
        query: [],
      } as const
      const { port } = await start(irOf([route(forwardTo(['one']), { match })]), { one: [one] })
      expect((await ask(port)).status).toBe(404)
    },
  )
})

const NAMES = [
  'connection',
  'transfer-encoding',
  'upgrade',
  'te',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'trailer',
  'content-length',
  'host',
  'user-agent',
  'content-type',
]
const CASES = NAMES.flatMap((name) =>
  (['set', 'add', 'remove'] as const).flatMap((how) =>
    (['http1', 'h2c'] as const).map((protocol) => [how, name, protocol] as const),
  ),
)

describe('a policy that the sources let through', () => {
  it.each(CASES)('to %s %s ends neither a request to %s nor the process', async (how, name, protocol) => {
    const one = protocol === 'h2c' ? await http2Backend() : await backend()
    const mutation = only(how === 'remove' ? { remove: [name] } : { [how]: [{ name, value: '5' }] })
    for (const extra of [{ requestHeaders: mutation }, { responseHeaders: mutation }]) {
      const port = await inFrontOf(one, { protocol }, extra)
      const headers = { 'user-agent': 'a', 'content-type': 'b' }
      expect((await ask(port, '/', { headers })).status).toBe(200)
      expect(await askHttp2(port, headers)).toBe(200)
      expect((await ask(port, '/', { method: 'POST', body: 'abc', headers })).status).toBe(200)
    }
    if ('begun' in one) {
      for (const { method, body } of one.seen) expect(body).toBe(method === 'POST' ? 'abc' : '')
    }
  })
})
