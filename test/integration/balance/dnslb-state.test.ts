/**
 * What `seamark dnslb` says: the state of a load balancer is what its zone answers, also where the resolver of the machine knows
 * nothing of the zone; deleted records and a second installation with the same identity are reported.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { type Client, Event, Secret } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint, DNSProvider } from '@seamark/operator'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePort, type Key, type Peer, startBind } from '../dns/peers.ts'
import { createNamespace, environmentKinds } from '../publish/test-environment.ts'
import { buildBundle } from '../records/manager-process.ts'
import { type Backends, expectAnswer, POLL_OPTIONS, startBackends } from './backends.ts'
import { type DnslbProcess, startDnslb as startProcess } from './dnslb-process.ts'

const NAME = 'shop.example.test'
const [EAST, WEST] = ['127.0.0.2', '127.0.0.3']
const key: Key = {
  name: 'seamark',
  algorithm: 'hmac-sha256',
  secret: Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64'),
}

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

beforeAll(() => buildBundle(), 120_000)

function startDnslb(...argv: readonly string[]): DnslbProcess {
  const program = startProcess(argv)
  cleanups.push(async () => program.kill())
  return program
}

async function folderWith(name: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-state-'))
  cleanups.push(async () => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, name), text, { mode: 0o600 })
  return join(folder, name)
}

async function startServers(): Promise<Backends> {
  const backends = await startBackends(EAST, WEST)
  cleanups.push(async () => backends.close())
  return backends
}

const metricsAt = (port: number) => async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()

async function createObjects(client: Client, server: string, port: number, name = 'shop'): Promise<void> {
  const settings = { SERVER: server, ZONES: 'example.test', TSIG_NAME: key.name, TSIG_SECRET: key.secret }
  const data = Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
  )
  await client.create(Secret, { metadata: { namespace: 'web', name: 'bind' }, data })
  const metadata = { namespace: 'web', name: 'bind' }
  const create = async () =>
    client.create(DNSProvider, { metadata, spec: { type: 'rfc2136', secretRef: { name: 'bind' } } })
  // A server serves a kind a moment after its CRD is established.
  await expect.poll(async () => create().then(() => 'created', String), POLL_OPTIONS).toBe('created')
  await client.create(DNSLoadBalancer, {
    metadata: { namespace: 'web', name },
    spec: {
      DNSName: `${name}.example.test`,
      healthPath: '/healthz',
      healthCheck: { scheme: 'http', port, profile: 'fast' },
    },
  })
  for (const [endpoint, ipaddress] of Object.entries({ east: EAST, west: WEST }))
    await client.create(DNSLoadBalancerEndpoint, {
      metadata: { namespace: 'web', name: endpoint },
      spec: { loadbalancer: name, ipaddress },
    })
}

const zone = `$ORIGIN example.test.\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`
const [embedded] = environmentKinds

async function startCluster() {
  const environment = await embedded!.start()
  cleanups.push(async () => environment[Symbol.asyncDispose]())
  for (const namespace of ['web', 'garden']) await createNamespace(environment.client, namespace)
  const kubeconfig = await folderWith('kubeconfig', environment.kubeconfig)
  return { client: environment.client, kubeconfig }
}

async function startPeer(): Promise<Peer> {
  const peer = await startBind([{ origin: 'example.test.', text: zone }], [key])
  cleanups.push(async () => peer.close())
  return peer
}

/** `<kind> <type>: <text>` */
async function eventsIn(client: Client): Promise<string[]> {
  const { items } = await client.list(Event, { namespace: 'web' })
  return items.map(({ regarding, type, note }) => `${regarding?.kind} ${type}: ${note}`)
}

