import { describe, expect, it } from 'vitest'
import {
  ask,
  backend,
  forwardTo,
  irOf,
  manualClock,
  openSocket,
  raw,
  route,
  start,
} from '../../testing/proxy-fixture.ts'
import { createProxy } from './proxy.ts'

describe('the built-in proxy', () => {
  const UPGRADE = 'GET / HTTP/1.1\r\nhost: x.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n'

  it('does not pass on what only proxies may set, and takes headers up to its own limit', async () => {
    const one = await backend()
    const { port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    await ask(port, '/', { headers: { 'x-envoy-original-path': '/admin' } })
    expect(one.seen[0]?.headers).not.toHaveProperty('x-envoy-original-path')
    const direct = await start(irOf([route({ kind: 'direct', status: 204, body: '' })]), {})
    expect((await ask(direct.port, '/', { headers: { 'x-long': 'x'.repeat(40_000) } })).status).toBe(204)
  })

  it('refuses upgrades over a rate limit, and unencrypted ones of a route that redirects to HTTPS', async () => {
    const one = await backend()
    const action = forwardTo(['one'], { hasWebsocket: true })
    const rateLimit = { tokens: 1, burst: 0, intervalMs: 1_000, status: 429, headers: [] }
    const limited = await start(irOf([route(action, { rateLimit })]), { one: [one] })
    expect(await raw(limited.port, UPGRADE)).toMatch(/^HTTP\/1.1 429 /)
    const secured = await start(irOf([route(action, { upgradesToHttps: true })]), { one: [one] })
    expect(await raw(secured.port, UPGRADE)).toMatch(/^HTTP\/1.1 403 /)
    expect(one.begun()).toBe(0)
  })

  it('lets requests in flight finish when it is closed', async () => {
    const held: (() => void)[] = []
    const one = await backend((_request, respond) => held.push(() => respond(200)))
    const { proxy, port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const asked = ask(port)
    await expect.poll(() => held.length).toBe(1)
    const closing = proxy.close(60_000)
    held[0]?.()
    expect((await asked).status).toBe(200)
    await closing
  })

  it('announces that it is closed, and answers what a client still sends on a connection that it keeps', async () => {
    const one = await backend()
    const { proxy, port } = await start(irOf([route(forwardTo(['one']))]), { one: [one] })
    const { socket, text } = openSocket(port)
    const answers = () =>
      [...text().matchAll(/^HTTP.1.1 (\d+).*?^connection: ([a-z-]+)/gims)].map((each) => each.slice(1))
    socket.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n')
    await expect.poll(answers).toEqual([['200', 'keep-alive']])
    const closing = proxy.close(60_000)
    socket.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n')
    await expect.poll(answers).toEqual([
      ['200', 'keep-alive'],
      ['200', 'close'],
    ])
    await closing
  })

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
    const { socket, text } = openSocket(port)
    socket.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n')
    await expect.poll(text).toMatch(/old$/)
    proxy.apply(irOf([route({ kind: 'direct', status: 200, body: 'new' })]))
    socket.write('GET / HTTP/1.1\r\nhost: x.test\r\n\r\n')
    await expect.poll(text).toMatch(/new$/)
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
})
