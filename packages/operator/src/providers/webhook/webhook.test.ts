import { createServer, type IncomingMessage, request } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CONFORMANCE } from '../conformance.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import { type MemoryProvider, memoryProvider } from '../memory.ts'
import { webhookProvider } from './webhook.ts'
import { MEDIA_TYPE } from './webhook-endpoint.ts'
import { startWebhookServer, type WebhookServer } from './webhook-server.ts'

const ZONE = 'a.test.'
const { signal } = new AbortController()

describe('the webhook protocol between our client and our server', () => {
  let memory: MemoryProvider
  let server: WebhookServer
  beforeEach(async () => {
    memory = memoryProvider({ zones: [ZONE, 'b.test.'] })
    server = await startWebhookServer({ provider: memory, listen: { address: '127.0.0.1', port: 0 } })
  })
  afterEach(async () => server.close())

  it.each(CONFORMANCE.map((item) => [item.title, item] as const))('%s', async (_title, item) => {
    const provider = webhookProvider({ name: 'hook', url: server.url })
    await expect(item.run({ provider, zone: { id: ZONE, name: ZONE }, signal })).resolves.toBeUndefined()
  })

  const post = async (path: string, body: string, headers: Record<string, string> = {}) =>
    (await fetch(`${server.url}${path}`, { method: 'POST', body, headers: { 'content-type': MEDIA_TYPE, ...headers } }))
      .status

  /** Sends the headers as given: `fetch` does not let a caller set Host. */
  const raw = async (method: string, path: string, headers: Record<string, string>, body = ''): Promise<number> => {
    const sent = request(`${server.url}${path}`, { method, headers: { ...headers, 'content-length': body.length } })
    sent.end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode ?? 0
  }

  const CREATE = JSON.stringify({ create: [{ dnsName: 'www.a.test', recordType: 'A', targets: ['192.0.2.1'] }] })
  const HOST = { host: '127.0.0.1:8888' }

  it.each([
    ['a body that a form can send', 415, { ...HOST, 'content-type': 'text/plain' }],
    ['a body without a type', 415, HOST],
    ['the origin of a web page', 403, { ...HOST, 'content-type': MEDIA_TYPE, origin: 'http://evil.test' }],
    ['a null origin', 403, { ...HOST, 'content-type': MEDIA_TYPE, origin: 'null' }],
    ['a cross-site fetch', 403, { ...HOST, 'content-type': MEDIA_TYPE, 'sec-fetch-site': 'cross-site' }],
    ['an unknown host name', 421, { host: 'evil.test:8888', 'content-type': MEDIA_TYPE }],
    ['a host name with the prefix of a known one', 421, { host: 'localhost.evil.test', 'content-type': MEDIA_TYPE }],
  ])('refuses changes with %s', async (_, status, headers) => {
    expect(await raw('POST', '/records', headers, CREATE)).toBe(status)
    expect(memory.dump(ZONE)).toEqual([])
  })

  it('refuses requests for unknown host names, and serves localhost, addresses and the configured names', async () => {
    expect(await raw('GET', '/records', { host: 'evil.test' })).toBe(421)
    for (const host of ['localhost:8888', 'LOCALHOST', '127.0.0.1', '[::1]:8888', '10.1.2.3:80'])
      expect(await raw('GET', '/records', { host }), host).toBe(200)
    const named = await startWebhookServer({
      provider: memory,
      listen: { address: '127.0.0.1', port: 0 },
      hosts: ['dns.default.svc'],
    })
    const before = server
    server = named
    try {
      expect(await raw('GET', '/records', { host: 'dns.default.svc:8888' })).toBe(200)
      expect(await raw('GET', '/records', { host: 'evil.test' })).toBe(421)
    } finally {
      server = before
      await named.close()
    }
  })

  it('answers other requests while it processes a request with very many changes', async () => {
    const create = Array.from({ length: 50_000 }, (_, i) => ({
      dnsName: `n${i}.a.test`,
      recordType: 'A',
      targets: ['192.0.2.1'],
    }))
    const state = { isApplied: false }
    const applied = post('/records', JSON.stringify({ create })).then((status) => {
      state.isApplied = true
      return status
    })
    let answered = 0
    while (!state.isApplied && answered < 20) {
      const { status } = await fetch(`${server.url}/healthz`)
      expect(status).toBe(200)
      if (!state.isApplied) answered++
    }
    expect(answered).toBe(20)
    expect(await applied).toBe(204)
    expect(memory.dump(ZONE)).toHaveLength(50_000)
  })

  it('negotiates as ExternalDNS expects it', async () => {
    const response = await fetch(server.url, { headers: { accept: MEDIA_TYPE } })
    expect(response.headers.get('content-type')).toBe(MEDIA_TYPE)
    expect(await response.json()).toEqual({ include: ['a.test', 'b.test'] })
  })

  it('applies create, update and delete as ExternalDNS sends them', async () => {
    const endpoint = {
      dnsName: 'www.a.test',
      recordType: 'A',
      targets: ['192.0.2.1'],
      recordTTL: 60,
      labels: { owner: 'x' },
    }
    expect(await post('/records', JSON.stringify({ create: [endpoint] }))).toBe(204)
    const next = { ...endpoint, targets: ['192.0.2.2'] }
    expect(await post('/records', JSON.stringify({ updateOld: [endpoint], updateNew: [next] }))).toBe(204)
    expect(memory.dump(ZONE)).toMatchObject([{ name: 'www.a.test.', values: ['192.0.2.2'] }])
    // A delete of an absent set does nothing.
    expect(await post('/records', JSON.stringify({ delete: [endpoint] }))).toBe(204)
    expect(memory.dump(ZONE)).toHaveLength(1)
    expect(await post('/records', JSON.stringify({ delete: [next] }))).toBe(204)
    expect(memory.dump(ZONE)).toEqual([])
    expect(await post('/adjustendpoints', JSON.stringify([endpoint]))).toBe(200)
  })

  it('answers 4xx to permanent failures, 5xx to temporary ones, and keeps running', async () => {
    expect(await post('/records', '{')).toBe(400)
    expect(await post('/records', '{"create": 5}')).toBe(400)
    expect(
      await post(
        '/records',
        JSON.stringify({ create: [{ dnsName: 'www.elsewhere.test', recordType: 'A', targets: ['192.0.2.1'] }] }),
      ),
    ).toBe(400)
    expect(await post('/nowhere', '{}')).toBe(404)
    memory.zones = async () => {
      throw new Error('down')
    }
    expect((await fetch(`${server.url}/records`)).status).toBe(500)
  })

  it('does not change sets that the protocol cannot represent', async () => {
    memory.put(ZONE, { name: 'alias.a.test.', type: 'A', ttl: 5, values: [], opaque: 'an alias' })
    expect(await (await fetch(`${server.url}/records`)).json()).toEqual([])
    const create = (...names: string[]) => ({
      create: names.map((dnsName) => ({ dnsName, recordType: 'A', targets: ['192.0.2.1'] })),
    })
    // The others are written, and ExternalDNS tries again later.
    expect(await post('/records', JSON.stringify(create('alias.a.test', 'www.a.test', 'www.b.test')))).toBe(500)
    const deletion = { delete: [{ dnsName: 'alias.a.test', recordType: 'A', targets: [] }] }
    expect(await post('/records', JSON.stringify(deletion))).toBe(500)
    expect(memory.dump(ZONE)).toMatchObject([
      { name: 'alias.a.test.', opaque: 'an alias' },
      { name: 'www.a.test.', values: ['192.0.2.1'] },
    ])
    expect(memory.dump('b.test.')).toHaveLength(1)
  })

  it('applies changes after a request that failed', async () => {
    memory.put(ZONE, { name: 'alias.a.test.', type: 'A', ttl: 5, values: [], opaque: 'an alias' })
    const failing = { create: [{ dnsName: 'alias.a.test', recordType: 'A', targets: ['192.0.2.1'] }] }
    expect(await post('/records', JSON.stringify(failing))).toBe(500)
    expect(await post('/records', CREATE)).toBe(204)
  })

  it('writes a name of a zone within another one to the inner zone', async () => {
    const nested = memoryProvider({ zones: [ZONE, 'sub.a.test.'] })
    const inner = await startWebhookServer({ provider: nested, listen: { address: '127.0.0.1', port: 0 } })
    const body = JSON.stringify({ create: [{ dnsName: 'www.sub.a.test', recordType: 'A', targets: ['192.0.2.1'] }] })
    await fetch(`${inner.url}/records`, { method: 'POST', body, headers: { 'content-type': MEDIA_TYPE } })
    expect([nested.dump(ZONE).length, nested.dump('sub.a.test.').length]).toEqual([0, 1])
    await inner.close()
  })

  it('sends no more changes in one call than the provider accepts', async () => {
    const sizes: number[] = []
    const strict = {
      ...memory,
      fits: (batch: readonly SetChange[]) => batch.length <= 3,
      apply: async (...call: Parameters<MemoryProvider['apply']>) => {
        sizes.push(call[1].length)
        await memory.apply(...call)
      },
    }
    const limited = await startWebhookServer({ provider: strict, listen: { address: '127.0.0.1', port: 0 } })
    const create = Array.from({ length: 10 }, (_, index) => ({
      dnsName: `n${index}.a.test`,
      recordType: 'A',
      targets: ['192.0.2.1'],
    }))
    const body = JSON.stringify({ create })
    await fetch(`${limited.url}/records`, { method: 'POST', body, headers: { 'content-type': MEDIA_TYPE } })
    expect(memory.dump(ZONE)).toHaveLength(10)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(3)
    await limited.close()
  })
})

