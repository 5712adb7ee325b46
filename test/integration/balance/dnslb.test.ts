/**
 * `seamark dnslb` as a process: a Service of a source cluster becomes an endpoint in a target cluster, a DNSProvider names a
 * BIND by TSIG, and the answers follow the backends. Leases, metrics, clean-up and the standalone form.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { type Client, ConfigMap, CustomResourceDefinition, Lease, Secret, Service } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint, DNSProvider, loadBalancerCrds } from '@seamark/operator'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePort, type Key, type Peer, startBind } from '../dns/peers.ts'
import { createNamespace, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { buildBundle } from '../records/manager-process.ts'
import { ask, type Backends, expectAnswer, POLL_OPTIONS, startBackends } from './backends.ts'
import { type DnslbProcess, startDnslb as startProcess } from './dnslb-process.ts'

const ZONE = 'example.test.'
const NAME = 'shop.example.test'
const [EAST, WEST] = ['127.0.0.2', '127.0.0.3']
const key: Key = {
  name: 'seamark',
  algorithm: 'hmac-sha256',
  secret: Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64'),
}
const zoneText = `$ORIGIN ${ZONE}\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`

/** A provider that keeps its zone in a file. */
const PAPER_PLUGIN = `import { writeFileSync } from 'node:fs'
export const Name = 'paper'
export function register(api) {
  api.registerProviderType('paper', async (name, values) => {
    const sets = new Map()
    const keyOf = (set) => set.name + ' ' + set.type
    return {
      name,
      account: name,
      capabilities: { isAtomic: true, comparesAndSwaps: false, readsByName: true, maxChanges: 100, requestsPerSecond: 100 },
      zones: async () => [{ id: 'example.test.', name: 'example.test.' }],
      read: async (_zone, names) => [...sets.values()].filter((set) => names === 'all' || names.has(set.name)),
      async apply(_zone, batch) {
        for (const { from, to } of batch) {
          if (from !== undefined) sets.delete(keyOf(from))
          if (to !== undefined) sets.set(keyOf(to), to)
        }
        writeFileSync(values.PAPER_FILE, JSON.stringify([...sets.values()]))
      },
    }
  })
}
`

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

beforeAll(() => buildBundle(), 120_000)

function startDnslb(argv: readonly string[], env: Readonly<Record<string, string>> = {}): DnslbProcess {
  const program = startProcess(argv, env)
  cleanups.push(async () => program.kill())
  return program
}

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-dnslb-'))
  cleanups.push(async () => rm(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
  return folder
}

async function startEnvironment(start: () => Promise<TestEnvironment>): Promise<TestEnvironment> {
  const environment = await start()
  cleanups.push(async () => environment[Symbol.asyncDispose]())
  for (const name of ['web', 'garden']) await createNamespace(environment.client, name)
  return environment
}

async function startPeer(): Promise<Peer> {
  const peer = await startBind([{ origin: ZONE, text: zoneText }], [key])
  cleanups.push(async () => peer.close())
  return peer
}

async function startServers(...addresses: string[]): Promise<Backends> {
  const backends = await startBackends(...addresses)
  cleanups.push(async () => backends.close())
  return backends
}

/** The DNS name itself is probed, too: it is resolved by the server of the test. */
const resolverOf = ({ address }: Peer) => ['--resolver', `127.0.0.1:${address.port}`]

/** A server serves a kind a moment after its CRD is established. */
async function createWhenServed(create: () => Promise<unknown>): Promise<void> {
  await expect.poll(async () => create().then(() => 'created', String), POLL_OPTIONS).toBe('created')
}

async function createProvider(client: Client, server: string, secret = key.secret): Promise<void> {
  const settings = { SERVER: server, ZONES: 'example.test', TSIG_NAME: key.name, TSIG_SECRET: secret }
  const data = Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
  )
  await client.create(Secret, { metadata: { namespace: 'web', name: 'bind' }, data })
  await createWhenServed(async () =>
    client.create(DNSProvider, {
      metadata: { namespace: 'web', name: 'bind' },
      spec: { type: 'rfc2136', secretRef: { name: 'bind' } },
    }),
  )
}

async function createBalancer(client: Client, port: number): Promise<void> {
  await createWhenServed(async () =>
    client.create(DNSLoadBalancer, {
      metadata: { namespace: 'web', name: 'shop' },
      spec: { DNSName: NAME, healthPath: '/healthz', healthCheck: { scheme: 'http', port, profile: 'fast' } },
    }),
  )
}

async function createSource(client: Client, ...ips: string[]): Promise<void> {
  await client.create(Service, {
    metadata: {
      namespace: 'web',
      name: 'shop',
      annotations: { 'loadbalancer.gardener.cloud/dnsloadbalancer': 'shop' },
    },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  })
  const status = { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } }
  await client.patch(Service, 'web/shop', 'merge', { status }, { subresource: 'status' })
}

