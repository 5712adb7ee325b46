import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { credentials, ServerCredentials } from '@grpc/grpc-js'
import { createLogger } from '@seamark/kube'
import { createAuthority, type Authority } from '@seamark/kube/certificates'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { AdsClient, objectsOf, rootProxy, service, type AdsClientOptions } from '../../testing/index.ts'
import { build } from '../build/build.ts'
import { BUILD_DEFAULTS } from '../draft/input.ts'
import { serverCredentials } from '../envoy/credentials.ts'
import { createAdsServer, type AdsServer, type AdsServerOptions } from './ads-server.ts'
import { endpointsResource } from './clusters.ts'
import type { Rejection } from './rejections.ts'
import { translate } from './resources.ts'

const log = createLogger({ level: 'silent' as never })
const running: { close(): void | Promise<void> }[] = []

afterEach(async () => {
  for (const each of running.splice(0).toReversed()) await each.close()
})

/** The configuration of hosts `h0.test`, `h1.test`, …, each with a Service of its own. */
function configuration(hosts: number, port = 8080) {
  const indexes = Array.from({ length: hosts }, (_, index) => index)
  const objects = indexes.flatMap((index) => [
    service(`a/s${index}`),
    rootProxy(`a/p${index}`, `h${index}.test`, { routes: [{ services: [{ name: `s${index}`, port: 80 }] }] }),
  ])
  const { ir } = build(objectsOf(objects), BUILD_DEFAULTS)
  const translation = translate(ir, { http: { host: '127.0.0.1', port: 10_000 } })
  const endpoints = new Map(
    ir.clusters.map(({ name }) => [name, endpointsResource(name, [{ host: '192.0.2.1', port }])]),
  )
  return { translation, endpoints }
}

async function start(
  hosts: number,
  options: Partial<AdsServerOptions> = {},
): Promise<{ server: AdsServer; address: string }> {
  const server = createAdsServer({ log, ...options })
  running.push(server)
  const { translation, endpoints } = configuration(hosts)
  server.publish(translation, endpoints)
  const port = await server.listen('127.0.0.1:0', ServerCredentials.createInsecure())
  return { server, address: `127.0.0.1:${port}` }
}

function connect(address: string, options: AdsClientOptions = {}): AdsClient {
  const client = new AdsClient(address, options)
  running.push(client)
  client.start()
  return client
}

const hostsOf = (client: AdsClient): number => client.get('route', 'ingress_http')?.virtual_hosts.length ?? 0

