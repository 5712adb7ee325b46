import { createServer as createHttpServer, request as httpRequest } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect as connectTcp, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import {
  connect as connectTls,
  createServer as createTlsServer,
  type ConnectionOptions,
  type TLSSocket,
} from 'node:tls'
import { createAuthority, type Authority } from '@seamark/kube/certificates'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { forwardTo, route } from '../../../testing/proxy-fixture.ts'
import type { Certificate, Cluster, Ir, Route, UpstreamTls, VirtualHost } from '../../ir/model.ts'
import { createProxy, type ProxyOptions } from '../proxy.ts'

let authority: Authority
let other: Authority
let certificate: Certificate
beforeAll(async () => {
  authority = await createAuthority({ commonName: 'ours' })
  other = await createAuthority({ commonName: 'other' })
  const { certPem, keyPem } = await authority.issue({ commonName: 'x.test', dnsNames: ['x.test'], usages: 'server' })
  certificate = { name: 'a/tls/1', chain: certPem, key: keyPem }
})

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(async () => new Promise((resolve) => server.close(resolve)))
  return (server.address() as AddressInfo).port
}

function clusterOf(extra: Partial<Cluster> = {}): Cluster {
  return {
    name: 'one',
    upstream: { kind: 'endpoints', name: 'one' },
    protocol: 'http1',
    balancing: 'roundRobin',
    connectTimeoutMs: 2_000,
    ...extra,
  }
}

const toOne = route(forwardTo(['one']))
const terminated = { certificate: 'a/tls/1', minVersion: '1.2', maxVersion: '1.3' } as const

async function start(
  host: Partial<VirtualHost>,
  port: number,
  cluster: Partial<Cluster> = {},
  options: Partial<ProxyOptions> = {},
  others: readonly VirtualHost[] = [],
): Promise<{ http: number; https: number }> {
  const complete = { host: 'x.test', routes: [], ...host }
  const ir: Ir = {
    listeners: [
      { protocol: 'http', hosts: [{ host: 'x.test', routes: [toOne] }] },
      { protocol: 'https', hosts: [complete, ...others] },
    ],
    clusters: [clusterOf(cluster)],
    certificates: [certificate],
  }
  const proxy = createProxy({
    http: { host: '127.0.0.1', port: 0 },
    https: { host: '127.0.0.1', port: 0 },
    endpoints: () => [{ host: '127.0.0.1', port }],
    ...options,
  })
  proxy.apply(ir)
  const addresses = await proxy.listen()
  cleanups.push(async () => proxy.close(0))
  return { http: addresses.http?.port ?? 0, https: addresses.https?.port ?? 0 }
}

/** Resolves when the handshake is complete and, with TLS 1.3, the server has accepted the certificate of the client. */
async function secure(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  return await new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: '127.0.0.1', servername: 'x.test', ca: authority.certPem, ...options })
    socket.once('secureConnect', () => resolve(socket))
    socket.once('error', reject)
    cleanups.push(async () => socket.destroy())
  })
}

/** What comes back to one request, until the connection is closed; an error is empty. */
async function exchange(socket: TLSSocket, text: string): Promise<string> {
  return await new Promise((resolve) => {
    let received = ''
    socket.setEncoding('utf8').on('data', (chunk: string) => (received += chunk))
    socket.on('close', () => resolve(received))
    socket.on('error', () => undefined)
    socket.write(text)
  })
}

const GET = 'GET / HTTP/1.1\r\nhost: x.test\r\nconnection: close\r\n\r\n'

