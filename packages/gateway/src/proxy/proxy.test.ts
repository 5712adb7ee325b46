import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { connect, type AddressInfo, type Server } from 'node:net'
import { systemClock } from '@seamark/kube'
import { afterEach, describe, expect, it } from 'vitest'
import type { Action, Cluster, Ir, Route } from '../ir/model.ts'
import type { Endpoint } from './clusters.ts'
import { createProxy, type Proxy, type ProxyOptions } from './proxy.ts'

type Respond = (status: number, headers?: Record<string, string>, body?: string) => void
type Behaviour = (request: IncomingMessage & { text: string }, respond: Respond, attempt: number) => void

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function listen(server: Server): Promise<Endpoint> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(async () => new Promise((resolve) => server.close(resolve)))
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

interface TestBackend extends Endpoint {
  readonly seen: { url: string; headers: IncomingHttpHeaders; body: string; method: string }[]
  /** How many requests began. */
  readonly begun: () => number
  /** How many requests ended before they were complete. */
  readonly aborted: () => number
}

async function backend(behave: Behaviour = (_request, respond) => respond(200)): Promise<TestBackend> {
  const seen: TestBackend['seen'] = []
  let [begun, aborted] = [0, 0]
  const server = createServer((request, response) => {
    let text = ''
    begun++
    request.on('close', () => {
      if (!request.complete) aborted++
    })
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      seen.push({ url: request.url ?? '', headers: request.headers, body: text, method: request.method ?? '' })
      behave(
        Object.assign(request, { text }),
        (status, headers = {}, body = 'ok') => {
          response.writeHead(status, headers)
          response.end(body)
        },
        seen.length,
      )
    })
  })
  const at = await listen(server)
  cleanups.push(async () => server.closeAllConnections())
  return { ...at, seen, begun: () => begun, aborted: () => aborted }
}

type Forward = Extract<Action, { kind: 'forward' }>

function forwardTo(clusters: readonly string[], extra: Partial<Forward> = {}): Forward {
  return {
    kind: 'forward',
    backends: clusters.map((cluster) => ({ cluster, weight: 1 })),
    mirrors: [],
    hash: [],
    timeoutMs: 15_000,
    idleTimeoutMs: 0,
    hasWebsocket: false,
    ...extra,
  }
}

function route(action: Action, extra: Partial<Route> = {}): Route {
  return {
    match: { path: { kind: 'prefix', value: '/' }, headers: [], query: [] },
    action,
    upgradesToHttps: false,
    origin: { kind: 'HTTPProxy', namespace: 'a', name: 'x', at: 'spec.routes[0]' },
    order: '',
    ...extra,
  }
}

function irOf(routes: readonly Route[], clusters: readonly Partial<Cluster>[] = [{ name: 'one' }]): Ir {
  return {
    listeners: [{ protocol: 'http', hosts: [{ host: 'x.test', routes }] }],
    clusters: clusters.map((each) => ({
      name: 'one',
      upstream: { kind: 'endpoints', name: each.name ?? 'one' },
      protocol: 'http1',
      balancing: 'roundRobin',
      connectTimeoutMs: 2_000,
      ...each,
    })),
    certificates: [],
  }
}

async function start(
  ir: Ir,
  endpoints: Record<string, readonly Endpoint[]>,
  options: Partial<ProxyOptions> = {},
): Promise<{ proxy: Proxy; port: number }> {
  const proxy = createProxy({
    http: { host: '127.0.0.1', port: 0 },
    endpoints: (name) => endpoints[name] ?? [],
    ...options,
  })
  proxy.apply(ir)
  const { http } = await proxy.listen()
  cleanups.push(async () => proxy.close(0))
  return { proxy, port: http?.port ?? 0 }
}

interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

async function ask(
  port: number,
  path = '/',
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options
    const call = httpRequest(
      { host: '127.0.0.1', port, path, method, headers: { host: 'x.test', ...headers }, agent: false },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
        response.on('error', reject)
      },
    )
    call.on('error', reject)
    call.end(body)
  })
}

/** Sends octets and reads until the proxy closes the connection. */
async function raw(port: number, octets: string): Promise<string> {
  return await new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(octets))
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    socket.on('close', () => resolve(text))
    socket.on('error', () => undefined)
  })
}