describe('a webhook of another project', () => {
  const answering = async (status: number, contentType: string, body: string) => {
    const peer = createServer((_request, response) => {
      response.writeHead(status, { 'content-type': contentType }).end(body)
    })
    peer.listen(0, '127.0.0.1')
    await once(peer, 'listening')
    const url = `http://127.0.0.1:${(peer.address() as AddressInfo).port}`
    return { url, close: () => peer.close() }
  }
  const zone = { id: ZONE, name: ZONE }

  it.each([
    ['of another version', 200, 'application/json', '{"include":["a.test"]}', 'ProviderMisconfigured'],
    ['with an invalid response', 200, MEDIA_TYPE, 'nonsense', 'ProviderUnavailable'],
    ['with a server error', 500, MEDIA_TYPE, '', 'ProviderUnavailable'],
    ['that requires credentials', 401, MEDIA_TYPE, '', 'CredentialsInvalid'],
    ['that throttles', 429, MEDIA_TYPE, '', 'Throttled'],
  ])('%s is a reason code, and never an empty zone', async (_title, status, type, body, code) => {
    const peer = await answering(status, type, body)
    await expect(webhookProvider({ name: 'hook', url: peer.url }).read(zone, 'all', signal)).rejects.toMatchObject({
      code,
    })
    peer.close()
  })

  it('with a null list of records has none, and a failed change has an unknown outcome', async () => {
    const peer = await answering(200, MEDIA_TYPE, 'null')
    const provider = webhookProvider({ name: 'hook', url: peer.url, zones: [ZONE] })
    expect(await provider.read(zone, 'all', signal)).toEqual([])
    peer.close()
  })

  it.each([500, 503])('that answers a change with %s may have made it', async (status) => {
    const fetch: typeof globalThis.fetch = async (_input, init) =>
      new Response('{"include":["a.test"]}', {
        status: init?.method === 'POST' ? status : 200,
        headers: { 'content-type': MEDIA_TYPE },
      })
    const provider = webhookProvider({ name: 'hook', url: 'http://127.0.0.1:1', fetch })
    const to = { name: 'www.a.test.', type: 'A', ttl: 60, values: ['192.0.2.1'] }
    await expect(provider.apply(zone, [{ from: undefined, to }], signal)).rejects.toMatchObject({ outcome: 'unknown' })
  })

  it('that no longer serves a zone fails to read it: the zone is not empty', async () => {
    let include = ['a.test']
    const fetch: typeof globalThis.fetch = async (input) =>
      new Response(String(input).endsWith('/records') ? '[]' : JSON.stringify({ include }), {
        headers: { 'content-type': MEDIA_TYPE },
      })
    const provider = webhookProvider({ name: 'hook', url: 'http://127.0.0.1:1', fetch })
    expect(await provider.read(zone, 'all', signal)).toEqual([])
    include = ['b.test']
    await expect(provider.read(zone, 'all', signal)).rejects.toMatchObject({ code: 'ZoneNotFound' })
    // A zone of the configuration that the webhook does not serve.
    const configured = webhookProvider({ name: 'hook', url: 'http://127.0.0.1:1', zones: [ZONE, 'b.test.'], fetch })
    expect((await configured.zones(signal)).map(({ name }) => name)).toEqual(['b.test.'])
  })

  it('shows records with a routing policy as records that are never changed', async () => {
    const endpoint = { dnsName: 'www.a.test', recordType: 'A', targets: ['192.0.2.1'] }
    const records = [{ ...endpoint, setIdentifier: 'eu' }, endpoint]
    const fetch: typeof globalThis.fetch = async (input) =>
      new Response(String(input).endsWith('/records') ? JSON.stringify(records) : '{"include":["a.test"]}', {
        headers: { 'content-type': MEDIA_TYPE },
      })
    const provider = webhookProvider({ name: 'hook', url: 'http://127.0.0.1:1', fetch })
    const found = await provider.read(zone, 'all', signal)
    expect(found.map(({ opaque }) => opaque)).toEqual(['a routing policy (eu)', undefined])
  })
})
