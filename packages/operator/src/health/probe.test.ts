import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, Socket } from 'node:net'
import { addressGuard, systemClock } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import { fakeClock } from '@seamark/kube/testing'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { systemConnect } from './connection.ts'
import { probeRequest, type ProbeSettings } from './policy.ts'
import { parseExpectedStatus } from '../expected-status.ts'
import {
  CONNECTION_MAX_AGE_MS,
  CONNECTION_MIN_AGE_MS,
  CONNECTION_PROBES,
  createProbeClient,
  type ProbeClient,
  type ProbeDeps,
  STALL_MS,
} from './probe.ts'

const clean: (() => unknown)[] = []
afterEach(async () => {
  for (const step of clean.splice(0).toReversed()) await step()
})

/** Port of a server on 127.0.0.1 that is closed with all its connections after the test. */
async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  clean.push(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return (server.address() as AddressInfo).port
}

const http = (listener: RequestListener) => listen(createHttpServer(listener))

function client(deps: Partial<ProbeDeps> = {}): ProbeClient {
  const made = createProbeClient({
    clock: systemClock,
    resolve: async () => ['127.0.0.1'],
    connect: systemConnect,
    guard: addressGuard({ allowLoopback: true }),
    ...deps,
  })
  clean.push(() => made.close())
  return made
}

/** Far more than a local answer needs; a test of a timeout gives a short one of its own. */
const AMPLE_MS = 20_000
const SHORT_MS = 150

async function probe(settings: Partial<ProbeSettings>, timeoutMs = AMPLE_MS, deps: Partial<ProbeDeps> = {}) {
  const request = probeRequest({ host: '127.0.0.1', scheme: 'http', ...settings })
  return await client(deps).probe(request, timeoutMs)
}