describe('the built-in proxy', () => {
  it('does not open its port before it has a configuration', async () => {
    const proxy = createProxy({ http: { host: '127.0.0.1', port: 0 }, endpoints: () => [] })
    await expect(proxy.listen()).rejects.toThrow(/no configuration/)
  })

  it('forwards method, body and headers, and says who asked', async () => {
    const one = await backend((request, respond) => respond(201, { 'x-answer': 'yes' }, request.text.toUpperCase()))
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const answer = await ask(port, '/p?q=1', {
      method: 'POST',
      body: 'hello',
      headers: { 'x-a': 'b', connection: 'x-a', 'x-forwarded-proto': 'https' },
    })
    expect(answer).toMatchObject({ status: 201, body: 'HELLO', headers: { 'x-answer': 'yes' } })
    const [seen] = one.seen
    expect(seen).toMatchObject({ url: '/p?q=1', method: 'POST', body: 'hello' })
    expect(seen?.headers).toMatchObject({ host: 'x.test', 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' })
    // Named by Connection: meant for this hop only.
    expect(seen?.headers['x-a']).toBeUndefined()
  })

  it('answers 404 for unknown hosts and 503 without endpoints', async () => {
    const { port } = await start(irOf([route(forwardTo(['one']))]), {})
    expect((await ask(port, '/', { headers: { host: 'y.test' } })).status).toBe(404)
    expect(await ask(port)).toMatchObject({ status: 503, body: 'no healthy upstream' })
  })

  it('divides requests by weight', async () => {
    const [one, two] = [await backend(), await backend()]
    const action = forwardTo([], {
      backends: [
        { cluster: 'one', weight: 90 },
        { cluster: 'two', weight: 10 },
      ],
    })
    let step = 0
    const { port } = await start(
      irOf([route(action)], [{ name: 'one' }, { name: 'two' }]),
      { one: [one], two: [two] },
      { random: () => (step++ % 100) / 100 },
    )
    for (let count = 0; count < 100; count++) await ask(port)
    expect([one.seen.length, two.seen.length]).toEqual([90, 10])
  })

  it('answers 500 for the share of backends that do not exist', async () => {
    const one = await backend()
    const { port } = await start(
      irOf([route(forwardTo(['one'], { invalidWeight: 1 }))]),
      { one: [one] },
      { random: () => 0.9 },
    )
    expect((await ask(port)).status).toBe(500)
  })

  it('rewrites prefixes and hosts, and sets, adds and removes headers with variables', async () => {
    const one = await backend((_request, respond) => respond(200, { 'x-secret': '1' }))
    const { port } = await start(
      irOf([
        route(forwardTo(['one'], { rewrite: { kind: 'prefix', value: '/new' }, host: 'inner.test' }), {
          match: { path: { kind: 'segment', value: '/old' }, headers: [], query: [] },
          requestHeaders: {
            set: [
              { name: 'x-from', value: '%REQ(x-a)% %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% 100%%' },
              { name: 'x-none', value: '%REQ(nope)%' },
            ],
            add: [],
            remove: ['x-b'],
          },
          responseHeaders: { set: [], add: [{ name: 'x-more', value: '1' }], remove: ['x-secret'] },
        }),
      ]),
      { one: [one] },
    )
    const answer = await ask(port, '/old/path', { headers: { 'x-a': 'v', 'x-b': 'w', 'x-none': 'client' } })
    expect(one.seen[0]).toMatchObject({
      url: '/new/path',
      headers: { host: 'inner.test', 'x-from': 'v 127.0.0.1 100%' },
    })
    expect(one.seen[0]?.headers['x-b']).toBeUndefined()
    expect(one.seen[0]?.headers['x-none']).toBeUndefined()
    expect(answer.headers).toMatchObject({ 'x-more': '1' })
    expect(answer.headers['x-secret']).toBeUndefined()
    expect((await ask(port, '/older')).status).toBe(404)
  })

  it('redirects with the port of the Host unless it names a host or a port, and to HTTPS before the action', async () => {
    const at = (value: string) => ({ match: { path: { kind: 'prefix' as const, value }, headers: [], query: [] } })
    const there = { kind: 'full', value: '/there' } as const
    const { port } = await start(
      irOf([
        route({ kind: 'redirect', status: 302, host: 'y.test', path: there }, at('/host')),
        route({ kind: 'redirect', status: 302, path: there }, at('/path')),
        route({ kind: 'redirect', status: 302, host: 'y.test', port: 80 }, at('/default')),
        route({ kind: 'redirect', status: 302, port: 8443 }, at('/port')),
        route({ kind: 'direct', status: 418, body: 'tea' }, { upgradesToHttps: true }),
      ]),
      {},
    )
    const location = async (path: string, host: string) =>
      (await ask(port, path, { headers: { host } })).headers.location
    expect(await location('/host?x=1', 'x.test:8080')).toBe('http://y.test/there?x=1')
    expect(await location('/path?x=1', 'x.test:8080')).toBe('http://x.test:8080/there?x=1')
    expect(await location('/path', 'x.test:80')).toBe('http://x.test:80/there')
    expect(await location('/default', 'x.test:8080')).toBe('http://y.test/default')
    expect(await location('/port', 'x.test:8080')).toBe('http://x.test:8443/port')
    expect(await location('/s', 'x.test:80')).toBe('https://x.test/s')
    expect(await location('/s', 'x.test:8080')).toBe('https://x.test:8080/s')
  })

  it('sends texts of policies as UTF-8, whatever their characters', async () => {
    const one = await backend()
    const mutation = { set: [{ name: 'x-text', value: 'é→' }], add: [], remove: [] }
    const { port } = await start(
      irOf([route(forwardTo(['one']), { requestHeaders: mutation, responseHeaders: mutation })]),
      { one: [one] },
    )
    const answer = await ask(port)
    const utf8 = (text: unknown) => Buffer.from(String(text), 'latin1').toString()
    expect(utf8(one.seen[0]?.headers['x-text'])).toBe('é→')
    expect(utf8(answer.headers['x-text'])).toBe('é→')
  })

  it('retries failures on another endpoint, with the body, and not more often than allowed', async () => {
    const bad = await backend((_request, respond) => respond(503))
    const good = await backend((request, respond) => respond(200, {}, request.text))
    const action = forwardTo(['one'], { retry: { count: 1, on: ['5xx'], statusCodes: [] } })
    const { port } = await start(irOf([route(action)]), { one: [bad, good] })
    for (let count = 0; count < 4; count++)
      expect(await ask(port, '/', { method: 'POST', body: 'b' })).toMatchObject({ status: 200, body: 'b' })
    const only = await start(irOf([route(action)]), { one: [bad] })
    const before = bad.seen.length
    expect((await ask(only.port)).status).toBe(503)
    expect(bad.seen.length - before).toBe(2)
  })

  it('answers 504 when the backend takes longer than the timeout', async () => {
    const one = await backend(() => undefined)
    const clock = manualClock()
    const { port } = await start(irOf([route(forwardTo(['one'], { timeoutMs: 1_000 }))]), { one: [one] }, { clock })
    const asking = ask(port)
    await expect.poll(() => one.seen.length).toBe(1)
    clock.advance(1_000)
    expect(await asking).toMatchObject({ status: 504, body: 'upstream request timeout' })
  })

  it('answers 503 when nobody listens, and does not fail later requests', async () => {
    const one = await backend()
    const gone = await backend()
    const endpoints: Record<string, Endpoint[]> = { one: [{ host: '127.0.0.1', port: 1 }] }
    void gone
    const { port } = await start(irOf([route(forwardTo(['one']))]), endpoints)
    expect((await ask(port)).status).toBe(503)
    endpoints['one'] = [one]
    expect((await ask(port)).status).toBe(200)
  })

  it('does not take its own standstill for a backend that cannot be connected to', async () => {
    const one = await backend()
    const stall = () => {
      const until = performance.now() + 60
      while (performance.now() < until);
    }
    const random = () => {
      // After the connection was begun, before its event is read.
      setImmediate(stall)
      return 0
    }
    const cluster = { name: 'one', connectTimeoutMs: 20 }
    const { port } = await start(irOf([route(forwardTo(['one']))], [cluster]), { one: [one] }, { random })
    expect((await ask(port)).status).toBe(200)
  })

  it('copies requests to a mirror with another host and ignores its answer', async () => {
    const [one, shadow] = [await backend(), await backend((_request, respond) => respond(500))]
    const { port } = await start(
      irOf(
        [route(forwardTo(['one'], { mirrors: [{ cluster: 'shadow', percent: 100 }] }))],
        [{ name: 'one' }, { name: 'shadow' }],
      ),
      { one: [one], shadow: [shadow] },
    )
    expect((await ask(port, '/m', { method: 'POST', body: 'copy' })).status).toBe(200)
    await expect.poll(() => shadow.seen.length).toBe(1)
    expect(shadow.seen[0]).toMatchObject({ url: '/m', body: 'copy', headers: { host: 'x.test-shadow' } })
  })

  it('speaks HTTP/2 to backends that ask for it, trailers included', async () => {
    const server = createHttp2Server()
    server.on('stream', (stream, headers) => {
      stream.respond({ ':status': 200, path: headers[':path'] ?? '' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end('two')
    })
    const at = await listen(server)
    const { port } = await start(irOf([route(forwardTo(['one']))], [{ name: 'one', protocol: 'h2c' }]), { one: [at] })
    expect(await ask(port, '/h2')).toMatchObject({ status: 200, body: 'two', headers: { path: '/h2' } })
  })

  it('keeps a client on one endpoint by cookie', async () => {
    const [one, two] = [
      await backend((_r, respond) => respond(200, {}, '1')),
      await backend((_r, respond) => respond(200, {}, '2')),
    ]
    const action = forwardTo(['one'], { hash: [{ kind: 'cookie', name: 'sticky' }] })
    const { port } = await start(irOf([route(action)], [{ name: 'one', balancing: 'hash' }]), { one: [one, two] })
    const first = await ask(port)
    const cookie = first.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    expect(cookie).toMatch(/^sticky=/)
    for (let count = 0; count < 5; count++)
      expect((await ask(port, '/', { headers: { cookie } })).body).toBe(first.body)
  })

  it('takes endpoints that fail their health check out, and back in', async () => {
    let isSick = true
    const sick = await backend((request, respond) =>
      respond(request.url === '/health' && isSick ? 500 : 200, {}, 'sick'),
    )
    const fit = await backend((_request, respond) => respond(200, {}, 'fit'))
    const clock = manualClock()
    const healthCheck = {
      path: '/health',
      host: 'h',
      intervalMs: 1_000,
      timeoutMs: 500,
      unhealthyThreshold: 1,
      healthyThreshold: 1,
      expectedStatuses: [],
    }
    const { port } = await start(
      irOf([route(forwardTo(['one']))], [{ name: 'one', healthCheck }]),
      { one: [sick, fit] },
      { clock },
    )
    const answers = async () => new Set([(await ask(port)).body, (await ask(port)).body, (await ask(port)).body])
    await expect.poll(answers).toEqual(new Set(['fit']))
    isSick = false
    clock.advance(1_000)
    await expect.poll(answers).toEqual(new Set(['fit', 'sick']))
  })

  it('answers preflights for allowed origins and limits rates', async () => {
    const cors = {
      allowOrigins: [{ kind: 'exact' as const, value: 'https://ok.test' }],
      allowMethods: ['GET'],
      allowHeaders: [],
      exposeHeaders: [],
      allowCredentials: true,
    }
    const rateLimit = {
      tokens: 1,
      burst: 2,
      intervalMs: 60_000,
      status: 429,
      headers: [{ name: 'x-limited', value: 'yes' }],
    }
    const limited = route(
      { kind: 'direct', status: 200, body: '' },
      { rateLimit, match: { path: { kind: 'prefix', value: '/l' }, headers: [], query: [] } },
    )
    const { port } = await start(
      irOf([limited, route({ kind: 'direct', status: 200, body: '' }, { cors })]),
      {},
      { clock: manualClock() },
    )
    const preflight = (origin: string) =>
      ask(port, '/', { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'GET' } })
    expect((await preflight('https://ok.test')).headers).toMatchObject({
      'access-control-allow-origin': 'https://ok.test',
      'access-control-allow-credentials': 'true',
    })
    expect((await preflight('https://evil.test')).headers['access-control-allow-origin']).toBeUndefined()
    const statuses = [await ask(port, '/l'), await ask(port, '/l'), await ask(port, '/l')]
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(statuses[2]?.headers['x-limited']).toBe('yes')
  })

  it('uses a new configuration for the next request of an established connection', async () => {
    const { proxy, port } = await start(irOf([route({ kind: 'direct', status: 200, body: 'old' })]), {})
    const socket = connect({ host: '127.0.0.1', port })
    cleanups.push(async () => void socket.destroy())
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    socket.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n')
    await expect.poll(() => text).toMatch(/old$/)
    proxy.apply(irOf([route({ kind: 'direct', status: 200, body: 'new' })]))
    socket.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n')
    await expect.poll(() => text).toMatch(/new$/)
  })

  it.each([
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x.test\r\n\r\n',
    ],
    ['two lengths', 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde'],
    ['an unknown coding', 'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n'],
    ['a space before the colon', 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length : 3\r\n\r\nabc'],
    ['bare line feeds', 'GET / HTTP/1.1\nhost: x.test\nx: y\n\n'],
    ['two hosts', 'GET / HTTP/1.1\r\nhost: x.test\r\nhost: y.test\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
    [
      'a coding twice',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n',
    ],
    [
      'a coding that only looks like chunked',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n',
    ],
    ['a length that is no number', 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: +3\r\n\r\nabc'],
    [
      'a size of a chunk that is no number',
      'POST / HTTP/1.1\r\nhost: x.test\r\ntransfer-encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n',
    ],
    ['a bare carriage return', 'GET / HTTP/1.1\r\nhost: x.test\r\na: b\rc: d\r\n\r\n'],
    ['a null in a field', 'GET / HTTP/1.1\r\nhost: x.test\r\na: b\0c\r\n\r\n'],
  ])('refuses a request with %s, and forwards nothing of it', async (_name, octets) => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const answer = await raw(port, octets)
    expect(answer).toMatch(/^HTTP\/1\.1 400/)
    expect(one.seen.filter(({ url }) => url.includes('smuggled'))).toEqual([])
  })

  it('takes the host of an absolute target, not of the Host header', async () => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const answer = await raw(port, 'GET http://x.test/abs HTTP/1.1\r\nhost: y.test\r\nconnection: close\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200/)
    expect(one.seen[0]).toMatchObject({ url: '/abs', headers: { host: 'x.test' } })
  })

  it('refuses too many and too large header fields', async () => {
    const { port } = await start(irOf([route({ kind: 'direct', status: 200, body: '' })]), {})
    const many = Array.from({ length: 101 }, (_, index) => `x-${index}: 1\r\n`).join('')
    expect(await raw(port, `GET / HTTP/1.1\r\nhost: x.test\r\n${many}\r\n`)).toMatch(/^HTTP\/1\.1 431/)
    expect(await raw(port, `GET / HTTP/1.1\r\nhost: x.test\r\nx: ${'y'.repeat(70_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431/,
    )
  })

  it('passes bodies on that are too large to be sent again, whatever the policy of the route', async () => {
    const failing = await backend((_request, respond) => respond(503))
    const action = forwardTo(['one'], { retry: { count: 3, on: ['5xx'], statusCodes: [] } })
    const { port } = await start(irOf([route(action)]), { one: [failing] })
    const body = 'x'.repeat(3 * 1_048_576)
    expect((await ask(port, '/', { method: 'POST', body })).status).toBe(503)
    expect(failing.seen.map((each) => each.body.length)).toEqual([body.length])
    expect((await ask(port, '/', { method: 'POST', body: 'small' })).status).toBe(503)
    expect(failing.seen).toHaveLength(5)
  })

  it('counts the timeout of a response from the end of the request', async () => {
    const clock = manualClock()
    const one = await backend((request, respond) => respond(200, {}, request.text))
    const { port } = await start(irOf([route(forwardTo(['one'], { timeoutMs: 100 }))]), { one: [one] }, { clock })
    const socket = connect({ host: '127.0.0.1', port })
    cleanups.push(async () => void socket.destroy())
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    socket.write('POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 4\r\nconnection: close\r\n\r\nab')
    await expect.poll(() => one.begun()).toBe(1)
    clock.advance(1_000)
    socket.write('cd')
    await expect.poll(() => text).toMatch(/^HTTP\/1\.1 200 .*abcd/s)
  })

  it.each([
    ['streamed', {}],
    ['kept for a retry', { retry: { count: 1, on: ['5xx'], statusCodes: [] } }],
  ])('answers 408 to a client that stops in the middle of a body that is %s', async (_name, policy) => {
    const clock = manualClock()
    const one = await backend()
    const action = forwardTo(['one'], { idleTimeoutMs: 100, ...policy })
    const { port } = await start(irOf([route(action)]), { one: [one] }, { clock })
    const socket = connect({ host: '127.0.0.1', port })
    let text = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    const closed = once(socket, 'close')
    const head = 'POST / HTTP/1.1\r\nhost: x.test\r\ncontent-length: 4\r\n\r\n'
    socket.write(`${head}ab`)
    await expect.poll(() => clock.pending()).toBeGreaterThan(0)
    // Octets that arrived since the last look count.
    clock.advance(100)
    clock.advance(100)
    await closed
    expect(text).toMatch(/^HTTP\/1\.1 408 /)
    expect(one.seen).toEqual([])
    await expect.poll(() => one.aborted()).toBe(one.begun())
  })

  it('ends the request to the backend when the client goes away', async () => {
    let isAborted = false
    const one = await backend((request) => {
      request.socket.on('close', () => (isAborted = true))
    })
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const call = httpRequest({ host: '127.0.0.1', port, headers: { host: 'x.test' }, agent: false })
    call.on('error', () => undefined)
    call.end()
    await expect.poll(() => one.seen.length).toBe(1)
    call.destroy()
    await expect.poll(() => isAborted).toBe(true)
  })
})

/** Timers run when the test says so. */
function manualClock() {
  let now = 0
  const timers = new Set<{ at: number; run: () => void }>()
  return {
    now: () => systemClock.now(),
    monotonic: () => now,
    after(ms: number, run: () => void) {
      const timer = { at: now + ms, run }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    pending: () => timers.size,
    advance(ms: number) {
      now += ms
      for (const timer of timers) {
        if (timer.at > now) continue
        timers.delete(timer)
        timer.run()
      }
    },
  }
}

describe('HTTP/2 without TLS', () => {
  it('is served on the port of HTTP/1.1', async () => {
    const one = await backend((request, respond) =>
      respond(200, {}, `${request.method} ${request.url} ${request.text}`),
    )
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    cleanups.push(async () => session.destroy())
    const stream = session.request({ ':method': 'POST', ':path': '/a', ':authority': 'x.test' })
    stream.end('body')
    let text = ''
    for await (const chunk of stream.setEncoding('utf8')) text += String(chunk)
    expect(text).toBe('POST /a body')
  })

  it('answers 408 to a client that stops in the middle of a body', async () => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one'], { idleTimeoutMs: 20 }))]), { one: [one] })
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    cleanups.push(async () => session.destroy())
    const stream = session.request({ ':method': 'POST', ':authority': 'x.test' }, { endStream: false })
    stream.on('error', () => undefined)
    stream.write('ab')
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect(headers[':status']).toBe(408)
  })

  it('is not confused with a method of HTTP/1.1 that starts alike and arrives in pieces', async () => {
    const { port } = await start(irOf([route({ kind: 'direct', status: 200, body: 'ok' })]), {})
    const answer = await new Promise<string>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true }, () =>
        socket.write('P', () => socket.write('RI / HTTP/1.1\r\nhost: x.test\r\nconnection: close\r\n\r\n')),
      )
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      socket.on('close', () => resolve(text))
      socket.on('error', () => undefined)
    })
    // There is no method PRI.
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect((await ask(port, '/', { method: 'PUT' })).status).toBe(200)
  })
})

describe('circuit breakers', () => {
  /** A backend that answers when it is told to. */
  async function heldBackend() {
    const held: (() => void)[] = []
    const at = await backend((_request, respond) => held.push(() => respond(200)))
    return { at, held }
  }
  const until = async (isDone: () => boolean) => {
    while (!isDone()) await new Promise((resolve) => setImmediate(resolve))
  }

  it('maxConnections lets requests wait, and maxPendingRequests refuses those beyond', async () => {
    const { at, held } = await heldBackend()
    const breakers = { name: 'one', circuitBreakers: { maxConnections: 1, maxPendingRequests: 1 } }
    const { port } = await start(irOf([route(forwardTo(['one']))], [breakers]), { one: [at] })
    const first = ask(port)
    await until(() => held.length === 1)
    const results = [ask(port), ask(port)]
    // Whichever arrives second is refused at once; the other one waits for the connection.
    const refused = await Promise.race(results)
    expect(refused.status).toBe(503)
    expect(held).toHaveLength(1)
    held[0]?.()
    expect((await first).status).toBe(200)
    await until(() => held.length === 2)
    held[1]?.()
    expect(new Set((await Promise.all(results)).map(({ status }) => status))).toEqual(new Set([200, 503]))
  })

  it('a client that went away while it waited does not keep the next one waiting', async () => {
    const { at, held } = await heldBackend()
    const { port } = await start(
      irOf([route(forwardTo(['one']))], [{ name: 'one', circuitBreakers: { maxConnections: 1 } }]),
      {
        one: [at],
      },
    )
    const first = ask(port)
    await until(() => held.length === 1)
    const gone = connect(port, '127.0.0.1', () => gone.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n'))
    await new Promise<void>((resolve) => gone.once('connect', resolve))
    const last = ask(port)
    gone.destroy()
    held[0]?.()
    expect((await first).status).toBe(200)
    // The request of the client that went away may have been sent before it was noticed.
    const answering = setInterval(() => held.splice(1).forEach((answer) => answer()), 5)
    expect((await last).status).toBe(200)
    clearInterval(answering)
  })

  it('maxRetries limits how many requests are sent again at a time', async () => {
    let calls = 0
    const at = await backend((_request, respond) => {
      calls++
      respond(500)
    })
    const retry = { count: 3, on: ['5xx'], statusCodes: [] }
    const cluster = (maxRetries: number) => [{ name: 'one', circuitBreakers: { maxRetries } }]
    const limited = await start(irOf([route(forwardTo(['one'], { retry }))], cluster(0)), { one: [at] })
    expect((await ask(limited.port)).status).toBe(500)
    expect(calls).toBe(1)
    const free = await start(irOf([route(forwardTo(['one'], { retry }))], cluster(1)), { one: [at] })
    expect((await ask(free.port)).status).toBe(500)
    expect(calls).toBe(5)
  })
})

describe('addresses of clusters', () => {
  const addresses = (...list: [Endpoint, number, number][]): Partial<Cluster> => ({
    name: 'one',
    upstream: {
      kind: 'addresses',
      addresses: list.map(([{ host, port }, weight, priority]) => ({ host, port, weight, priority })),
    },
  })

  it('get requests by weight, and those of a lower priority only when the others fail their health check', async () => {
    let isUp = true
    const [main, spare] = await Promise.all([
      backend((_request, respond) => respond(isUp ? 200 : 500, { 'x-is': 'main' })),
      backend((_request, respond) => respond(200, { 'x-is': 'spare' })),
    ])
    const healthCheck = {
      path: '/healthz',
      host: 'h',
      intervalMs: 10,
      timeoutMs: 1_000,
      unhealthyThreshold: 1,
      healthyThreshold: 1,
      expectedStatuses: [],
    }
    const cluster = { ...addresses([main, 1, 0], [spare, 100, 1]), healthCheck }
    const { port } = await start(irOf([route(forwardTo(['one']))], [cluster]), {})
    const who = async () => (await ask(port)).headers['x-is']
    expect(await who()).toBe('main')
    isUp = false
    while ((await who()) !== 'spare') await new Promise((resolve) => setImmediate(resolve))
    isUp = true
    while ((await who()) !== 'main') await new Promise((resolve) => setImmediate(resolve))
  })

  it('are tried elsewhere when one does not answer at all', async () => {
    const alive = await backend()
    const dead = await listen(createServer())
    await cleanups.pop()?.()
    const retry = { count: 1, on: ['connect-failure'], statusCodes: [] }
    const { port } = await start(
      irOf([route(forwardTo(['one'], { retry }))], [addresses([dead, 1_000, 0], [alive, 1, 1])]),
      {},
    )
    expect((await ask(port)).status).toBe(200)
    expect(alive.seen).toHaveLength(1)
  })
})