describe.each(environmentKinds)('dnslb with two clusters on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing || !needs('named'))('follows sources, health and deletions, and cleans up', async () => {
    const [source, target] = await Promise.all([startEnvironment(start), startEnvironment(start)])
    const backends = await startServers(EAST, WEST)
    const peer = await startPeer()
    const folder = await folderWith({ source: source.kubeconfig, target: target.kubeconfig })
    const port = await freePort()
    const clusters = ['--kubeconfig', join(folder, 'source'), '--targetkube', join(folder, 'target')]
    const program = startDnslb([
      ...clusters,
      '--cluster',
      'east',
      '--port',
      String(port),
      '--identity',
      'ring',
      ...resolverOf(peer),
    ])
    try {
      await createProvider(target.client, `127.0.0.1:${peer.address.port}`)
      await createBalancer(target.client, backends.port)
      await createSource(source.client, EAST, WEST)
      await expectAnswer(peer.address, NAME, `${EAST} ${WEST}`)
      const names = async () =>
        (await target.client.list(DNSLoadBalancerEndpoint)).items.map(({ metadata }) => metadata.name)
      expect(await names()).toContain('east-shop-service')
      expect(await ask(peer.address, `comment-${NAME}`, 'TXT')).toBe('"owner=ring" "prefix=comment-"')
      await expect
        .poll(async () => (await target.client.get(DNSProvider, 'web/bind')).status, POLL_OPTIONS)
        .toMatchObject({ state: 'Active' })

      await backends.stop(EAST)
      await expectAnswer(peer.address, NAME, WEST)
      const metrics = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      await expect
        .poll(metrics, POLL_OPTIONS)
        .toMatch(/endpoint_hosts\{loadbalancer="web\/shop",endpoint="[^"]+",host="127.0.0.2"\} 0/)
      const health = await fetch(`http://127.0.0.1:${port}/healthz`)
      expect([health.status, (await health.text()).split(':')[0]]).toEqual([200, 'dns'])

      // The leases of both kinds are held in both clusters.
      for (const { client } of [source, target]) {
        const lease = await client.get(Lease, 'garden/dnslb-controller-manager-lease')
        const map = await client.get(ConfigMap, 'garden/dnslb-controller-manager-lease')
        expect(map.metadata.annotations?.['control-plane.alpha.kubernetes.io/leader']).toContain(
          lease.spec?.holderIdentity ?? 'nobody',
        )
      }

      await source.client.delete(Service, 'web/shop')
      await expect.poll(names, POLL_OPTIONS).toEqual([])
      await expect.poll(async () => source.client.find(Service, 'web/shop'), POLL_OPTIONS).toBeUndefined()
      // Without endpoints the last answer stays; with the load balancer it goes, and its series too.
      await expectAnswer(peer.address, NAME, WEST)
      await target.client.delete(DNSLoadBalancer, 'web/shop')
      await expectAnswer(peer.address, NAME, '-')
      expect(await ask(peer.address, `comment-${NAME}`, 'TXT')).toBe('-')
      await expect.poll(metrics, POLL_OPTIONS).not.toContain('web/shop')

      await target.client.delete(DNSProvider, 'web/bind')
      await expect.poll(async () => target.client.find(DNSProvider, 'web/bind'), POLL_OPTIONS).toBeUndefined()
      const secret = async () => (await target.client.get(Secret, 'web/bind')).metadata.finalizers ?? []
      await expect.poll(secret, POLL_OPTIONS).toEqual([])
      expect(await program.stop()).toBe(0)
      expect(program.log()).not.toContain(key.secret)
      // Of both kinds, in both clusters: another process need not wait until they run out.
      expect(program.log().match(/lease released/g)).toHaveLength(4)
    } catch (error) {
      throw new Error(`${String(error)}\n${program.log()}`, { cause: error })
    }
  })
})