describe('an HTTP probe', () => {
  it('passes on the expected status and sends method, path, Host and headers as set', async () => {
    const seen: unknown[] = []
    const port = await http((request, response) => {
      seen.push([request.method, request.url, request.headers.host, request.headers['x-probe']])
      response.writeHead(204).end()
    })
    const settings = {
      port,
      path: '/healthz?x=1',
      hostHeader: 'shop.example.com',
      headers: { 'X-Probe': 'yes' },
      expectedCodes: [{ from: 204, to: 204 }],
    }
    expect(await probe(settings)).toMatchObject({ code: 'Passed', detail: 'status 204' })
    expect(await probe({ ...settings, method: 'HEAD' })).toMatchObject({ code: 'Passed' })
    expect(seen).toEqual([
      ['GET', '/healthz?x=1', 'shop.example.com', 'yes'],
      ['HEAD', '/healthz?x=1', 'shop.example.com', 'yes'],
    ])
  })

  it('fails on another status and says which', async () => {
    const port = await http((_, response) => response.writeHead(503).end('down'))
    expect(await probe({ port })).toMatchObject({ code: 'StatusUnexpected', detail: 'status 503, expected 200' })
  })

  it('passes on every status of a range, its ends included, and says the range on another', async () => {
    let status = 200
    const port = await http((_, response) => response.writeHead(status).end())
    const expectedCodes = parseExpectedStatus(['200-299', '401'])
    for (status of [200, 204, 299, 401])
      expect(await probe({ port, expectedCodes })).toMatchObject({ code: 'Passed', detail: `status ${status}` })
    for (status of [300, 400, 500])
      expect(await probe({ port, expectedCodes })).toMatchObject({
        code: 'StatusUnexpected',
        detail: `status ${status}, expected 200-299 or 401`,
      })
  })

  it('looks for text in the body', async () => {
    const port = await http((_, response) => response.end('state: serving'))
    expect(await probe({ port, bodyContains: 'serving' })).toMatchObject({ code: 'Passed' })
    expect(await probe({ port, bodyContains: 'draining' })).toMatchObject({ code: 'BodyMismatch' })
  })

  it('reads no more than the limit of an endless body', async () => {
    let written = 0
    const port = await http((_, response) => {
      const chunk = Buffer.alloc(16_384, 'x')
      const pump = () => {
        while (!response.destroyed) {
          written += chunk.length
          if (!response.write(chunk)) return void response.once('drain', pump)
        }
      }
      pump()
    })
    expect(await probe({ port, bodyContains: 'never', maxBodyBytes: 50_000 })).toMatchObject({
      code: 'BodyMismatch',
      detail: 'the expected text is not in the first 50000 bytes of the body',
    })
    expect(await probe({ port, maxBodyBytes: 50_000 })).toMatchObject({ code: 'Passed' })
    // What the kernel's buffers take may be written; ten gigabytes are not.
    expect(written).toBeLessThan(64_000_000)
  })

  it('keeps the connection, and opens another when the server closed it meanwhile', async () => {
    let connections = 0
    const server = createHttpServer((_, response) => response.end('ok'))
    server.on('connection', () => connections++)
    const port = await listen(server)
    const shared = client()
    const request = probeRequest({ host: '127.0.0.1', scheme: 'http', port, bodyContains: 'ok' })
    expect(await shared.probe(request, AMPLE_MS)).toMatchObject({ code: 'Passed' })
    expect(await shared.probe(request, AMPLE_MS)).toMatchObject({ code: 'Passed' })
    expect(connections).toBe(1)
    server.closeAllConnections()
    expect(await shared.probe(request, AMPLE_MS)).toMatchObject({ code: 'Passed' })
    expect(connections).toBe(2)
  })

  it('replaces a connection that has reached its age', async () => {
    let connections = 0
    const server = createHttpServer((_, response) => response.end('ok'))
    server.on('connection', () => connections++)
    const port = await listen(server)
    let laterMs = 0
    const shared = client({ clock: { ...systemClock, monotonic: () => systemClock.monotonic() + laterMs } })
    const request = probeRequest({ host: '127.0.0.1', scheme: 'http', port, bodyContains: 'ok' })
    await shared.probe(request, AMPLE_MS)
    laterMs = CONNECTION_MAX_AGE_MS
    await shared.probe(request, AMPLE_MS)
    expect(connections).toBe(1)
    await shared.probe(request, AMPLE_MS)
    expect(connections).toBe(2)
  })

  it('replaces a connection after so many probes, but not one that is young', async () => {
    let connections = 0
    const server = createHttpServer((_, response) => response.end('ok'))
    server.on('connection', () => connections++)
    const port = await listen(server)
    let laterMs = 0
    const shared = client({ clock: { ...systemClock, monotonic: () => systemClock.monotonic() + laterMs } })
    const request = probeRequest({ host: '127.0.0.1', scheme: 'http', port, bodyContains: 'ok' })
    for (let count = 0; count < 2 * CONNECTION_PROBES; count++) await shared.probe(request, AMPLE_MS)
    expect(connections).toBe(1)
    laterMs = CONNECTION_MIN_AGE_MS
    await shared.probe(request, AMPLE_MS)
    await shared.probe(request, AMPLE_MS)
    expect(connections).toBe(2)
  })

  it('follows redirects up to the limit, on the address of the target', async () => {
    const hosts: unknown[] = []
    const port = await http((request, response) => {
      hosts.push(request.headers.host)
      if (request.url === '/end') response.end('here')
      else response.writeHead(302, { location: 'http://shop.example.com/end' }).end()
    })
    const settings = { port, hostHeader: 'shop.example.com' }
    expect(await probe({ ...settings, maxRedirects: 1 })).toMatchObject({ code: 'Passed' })
    expect(await probe({ ...settings, maxRedirects: 0 })).toMatchObject({ code: 'RedirectRefused' })
    expect(new Set(hosts)).toEqual(new Set(['shop.example.com']))
  })

  it('ends a redirect loop at the limit', async () => {
    let requests = 0
    const port = await http((_, response) => {
      requests++
      response.writeHead(301, { location: '/again' }).end()
    })
    expect(await probe({ port, maxRedirects: 3 })).toMatchObject({
      code: 'RedirectRefused',
      detail: 'more than 3 redirects',
    })
    expect(requests).toBe(4)
  })

  it.each(['file:///etc/passwd', 'http://', 'gopher://127.0.0.1/'])(
    'does not follow a redirect to %s',
    async (location) => {
      const port = await http((_, response) => response.writeHead(302, { location }).end())
      expect(await probe({ port })).toMatchObject({ code: 'RedirectRefused' })
    },
  )

  it('does not follow a redirect to a denied address, and sends no user headers to another host', async () => {
    const headers: unknown[] = []
    const other = await http((request, response) => {
      headers.push(request.headers['authorization'])
      response.end()
    })
    const port = await http((request, response) => {
      const location = request.url === '/meta' ? 'http://169.254.169.254/latest/' : `http://other.example.com:${other}/`
      response.writeHead(302, { location }).end()
    })
    expect(await probe({ port, path: '/meta' })).toMatchObject({ code: 'AddressDenied' })
    expect(await probe({ port, headers: { authorization: 'Bearer secret' } })).toMatchObject({ code: 'Passed' })
    expect(headers).toEqual([undefined])
  })

  it('fails on an answer that is not HTTP', async () => {
    const port = await listen(createServer((socket) => socket.end('220 mail.example.com ESMTP\r\n')))
    expect(await probe({ port })).toMatchObject({ code: 'ProtocolError' })
  })

  it('fails when the path cannot be sent', async () => {
    expect(await probe({ port: 1, path: '/a b\r\nX: y' })).toMatchObject({ code: 'ProtocolError' })
  })
})