async function status(port: number): Promise<number> {
  return await new Promise((resolve, reject) => {
    const call = httpRequest({ port, host: '127.0.0.1', headers: { host: 'x.test' }, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    call.on('error', reject)
    call.end()
  })
}

describe('TLS passthrough', () => {
  it('passes the connection on unread: the client sees the certificate of the backend', async () => {
    const { certPem, keyPem } = await other.issue({ commonName: 'x.test', dnsNames: ['x.test'], usages: 'server' })
    const backend = createTlsServer({ cert: certPem, key: keyPem }, (socket) => socket.resume().end('from the backend'))
    const port = await listen(backend)
    const { https } = await start({ tcp: { backends: [{ cluster: 'one', weight: 1 }] } }, port)
    const socket = await secure(https, { ca: other.certPem })
    expect(socket.authorized).toBe(true)
    expect(await exchange(socket, 'x')).toBe('from the backend')
  })

  it('closes the share of backends that cannot be resolved, and names that no host has', async () => {
    const port = await listen(createServer((socket) => socket.end()))
    const tcp = { backends: [{ cluster: 'one', weight: 1 }], invalidWeight: 1 }
    const { https } = await start({ tcp }, port, {}, { random: () => 0.9 })
    await expect(secure(https)).rejects.toThrow(/disconnected|ECONNRESET|closed/i)
    await expect(secure(https, { servername: 'y.test' })).rejects.toThrow(/disconnected|ECONNRESET|closed/i)
  })
})

it('answers requests that are sent ahead inside a connection in their order, and those that offer h2c', async () => {
  const backend = createHttpServer((request, response) => {
    request.resume().on('end', () => response.end(`<${request.url}>`))
  })
  const { https } = await start({ tls: terminated, routes: [toOne] }, await listen(backend))
  const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nhost: x.test\r\n${more}\r\n`
  const paths = Array.from({ length: 50 }, (_, index) => `/${index}`)
  const ahead = `${paths.map((path) => get(path)).join('')}${get('/last', 'connection: close\r\n')}`
  const answers = await exchange(await secure(https), ahead)
  expect(answers.match(/<.*?>/g)).toEqual([...paths, '/last'].map((path) => `<${path}>`))
  const offer = 'connection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n'
  expect(await exchange(await secure(https), get('/offer', offer))).toMatch(/^HTTP\/1\.1 200 [^]*<\/offer>/)
  backend.closeAllConnections()
})

it('forwards what is inside a terminated TLS connection, whatever its protocol', async () => {
  const port = await listen(createServer((socket) => socket.on('data', (chunk) => socket.end(`got ${String(chunk)}`))))
  const { https } = await start({ tls: terminated, tcp: { backends: [{ cluster: 'one', weight: 1 }] } }, port)
  expect(await exchange(await secure(https), 'no HTTP')).toBe('got no HTTP')
})

describe('a TLS connection', () => {
  it('is for the host of its server name only', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const { https } = await start({ tls: terminated, routes: [toOne] }, port)
    const statusOf = async (host: string) =>
      (await exchange(await secure(https), GET.replace('x.test', host))).slice(0, 'HTTP/1.1 200'.length)
    expect(await statusOf('x.test')).toBe('HTTP/1.1 200')
    expect(await statusOf('other.test')).toBe('HTTP/1.1 421')
    expect(await statusOf('x.test.')).toBe('HTTP/1.1 421')
  })

  it('is for the hosts of its group that have the same certificate and ask for the same client certificates', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const group = 'a/gateway/tls'
    const validating = { ...terminated, clientValidation: { ca: authority.certPem, isOptional: false } }
    const others = [
      { host: 'same.test', routes: [toOne], tls: { ...terminated }, group },
      { host: 'validating.test', routes: [toOne], tls: validating, group },
    ]
    const { https } = await start({ tls: terminated, routes: [toOne], group }, port, {}, {}, others)
    const statusOf = async (host: string) =>
      (await exchange(await secure(https), GET.replace('x.test', host))).slice(9, 12)
    expect([await statusOf('same.test'), await statusOf('validating.test')]).toEqual(['200', '421'])
  })
})

describe('client certificates', () => {
  const clientCertificate = async (from: Authority) => {
    const { certPem, keyPem } = await from.issue({ commonName: 'client', usages: 'client' })
    return { cert: certPem, key: keyPem }
  }
  const ask = async (port: number, options: ConnectionOptions) => {
    try {
      return (await exchange(await secure(port, options), GET)).slice(0, 12)
    } catch {
      return ''
    }
  }

  it('that are required must be signed by the CA', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const tls = { ...terminated, clientValidation: { ca: authority.certPem, isOptional: false } }
    const { https } = await start({ tls, routes: [toOne] }, port)
    expect(await ask(https, await clientCertificate(authority))).toBe('HTTP/1.1 200')
    expect(await ask(https, await clientCertificate(other))).toBe('')
    expect(await ask(https, {})).toBe('')
  })

  it('are verified by the settings of the host that is asked for, although hosts share a server certificate', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const hostOf = (host: string, { certPem: ca }: Authority) => ({
      host,
      routes: [toOne],
      tls: { ...terminated, clientValidation: { ca, isOptional: false } },
    })
    const others = [hostOf('y.test', authority), hostOf('z.test', other)]
    const { https } = await start({ tls: terminated, routes: [toOne] }, port, {}, {}, others)
    const askFor = async (servername: string, options: ConnectionOptions = {}) => {
      const socket = await secure(https, { ...options, servername, rejectUnauthorized: false }).catch(() => undefined)
      return socket === undefined ? '' : (await exchange(socket, GET.replace('x.test', servername))).slice(0, 12)
    }
    const ours = await clientCertificate(authority)
    expect(await askFor('x.test')).toBe('HTTP/1.1 200')
    expect(await askFor('y.test')).toBe('')
    expect(await askFor('y.test', ours)).toBe('HTTP/1.1 200')
    expect(await askFor('z.test', ours)).toBe('')
  })

  it('that are optional must not be forged where the connection is passed on, either', async () => {
    const port = await listen(createServer((socket) => socket.end('hello')))
    const tls = { ...terminated, clientValidation: { ca: authority.certPem, isOptional: true } }
    const tcp = { backends: [{ cluster: 'one', weight: 1 }] }
    const { https } = await start({ tls, tcp }, port)
    const receive = async (options: ConnectionOptions) => exchange(await secure(https, options), '')
    expect(await receive({})).toBe('hello')
    expect(await receive(await clientCertificate(authority))).toBe('hello')
    expect(await receive(await clientCertificate(other))).toBe('')
  })

  it('that are required and not verified must be sent', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const tls = { ...terminated, clientValidation: { ca: '', isOptional: false } }
    const { https } = await start({ tls, routes: [toOne] }, port)
    expect(await ask(https, await clientCertificate(other))).toBe('HTTP/1.1 200')
    expect(await ask(https, {})).toBe('')
  })

  it('that are optional may be absent, but not forged', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const tls = { ...terminated, clientValidation: { ca: authority.certPem, isOptional: true } }
    const { https } = await start({ tls, routes: [toOne] }, port)
    expect(await ask(https, {})).toBe('HTTP/1.1 200')
    expect(await ask(https, await clientCertificate(authority))).toBe('HTTP/1.1 200')
    expect(await ask(https, await clientCertificate(other))).toBe('')
  })
})

describe('TLS to backends', () => {
  it.each([
    ['a name that the certificate has', { names: ['backend.test'], isOurs: true }, 200],
    ['one of several names', { names: ['nope.test', 'backend.test'], isOurs: true }, 200],
    ['another name', { names: ['nope.test'], isOurs: true }, 503],
    ['another CA', { names: ['backend.test'], isOurs: false }, 503],
  ])('verifies %s', async (_what, { names, isOurs }, expected) => {
    const issued = await authority.issue({ commonName: 'b', dnsNames: ['backend.test'], usages: 'server' })
    let asked: string | false | undefined
    const server = createHttpsServer({ cert: issued.certPem, key: issued.keyPem }, (request, response) => {
      asked = (request.socket as TLSSocket & { servername?: string | false }).servername
      response.end('ok')
    })
    const port = await listen(server)
    const ca = isOurs ? authority.certPem : other.certPem
    const tls: UpstreamTls = { sni: 'backend.test', validation: { ca, subjectNames: names } }
    const { http } = await start({}, port, { protocol: 'tls', tls })
    expect(await status(http)).toBe(expected)
    if (expected === 200) expect(asked).toBe('backend.test')
    server.closeAllConnections()
  })
})

it('does not use a connection to a backend for another cluster, which may verify other names', async () => {
  const issued = await authority.issue({ commonName: 'b', dnsNames: ['backend.test'], usages: 'server' })
  const server = createHttpsServer({ cert: issued.certPem, key: issued.keyPem }, (_request, response) => response.end())
  const port = await listen(server)
  const cluster = (name: string, subject: string) =>
    clusterOf({
      name,
      protocol: 'tls',
      tls: { sni: 'backend.test', validation: { ca: authority.certPem, subjectNames: [subject] } },
    })
  const routeTo = (path: string, name: string): Route => ({
    ...toOne,
    match: { ...toOne.match, path: { kind: 'prefix', value: path } },
    action: { ...toOne.action, backends: [{ cluster: name, weight: 1 }] } as Route['action'],
  })
  const proxy = createProxy({
    http: { host: '127.0.0.1', port: 0 },
    endpoints: () => [{ host: '127.0.0.1', port }],
  })
  proxy.apply({
    listeners: [
      { protocol: 'http', hosts: [{ host: 'x.test', routes: [routeTo('/good', 'good'), routeTo('/bad', 'bad')] }] },
    ],
    clusters: [cluster('good', 'backend.test'), cluster('bad', 'nope.test')],
    certificates: [],
  })
  const { http } = await proxy.listen()
  cleanups.push(async () => proxy.close(0))
  const ask = async (path: string) =>
    new Promise<number>((resolve, reject) => {
      const call = httpRequest({ ...http, path, headers: { host: 'x.test' }, agent: false }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
      call.on('error', reject)
      call.end()
    })
  expect(await ask('/good')).toBe(200)
  expect(await ask('/bad')).toBe(503)
  server.closeAllConnections()
})

describe('slow clients', () => {
  /** What the proxy sent until it closed the connection. */
  const received = async (socket: Socket) =>
    new Promise<string>((resolve) => {
      let text = ''
      socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(text))
    })

  it('that never complete a header are closed, over TCP and over TLS', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const limits = { limits: { headersTimeoutMs: 50 } }
    const { http, https } = await start({ tls: terminated, routes: [toOne] }, port, {}, limits)
    const plain = connectTcp(http, '127.0.0.1')
    plain.write('GET / HTTP/1.1\r\nhost: x.test\r\nx-a: ')
    expect(await received(plain)).toBe('')
    const socket = await secure(https)
    socket.write('GET / HTTP/1.1\r\nhost: x.test\r\nx-a: ')
    expect(await received(socket)).toBe('')
  })

  it('that send their hello octet by octet are closed, too', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const { https } = await start({ tls: terminated, routes: [toOne] }, port, {}, { limits: { headersTimeoutMs: 250 } })
    const socket = connectTcp(https, '127.0.0.1')
    socket.write(Buffer.from([22, 3, 1, 63, 0, 1]))
    const dripping = setInterval(() => socket.write('x'), 20)
    cleanups.push(async () => clearInterval(dripping))
    expect(await received(socket)).toBe('')
  })

  it('that never complete their hello are closed', async () => {
    const port = await listen(createHttpServer((_request, response) => response.end('ok')))
    const { https } = await start({ tls: terminated, routes: [toOne] }, port, {}, { limits: { headersTimeoutMs: 50 } })
    const socket = connectTcp(https, '127.0.0.1')
    socket.write(Buffer.from([22, 3, 1, 2, 0, 1]))
    expect(await received(socket)).toBe('')
  })
})