describe('dnslb in one cluster', () => {
  const [embedded] = environmentKinds

  it.skipIf(!needs('named'))('keeps a provider in use when its new secret is wrong, and says so', async () => {
    const environment = await startEnvironment(async () => embedded!.start())
    const { client } = environment
    const backends = await startServers(EAST, WEST)
    const peer = await startPeer()
    const folder = await folderWith({ kubeconfig: environment.kubeconfig })
    const program = startDnslb(['--kubeconfig', join(folder, 'kubeconfig'), ...resolverOf(peer)])
    try {
      await createProvider(client, `127.0.0.1:${peer.address.port}`)
      await createBalancer(client, backends.port)
      await createSource(client, EAST, WEST)
      await expectAnswer(peer.address, NAME, `${EAST} ${WEST}`)
      const wrong = Buffer.from(Buffer.from('x'.repeat(32)).toString('base64')).toString('base64')
      await client.patch(Secret, 'web/bind', 'merge', { data: { TSIG_SECRET: wrong } })
      const status = async () => (await client.get(DNSProvider, 'web/bind')).status
      await expect.poll(async () => (await status())?.state, POLL_OPTIONS).toBe('Error')
      await backends.stop(WEST)
      await expectAnswer(peer.address, NAME, EAST)
      const right = Buffer.from(key.secret).toString('base64')
      await client.patch(Secret, 'web/bind', 'merge', { data: { TSIG_SECRET: right } })
      await expect.poll(async () => (await status())?.state, POLL_OPTIONS).toBe('Active')
    } catch (error) {
      throw new Error(`${String(error)}\n${program.log()}`, { cause: error })
    }
  })

  it('ends after one pass, sends nothing in a dry run, and answers by its own DNS server', async () => {
    const backends = await startServers(EAST)
    const check = `{ scheme: http, port: ${backends.port}, profile: fast }`
    const folder = await folderWith({
      watches: `watches: [{ name: ${NAME}, healthPath: /healthz, healthCheck: ${check}, targets: [{ IP: ${EAST} }] }]`,
    })
    const port = await freePort()
    const address = `127.0.0.1:${port}`
    const store = ['--dns-data-dir', join(folder, 'zones')]
    const dns = ['--dns-listen', address, '--dns-zones', 'example.test', '--resolver', address, ...store]
    const watches = ['--watches', join(folder, 'watches')]
    const dry = startDnslb([...watches, ...dns, '--once', '--dry-run'])
    expect(await dry.ended).toBe(0)
    expect(dry.log()).toContain('no changes in dryrun mode')
    expect(dry.log()).not.toContain('zones are in memory only')
    const bare = startDnslb([...watches, ...dns.slice(0, -store.length), '--once', '--dry-run'])
    expect(await bare.ended).toBe(0)
    expect(bare.log()).toContain('set --dns-data-dir')
    const killed = startDnslb([...watches, ...dns])
    const server = { address: '127.0.0.1', port }
    const answer = async () => ask(server, NAME).catch(() => '')
    await expect.poll(answer, POLL_OPTIONS).toBe(EAST)
    killed.child.kill('SIGKILL')
    await killed.ended
    // The zone comes back from its folder, although no endpoint is healthy any more.
    await backends.stop(EAST)
    const program = startDnslb([...watches, ...dns])
    await expect.poll(answer, POLL_OPTIONS).toBe(EAST)
    // The zone answers before the program begins; a file that is wrong at the start would end it.
    await expect.poll(() => program.log(), POLL_OPTIONS).toContain('watch config read')
    await writeFile(join(folder, 'watches'), 'watches: [')
    await expect.poll(() => program.log(), POLL_OPTIONS).toContain('cannot read watch config; nothing changes')
    expect(await answer()).toBe(EAST)
    await writeFile(join(folder, 'watches'), 'watches: []')
    await expect.poll(answer, POLL_OPTIONS).toBe('-')
    program.child.kill('SIGHUP')
    expect(await program.ended).toBe(0)
  })

  it('takes lists of providers and controllers, and plug-ins: a broken one is reported and skipped', async () => {
    const { client, kubeconfig } = await startEnvironment(async () => embedded!.start())
    for (const definition of loadBalancerCrds()) await client.create(CustomResourceDefinition, definition)
    const backends = await startServers(EAST)
    await createBalancer(client, backends.port)
    const endpoint = { metadata: { namespace: 'web', name: 'east' }, spec: { loadbalancer: 'shop', ipaddress: EAST } }
    await client.create(DNSLoadBalancerEndpoint, endpoint)
    // In this mode no DNSProvider counts.
    await client.create(DNSProvider, { metadata: { namespace: 'web', name: 'ignored' }, spec: { type: 'paper' } })
    const folder = await folderWith({ kubeconfig })
    const plugins = await folderWith({
      'paper.mjs': PAPER_PLUGIN,
      'broken.mjs': "export const Name = 'broken'\nthrow new Error('no paper')\n",
      'nameless.mjs': 'export function register() {}\n',
    })
    // The original reads the form with = only as its first argument.
    const lists = ['--controllers', 'endpoint,dns', '--providers', 'paper,nonsense', `--plugin-dir=${plugins}`]
    const file = join(folder, 'paper.json')
    const program = startDnslb(['--kubeconfig', join(folder, 'kubeconfig'), ...lists, '--once'], { PAPER_FILE: file })
    expect(await program.ended, program.log()).toBe(0)
    const sets = JSON.parse(await readFile(file, 'utf8')) as { name: string; type: string; values: string[] }[]
    expect(sets.map(({ name, type, values }) => `${name} ${type} ${values.join(' ')}`).toSorted()).toEqual([
      `comment-${NAME}. TXT "owner=GardenRing" "prefix=comment-"`,
      `${NAME}. A ${EAST}`,
    ])
    expect((await client.get(DNSProvider, 'web/ignored')).status).toBeUndefined()
    for (const text of [
      '"plugin":"paper"',
      'no paper',
      'it exports no Name',
      "ignoring invalid provider type 'nonsense'",
      '"controller":"endpoint-service"',
      '"controller":"balance"',
      'lease released',
    ])
      expect(program.log()).toContain(text)
  })

  it.each([
    [['--watches', '/nonexistent'], "cannot read watch config '/nonexistent'"],
    [['--controllers', 'other'], "unknown controller or group 'other'"],
    [['--plugin-dir', '/nonexistent'], "cannot read plugin dir '/nonexistent'"],
  ])('%o ends with code 1', async (argv, message) => {
    const program = startDnslb(argv)
    expect(await program.ended).toBe(1)
    expect(program.log()).toContain(message)
  })
})
