/** The shipped `seamark gateway` with clients that hold connections: silent ones, and ones that send an octet now and then. */
import { once } from 'node:events'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { isThorough } from '@seamark/kit'
import { Namespace, Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../integration/publish/test-environment.ts'
import { statusAt } from '../integration/gateway/started-verb.ts'
import { startTestCluster, type TestCluster } from '../integration/gateway/test-cluster.ts'
import { type LimitedProcess, startLimited } from './limited-process.ts'
import { expectUnharmed } from './watched-victim.ts'

const HEAP_MIB = 512
/** Of the process with everything that is no heap, in MiB. */
const MEMORY_MIB = 512
const HOST = 'victim.example.test'
const TENANT = 'tenant.example.test'
const QUIET_MS = isThorough ? 3_000 : 1_000

let cluster: TestCluster
let gateway: LimitedProcess
const ports = { probes: 0, metrics: 0, http: 0 }
const open = new Set<Socket>()

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

beforeAll(async () => {
  cluster = await startTestCluster()
  await cluster.client.create(Namespace, { metadata: { name: 'victim' } })
  await cluster.client.create(HTTPProxy, {
    metadata: { namespace: 'victim', name: 'victim' },
    spec: { virtualhost: { fqdn: HOST }, routes: [{ directResponsePolicy: { statusCode: 200, body: 'ok' } }] },
  })
  await cluster.client.create(Namespace, { metadata: { name: 'tenant' } })
  await cluster.client.create(Service, {
    metadata: { namespace: 'tenant', name: 'web' },
    spec: { ports: [{ name: 'web', port: 80 }] },
  })
  await cluster.client.create(HTTPProxy, {
    metadata: { namespace: 'tenant', name: 'tenant' },
    spec: {
      virtualhost: { fqdn: TENANT },
      routes: [{ services: [{ name: 'web', port: 80 }], retryPolicy: { count: 1, perTryTimeout: '1s' } }],
    },
  })
  ;[ports.probes, ports.metrics] = [await freePort(), await freePort()]
  const flags = [
    `--kubeconfig=${cluster.kubeconfig}`,
    '--namespace=default',
    '--http-listen=127.0.0.1:0',
    '--https-listen=127.0.0.1:0',
    `--probes=127.0.0.1:${ports.probes}`,
    `--metrics=127.0.0.1:${ports.metrics}`,
  ]
  gateway = startLimited('bin/seamark', ['gateway', ...flags], HEAP_MIB)
  const [, http = ''] = await gateway.line(/^ready \S+?:(\d+) /)
  ports.http = Number(http)
  await eventually(
    'an answer',
    async () => statusAt(ports.http, HOST),
    (status) => status === 200,
  )
}, 90_000)

afterAll(async () => {
  for (const socket of open) socket.destroy()
  await gateway.stop()
  await cluster.stop()
})

function hold(port: number, octets = ''): Socket {
  const socket = connect({ host: '127.0.0.1', port })
  open.add(socket)
  socket.on('error', () => undefined)
  socket.on('close', () => open.delete(socket))
  socket.resume().write(octets)
  return socket
}

/** In parts: the victims are asked by the same process, which must not stand still itself. */
async function holdMany(count: number, port: number, octets: readonly string[] = ['']): Promise<Socket[]> {
  const sockets: Socket[] = []
  while (sockets.length < count) {
    const part = Array.from({ length: 25 }, (_, index) => hold(port, octets[index % octets.length]))
    await Promise.all(part.map(async (socket) => once(socket, 'connect')))
    sockets.push(...part)
  }
  return sockets
}

/** Also by a reset, with which `once` of node:events would reject. */
const closed = async (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.destroyed ? resolve() : socket.once('close', () => resolve())))

it('1 050 silent connections each to the ports of probes and metrics: they are answered, and so is the proxy', async () => {
  const victims = {
    '/healthz': { host: '127.0.0.1', port: ports.probes, path: '/healthz' },
    '/metrics': { host: '127.0.0.1', port: ports.metrics, path: '/metrics' },
    'the proxy': { host: '127.0.0.1', port: ports.http, headers: { host: HOST } },
  }
  await expectUnharmed(victims, QUIET_MS, async () => {
    const held = await Promise.all([ports.probes, ports.metrics].map(async (port) => holdMany(1_050, port)))
    await Promise.all(held.flat().map(closed))
  })
  expect(gateway.isRunning()).toBe(true)
}, 60_000)

it('200 clients that send an octet every 2 s are closed within the time of a header, 15 s', async () => {
  const victims = { 'the proxy': { host: '127.0.0.1', port: ports.http, headers: { host: HOST } } }
  await expectUnharmed(victims, QUIET_MS, async () => {
    const starts = ['', 'GET / HTTP/1.1\r\nhost: x\r\nx: ', 'PRI * HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']
    const sockets = await holdMany(200, ports.http, starts)
    const began = performance.now()
    const dripping = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write('x')
    }, 2_000)
    await Promise.all(sockets.map(closed))
    clearInterval(dripping)
    // A second for a machine that is busy with other tests.
    expect(performance.now() - began).toBeLessThan(16_000)
  })
}, 60_000)

/** A request whose body is never complete; resolves when it is answered, or nothing more of it is to be read. */
async function holdBody(session: ClientHttp2Session, part: Buffer): Promise<void> {
  const headers = { ':method': 'POST', ':path': '/', ':authority': TENANT, 'content-length': part.length + 1 }
  const stream = session.request(headers, { endStream: false })
  stream.on('error', () => undefined)
  await new Promise<void>((resolve) => {
    stream.on('response', () => resolve())
    stream.on('close', () => resolve())
    stream.write(part, () => resolve())
  })
}

it('600 bodies of 1 MB that are not completed, to a route with retries, do not fill the memory', async () => {
  const victims = { 'the proxy': { host: '127.0.0.1', port: ports.http, headers: { host: HOST } } }
  await expect.poll(async () => statusAt(ports.http, TENANT)).toBe(503)
  const part = Buffer.alloc(1_000_000, 'x')
  await expectUnharmed(victims, QUIET_MS, async () => {
    const sessions = Array.from({ length: 6 }, () => connectHttp2(`http://127.0.0.1:${ports.http}`))
    for (const session of sessions) session.on('error', () => undefined)
    for (let round = 0; round < 100; round++)
      await Promise.all(sessions.map(async (session) => holdBody(session, part)))
    for (const session of sessions) session.destroy()
  })
  expect(gateway.isRunning()).toBe(true)
  const peak = await gateway.peakMib()
  process.stdout.write(`peak of the process ${peak?.toFixed(0)} MiB\n`)
  expect(peak ?? 0).toBeLessThanOrEqual(MEMORY_MIB)
}, 60_000)

it('metrics answer GET and HEAD only', async () => {
  const url = `http://127.0.0.1:${ports.metrics}/metrics`
  for (const method of ['GET', 'HEAD']) expect((await fetch(url, { method })).status).toBe(200)
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) expect((await fetch(url, { method })).status).toBe(405)
})