describe.each(['delta', 'state-of-the-world'] as const)('the ADS server, %s', (variant) => {
  it('brings a client from nothing to the configuration, and then to every next one', async () => {
    const { server, address } = await start(2)
    const client = connect(address, { variant })
    await client.until(() => hostsOf(client) === 2)
    expect(client.received.map(({ type }) => type)).toEqual(['cluster', 'endpoints', 'listener', 'route'])
    client.received.length = 0
    const { translation, endpoints } = configuration(3)
    server.publish(translation, endpoints)
    await client.until(() => hostsOf(client) === 3)
    expect(client.received.map(({ type }) => type)).toEqual(['cluster', 'endpoints', 'route'])
    expect(client.names('endpoints')).toHaveLength(3)
  })

  it('sends a change of endpoints alone, and only of that cluster', async () => {
    const { server, address } = await start(20)
    const client = connect(address, { variant })
    await client.until(() => hostsOf(client) === 20)
    client.received.length = 0
    const [name = ''] = client.names('endpoints')
    server.updateEndpoints(new Map([[name, endpointsResource(name, [])]]))
    await client.until(() => client.received.length > 0)
    expect(client.received.map(({ type, names }) => [type, ...names])).toEqual([['endpoints', name]])
  })

  it('reports what a client rejects to the objects that caused it, until it is accepted', async () => {
    let rejections: readonly Rejection[] = []
    const { server, address } = await start(1, { onRejections: (list) => (rejections = list) })
    let isRejecting = false
    const reject: AdsClientOptions['reject'] = ({ type }) =>
      isRejecting && type === 'route' ? 'regex too big' : undefined
    const client = connect(address, { variant, reject })
    await client.until(() => hostsOf(client) === 1)
    isRejecting = true
    const next = configuration(2)
    server.publish(next.translation, next.endpoints)
    await expect.poll(() => rejections.map(({ owners }) => owners.map(({ name }) => name))).toEqual([['p1']])
    expect(rejections[0]?.message).toBe('regex too big')
    isRejecting = false
    const last = configuration(3)
    server.publish(last.translation, last.endpoints)
    await client.until(() => hostsOf(client) === 3)
    await expect.poll(() => rejections).toEqual([])
  })

  it('keeps one response of a type for a client that does not read, and then sends it the newest state', async () => {
    const { server, address } = await start(1)
    const client = connect(address, { variant })
    await client.until(() => hostsOf(client) === 1)
    client.received.length = 0
    client.pause()
    const other = connect(address, { variant })
    for (let hosts = 2; hosts <= 50; hosts++) {
      const { translation, endpoints } = configuration(hosts)
      server.publish(translation, endpoints)
    }
    await other.until(() => hostsOf(other) === 50)
    client.resume()
    await client.until(() => hostsOf(client) === 50)
    // The one that waited, and the newest; removed clusters come later.
    for (const type of ['cluster', 'endpoints', 'route'] as const)
      expect(client.received.filter((each) => each.type === type).length).toBeLessThanOrEqual(2)
  })

  it('does not resend to a client that rejects everything', async () => {
    const { server, address } = await start(1)
    const client = connect(address, { variant, reject: () => 'no' })
    await client.until(() => client.received.length > 0)
    for (let hosts = 2; hosts < 6; hosts++) {
      const { translation, endpoints } = configuration(hosts)
      server.publish(translation, endpoints)
      await client.until(() => client.received.length >= hosts)
    }
    const { length } = client.received
    const again = configuration(5)
    server.publish(again.translation, again.endpoints)
    const other = connect(address, { variant })
    await other.until(() => hostsOf(other) === 5)
    expect(client.received).toHaveLength(length)
  })
})

describe('the ADS server', () => {
  it('does not listen before there is a configuration', async () => {
    const server = createAdsServer({ log })
    running.push(server)
    await expect(server.listen('127.0.0.1:0', ServerCredentials.createInsecure())).rejects.toThrow(
      'no configuration yet',
    )
  })

  it('sends nothing to a client that reconnects to a restarted control plane with the same objects', async () => {
    const first = await start(3)
    const client = connect(first.address)
    await client.until(() => hostsOf(client) === 3)
    const versions = client.versions()
    client.close()
    const second = await start(3)
    const again = connect(second.address, { versions })
    // A later change shows that everything before it was taken in.
    await expect.poll(() => second.server.streams).toBe(1)
    const [name = ''] = Object.keys(versions.endpoints)
    again.subscribe('endpoints', ['unknown'])
    await again.until(() => again.received.length > 0)
    expect(again.received).toEqual([{ type: 'endpoints', names: [], removed: ['unknown'], version: '' }])
    second.server.updateEndpoints(new Map([[name, endpointsResource(name, [])]]))
    await again.until(() => again.received.length > 1)
    expect(again.received[1]).toMatchObject({ type: 'endpoints', names: [name] })
  })

  it('forgets a thousand clients that come and go', async () => {
    const { server, address } = await start(1)
    for (let round = 0; round < 20; round++) {
      const clients = Array.from({ length: 50 }, () => new AdsClient(address))
      for (const client of clients) client.start()
      await Promise.all(clients.map(async (client) => client.until(() => client.received.length > 0)))
      for (const client of clients) client.close()
      await expect.poll(() => server.streams).toBe(0)
    }
    const last = connect(address)
    await last.until(() => hostsOf(last) === 1)
  })

  it('refuses streams beyond its limit, and serves again when others end', async () => {
    const { server, address } = await start(1, { maxStreams: 1 })
    const first = connect(address)
    await first.until(() => hostsOf(first) === 1)
    const second = connect(address)
    await expect(second.until(() => second.received.length > 0)).rejects.toThrow('serves 1 streams at a time')
    first.close()
    await expect.poll(() => server.streams).toBe(0)
    const third = connect(address)
    await third.until(() => hostsOf(third) === 1)
  })
})