describe('a target that does not answer', () => {
  it('refuses connections', async () => {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    server.close()
    await once(server, 'close')
    expect(await probe({ port })).toMatchObject({ code: 'Refused' })
    expect(await probe({ port, scheme: 'tcp' })).toMatchObject({ code: 'Refused' })
  })

  it('is a black hole', async () => {
    const sockets: Socket[] = []
    const connect = () => {
      const socket = new Socket()
      sockets.push(socket)
      return socket
    }
    const silent = { port: 443 }
    expect(await probe({ ...silent, scheme: 'tcp' }, SHORT_MS, { connect })).toMatchObject({
      code: 'TimedOut',
      detail: `no result within ${SHORT_MS} ms, phase connect`,
    })
    expect(await probe({ ...silent, scheme: 'https' }, SHORT_MS, { connect })).toMatchObject({ code: 'TimedOut' })
    expect(sockets.map((socket) => socket.destroyed)).toEqual([true, true])
  })

  it('accepts and hangs', async () => {
    const port = await listen(createServer(() => undefined))
    expect(await probe({ port }, SHORT_MS)).toMatchObject({
      code: 'TimedOut',
      detail: expect.stringContaining('phase headers'),
    })
    expect(await probe({ port, scheme: 'https' }, SHORT_MS)).toMatchObject({
      code: 'TimedOut',
      detail: expect.stringContaining('phase tls'),
    })
    expect(await probe({ port, scheme: 'tcp' })).toMatchObject({ code: 'Passed' })
  })

  it('drips its headers or its body', async () => {
    const drip = (head: string) =>
      listen(
        createServer((socket) => {
          socket.write(head)
          const timer = setInterval(() => socket.write('x'), 10)
          socket.on('close', () => clearInterval(timer))
        }),
      )
    const headers = await drip('HTTP/1.1 200 OK\r\nX-Slow: ')
    expect(await probe({ port: headers }, SHORT_MS)).toMatchObject({ code: 'TimedOut' })
    const body = await drip('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n')
    expect(await probe({ port: body, bodyContains: 'y' }, SHORT_MS)).toMatchObject({
      code: 'TimedOut',
      detail: expect.stringContaining('phase body'),
    })
  })

  it('closes the connection without an answer', async () => {
    const port = await listen(createServer((socket) => socket.resetAndDestroy()))
    expect(await probe({ port })).toMatchObject({ code: 'Reset' })
  })

  it('has a name that does not resolve', async () => {
    const failing = (code: string) => async () => {
      throw Object.assign(new Error(code), { code })
    }
    const named = { host: 'gone.example.com', port: 80 }
    expect(await probe(named, AMPLE_MS, { resolve: failing('ENOTFOUND') })).toMatchObject({ code: 'NameUnresolved' })
    expect(await probe(named, AMPLE_MS, { resolve: async () => [] })).toMatchObject({ code: 'NameUnresolved' })
    expect(await probe(named, AMPLE_MS, { resolve: failing('ESERVFAIL') })).toMatchObject({ code: 'ProberFault' })
    const never = () => new Promise<never>(() => undefined)
    expect(await probe(named, SHORT_MS, { resolve: never })).toMatchObject({
      code: 'TimedOut',
      detail: expect.stringContaining('phase resolve'),
    })
  })

  it('is not blamed for what the prober cannot do', async () => {
    const connect = () => {
      const socket = new Socket()
      setImmediate(() => socket.destroy(Object.assign(new Error('no route'), { code: 'ENETUNREACH' })))
      return socket
    }
    expect(await probe({ port: 443 }, AMPLE_MS, { connect })).toMatchObject({ code: 'ProberFault' })
  })

  it('is not blamed for a prober that was stalled past the deadline', async () => {
    const clock = fakeClock()
    const pending = probe({ port: 443, scheme: 'tcp' }, 2_000, { clock, connect: () => new Socket() })
    clock.stall(2_000 + STALL_MS + 1)
    await clock.next()
    expect(await pending).toMatchObject({ code: 'ProberFault', detail: 'the prober was stalled for 251 ms' })
  })
})