describe('the state of a load balancer of dnslb', () => {
  it.skipIf(!needs('named'))(
    'is that of the records in the zone of its provider, which no resolver knows',
    async () => {
      const environment = await embedded!.start()
      cleanups.push(async () => environment[Symbol.asyncDispose]())
      const { client } = environment
      for (const namespace of ['web', 'garden']) await createNamespace(client, namespace)
      const zone = `$ORIGIN example.test.\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`
      const peer = await startBind([{ origin: 'example.test.', text: zone }], [key])
      cleanups.push(async () => peer.close())
      const backends = await startServers()
      const port = await freePort()
      const kubeconfig = await folderWith('kubeconfig', environment.kubeconfig)
      const program = startDnslb('--kubeconfig', kubeconfig, '--port', String(port))
      const metrics = metricsAt(port)
      const state = async () => (await client.get(DNSLoadBalancer, 'web/shop')).status?.state
      try {
        await expect.poll(async () => metrics().then(() => 'up', String), POLL_OPTIONS).toBe('up')
        await createObjects(client, `127.0.0.1:${peer.address.port}`, backends.port)
        await expectAnswer(peer.address, NAME, `${EAST} ${WEST}`)
        await expect.poll(state, POLL_OPTIONS).toBe('healthy')
        expect(await metrics()).toContain('loadbalancer_health{loadbalancer="web/shop"} 1')
        await backends.stop(EAST)
        await backends.stop(WEST)
        // The last answer stays in the zone; nobody is there.
        await expect.poll(state, POLL_OPTIONS).toBe('unreachable')
        expect(await metrics()).toContain('loadbalancer_health{loadbalancer="web/shop"} 0')
        await backends.start(WEST)
        await expect.poll(state, POLL_OPTIONS).toBe('healthy')
        // A pass is measured in fractions of a second.
        expect(await metrics()).toMatch(/^dns_reconcile_duration 0\.\d+$/m)
      } catch (error) {
        throw new Error(`${String(error)}\n${program.log()}`, { cause: error })
      }
    },
  )

  it('is that of its own DNS server, without a cluster', async () => {
    const backends = await startServers()
    const check = `{ scheme: http, port: ${backends.port}, profile: fast }`
    const watches = await folderWith(
      'watches',
      `watches: [{ name: ${NAME}, healthPath: /healthz, healthCheck: ${check}, targets: [{ IP: ${EAST} }] }]`,
    )
    const [port, dnsPort] = [await freePort(), await freePort()]
    const dns = ['--dns-listen', `127.0.0.1:${dnsPort}`, '--dns-zones', 'example.test']
    const program = startDnslb('--watches', watches, ...dns, '--port', String(port))
    const health = async () => /^loadbalancer_health\{.*\} (\d)$/m.exec(await metricsAt(port)().catch(() => ''))?.[1]
    try {
      await expect.poll(health, POLL_OPTIONS).toBe('1')
      await backends.stop(EAST)
      await expect.poll(health, POLL_OPTIONS).toBe('0')
    } catch (error) {
      throw new Error(`${String(error)}\n${program.log()}`, { cause: error })
    }
  })
})

describe.skipIf(!needs('named'))('dnslb reports', () => {
  it('each record that it deletes, with the reason, as a log line and an Event', async () => {
    const [{ client, kubeconfig }, peer, backends] = await Promise.all([startCluster(), startPeer(), startServers()])
    const program = startDnslb('--kubeconfig', kubeconfig)
    const events = async () => (await eventsIn(client)).join('\n')
    const linesOf = (text: string) =>
      program
        .log()
        .split('\n')
        .filter((line) => line.includes('"msg":"record deleted"') && line.includes(text))
    try {
      await createObjects(client, `127.0.0.1:${peer.address.port}`, backends.port)
      await expectAnswer(peer.address, NAME, `${EAST} ${WEST}`)
      await client.delete(DNSLoadBalancer, 'web/shop')
      await expectAnswer(peer.address, NAME, '-')
      await expect
        .poll(events, POLL_OPTIONS)
        .toContain(`DNSProvider Normal: record deleted: ${NAME} A ${EAST} ${WEST}: LoadBalancerDeleted`)
      expect(linesOf('LoadBalancerDeleted')).toHaveLength(1)
    } catch (error) {
      throw new Error(`${String(error)}\n${program.log()}`, { cause: error })
    }
  })

  it('that another installation uses its identity on the same zone, and deletes its records no more', async () => {
    const [one, two, peer, backends] = await Promise.all([startCluster(), startCluster(), startPeer(), startServers()])
    const server = `127.0.0.1:${peer.address.port}`
    const started = [one, two].map(({ kubeconfig }) => startDnslb('--kubeconfig', kubeconfig, '--interval', '1'))
    try {
      await Promise.all([
        createObjects(one.client, server, backends.port, 'east'),
        createObjects(two.client, server, backends.port, 'west'),
      ])
      const conflict = async (client: Client) =>
        (await client.get(DNSProvider, 'web/bind')).status?.conditions?.find(({ type }) => type === 'SecondWriter')
      // Either of them finds the other one's records first.
      const told = async () =>
        (await Promise.all([one, two].map(async ({ client }) => conflict(client)))).map((found) => found?.status)
      await expect.poll(told, POLL_OPTIONS).toContain('True')
      const index = (await told()).indexOf('True')
      const { client } = index === 0 ? one : two
      expect(await conflict(client)).toMatchObject({
        reason: 'SecondWriter',
        message: expect.stringContaining('--identity'),
      })
      const events = async () => (await eventsIn(client)).join('\n')
      await expect.poll(events, POLL_OPTIONS).toMatch(/DNSProvider Warning: records that were deleted are there again/)
      expect(started[index]?.log()).toContain('Another installation uses this identity')
      // What the other one wrote again stays.
      await expectAnswer(peer.address, index === 0 ? 'west.example.test' : 'east.example.test', `${EAST} ${WEST}`)
    } catch (error) {
      throw new Error(`${String(error)}\n${started.map((program) => program.log()).join('\n---\n')}`, { cause: error })
    }
  })
})