describe('mutual TLS', () => {
  let folder: string
  let authority: Authority
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'xds-tls-'))
    authority = await createAuthority({ commonName: 'xds' })
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const file = (name: string) => join(folder, name)

  async function issueServer(from: Authority): Promise<void> {
    const { certPem, keyPem } = await from.issue({
      commonName: 'gw',
      dnsNames: ['localhost'],
      ipAddresses: ['127.0.0.1'],
      usages: 'server',
    })
    writeFileSync(file('tls.crt'), certPem)
    writeFileSync(file('tls.key'), keyPem)
  }

  async function clientOf(trusted: Authority, issuer: Authority | undefined): Promise<AdsClientOptions> {
    const ca = Buffer.from(trusted.certPem)
    if (issuer === undefined) return { credentials: credentials.createSsl(ca) }
    const { certPem, keyPem } = await issuer.issue({ commonName: 'envoy', usages: 'client' })
    return { credentials: credentials.createSsl(ca, Buffer.from(keyPem), Buffer.from(certPem)) }
  }

  it('admits clients of its authority alone, and uses rotated files without a restart', async () => {
    await issueServer(authority)
    writeFileSync(file('ca.crt'), authority.certPem)
    const server = createAdsServer({ log })
    running.push(server)
    const { translation, endpoints } = configuration(1)
    server.publish(translation, endpoints)
    const files = { caFile: file('ca.crt'), certificateFile: file('tls.crt'), keyFile: file('tls.key'), refreshMs: 20 }
    const port = await server.listen('127.0.0.1:0', serverCredentials(files))
    const address = `127.0.0.1:${port}`
    const good = connect(address, await clientOf(authority, authority))
    await good.until(() => hostsOf(good) === 1)

    const other = await createAuthority({ commonName: 'other' })
    for (const issuer of [undefined, other]) {
      const unknownClient = connect(address, await clientOf(authority, issuer))
      await expect(unknownClient.until(() => unknownClient.received.length > 0)).rejects.toThrow('UNAVAILABLE')
    }

    await issueServer(other)
    writeFileSync(file('ca.crt'), other.certPem)
    await expect
      .poll(
        async () => {
          const client = connect(address, await clientOf(other, other))
          await client.until(() => hostsOf(client) === 1).catch(() => undefined)
          return hostsOf(client)
        },
        { timeout: 10_000 },
      )
      .toBe(1)
    // The stream of the old certificate goes on.
    const next = configuration(2)
    server.publish(next.translation, next.endpoints)
    await good.until(() => hostsOf(good) === 2)
  })
})

describe('the port of xDS', () => {
  it('closes connections without a stream, and serves a client beside as many silent ones as it takes', async () => {
    const limits = { maxConnections: 20, maxPerAddress: 10, headersTimeoutMs: 400, idleTimeoutMs: 400 }
    const { server, address } = await start(1, { limits })
    const client = connect(address)
    await client.until(() => hostsOf(client) === 1)
    const port = Number(address.split(':')[1])
    const silent = Array.from({ length: 30 }, () => connectTcp({ host: '127.0.0.1', port }))
    for (const socket of silent) {
      socket.on('error', () => undefined)
      running.push({ close: () => void socket.destroy() })
    }
    await Promise.all(silent.map(async (socket) => new Promise((resolve) => socket.once('close', resolve).resume())))
    const { translation, endpoints } = configuration(2)
    server.publish(translation, endpoints)
    await client.until(() => hostsOf(client) === 2)
    expect(server.streams).toBe(1)
  })
})