describe('the address guard of probes', () => {
  const guard = addressGuard()
  let connected = 0
  const connect = (address: string, port: number) => {
    connected++
    return systemConnect(address, port)
  }

  it.each([
    '127.0.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '::1',
    '::ffff:127.0.0.1',
    'fe80::1',
    '64:ff9b::a9fe:a9fe',
    'fd00:ec2::254',
    '100.100.100.200',
  ])('never connects to %s, given as an address or as a name that resolves to it', async (address) => {
    connected = 0
    expect(await probe({ host: address, port: 80 }, AMPLE_MS, { guard, connect })).toMatchObject({
      code: 'AddressDenied',
    })
    const resolve = async () => [address]
    expect(await probe({ host: 'a.example.com', port: 80 }, AMPLE_MS, { guard, connect, resolve })).toMatchObject({
      code: 'AddressDenied',
    })
    expect(connected).toBe(0)
  })

  it('judges the address that is connected to, also when the name answers differently the second time', async () => {
    const port = await http((_, response) => response.writeHead(200, { connection: 'close' }).end('ok'))
    const answers = [['127.0.0.1'], ['169.254.169.254']]
    const resolve = async () => answers.shift() ?? []
    const seen: string[] = []
    const shared = client({
      resolve,
      connect: (address, to) => {
        seen.push(address)
        return systemConnect(address, to)
      },
    })
    const request = probeRequest({ host: 'rebind.example.com', scheme: 'http', port })
    expect(await shared.probe(request, AMPLE_MS)).toMatchObject({ code: 'Passed' })
    expect(await shared.probe(request, AMPLE_MS)).toMatchObject({ code: 'AddressDenied' })
    expect(seen).toEqual(['127.0.0.1'])
  })

  it.each(['tcp', 'http'] as const)('connects to the addresses that are given for a name, by %s', async (scheme) => {
    const port = await http((_, response) => response.end('ok'))
    const resolve = async () => Promise.reject(new Error('nobody is to be asked'))
    const settings = { host: 'shop.example.com', addresses: ['127.0.0.1'], port, scheme }
    expect(await probe(settings, AMPLE_MS, { resolve })).toMatchObject({ code: 'Passed' })
  })

  it('uses the permitted addresses of a name and tries the next when one refuses', async () => {
    const port = await http((_, response) => response.end('ok'))
    const resolve = async () => ['169.254.169.254', '127.0.0.2', '127.0.0.1']
    expect(await probe({ host: 'two.example.com', port }, AMPLE_MS, { resolve })).toMatchObject({ code: 'Passed' })
  })
})

describe('an HTTPS probe', () => {
  let ca = ''
  let pair = { certPem: '', keyPem: '' }
  beforeAll(async () => {
    const authority = await createAuthority({ commonName: 'probe test' })
    ca = authority.certPem
    pair = await authority.issue({ commonName: 'shop', dnsNames: ['shop.example.com'], usages: 'server' })
  })

  async function https(names: (string | false | null)[] = []) {
    const server = createHttpsServer({ cert: pair.certPem, key: pair.keyPem }, (_, response) => response.end('ok'))
    server.on('secureConnection', (socket) => names.push(socket.servername))
    server.on('tlsClientError', () => undefined)
    return await listen(server)
  }

  it('sends the Host name as server name, or the one that is set', async () => {
    const names: (string | false | null)[] = []
    const port = await https(names)
    const settings = { scheme: 'https' as const, port, hostHeader: 'shop.example.com' }
    expect(await probe(settings)).toMatchObject({ code: 'Passed' })
    expect(await probe({ ...settings, sni: 'other.example.com' })).toMatchObject({ code: 'Passed' })
    expect(await probe({ scheme: 'https', port })).toMatchObject({ code: 'Passed' })
    expect(names).toEqual(['shop.example.com', 'other.example.com', false])
  })

  it('verifies the certificate only when configured to', async () => {
    const port = await https()
    const settings = { scheme: 'https' as const, port, hostHeader: 'shop.example.com' }
    expect(await probe(settings)).toMatchObject({ code: 'Passed' })
    expect(await probe({ ...settings, verifyTls: true })).toMatchObject({ code: 'TlsFailed' })
    expect(await probe({ ...settings, verifyTls: true, ca })).toMatchObject({ code: 'Passed' })
    expect(await probe({ ...settings, verifyTls: true, ca, hostHeader: 'evil.example.com' })).toMatchObject({
      code: 'TlsFailed',
    })
  })

  it('fails when the target does not speak TLS', async () => {
    const port = await http((_, response) => response.end('ok'))
    expect(await probe({ scheme: 'https', port })).toMatchObject({ code: 'TlsFailed' })
  })
})
