/**
 * Publish beside fleet and balance: a root is answered with addresses that a probe confirmed, by one publisher, and records of
 * an earlier version are handed over while the name is answered.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords } from '@seamark/dns'
import { type Client, Event, Ingress, kind, Namespace, type Obj } from '@seamark/kube'
import { needs } from '@seamark/kit'
import {
  type AppOptions,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  DnsConfig,
  type Explanation,
  GlobalIngressPolicy,
  HostClaim,
  loadConfig,
  type PublishOptions,
  unified,
  HTTPProxy,
} from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { describe, expect, it } from 'vitest'
import { runCommand } from '../records/run-command.ts'
import { FleetEnvironment, POLL_OPTIONS, root, startEmbedded, startReal } from './test-environment.ts'

const rbac = (name: string, plural: string) =>
  kind<Obj & { rules?: object[]; roleRef?: object; subjects?: object[] }>({
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    kind: name,
    plural,
    namespaced: false,
  })
const ClusterRole = rbac('ClusterRole', 'clusterroles')
const ClusterRoleBinding = rbac('ClusterRoleBinding', 'clusterrolebindings')

const HOST = 'shop.example.com'
const SERVERS = [
  { name: 'the embedded server', start: startEmbedded, isMissing: false },
  { name: 'kube-apiserver', start: startReal, isMissing: !needs('kube-apiserver', 'etcd') },
]
/** Publish of an earlier version: it takes a root for a source like any other. */
const EARLIER: PublishOptions = { ...unified, roots: 'ignored' }

class Gateway {
  readonly #address: string
  #server: Server | undefined
  port: number

  constructor(address: string, port = 0) {
    this.#address = address
    this.port = port
  }

  async start(): Promise<this> {
    const server = createServer((_request, response) => response.end('ok'))
    await new Promise<void>((resolve) => server.listen(this.port, this.#address, resolve))
    this.port = (server.address() as AddressInfo).port
    this.#server = server
    return this
  }

  stop(): void {
    this.#server?.closeAllConnections()
    this.#server?.close()
    this.#server = undefined
  }
}

function balance(): NonNullable<AppOptions['balance']> {
  const loaded = loadConfig({ flags: { 'balance-enabled': 'true' } })
  if (!loaded.ok) throw new Error(loaded.faults.join('; '))
  return { config: loaded.config.balance, startThread: proberInThisThread(20) }
}

/** A manager with a DNS server; returns its address. */
async function start(environment: FleetEnvironment, publish: PublishOptions) {
  let running: ReturnType<FleetEnvironment['run']> | undefined
  const address = await new Promise<string>((resolve) => {
    running = environment.run(
      {},
      {
        publish,
        balance: balance(),
        dns: { config: DnsConfig.parse({ listen: ['127.0.0.1:0'], zones: ['example.com'] }), env: {} },
        onReady: ({ dns: [first] = [] }) => resolve(first ?? ''),
      },
    )
  })
  return { server: { address: '127.0.0.1', port: Number(address.split(':').at(-1)) }, stop: () => running?.stop() }
}

type Resolver = ReturnType<typeof createDnsClient>

async function resolve(resolver: Resolver, server: { address: string; port: number }): Promise<string[]> {
  const { message } = await resolver.query({ server, name: HOST, type: 'A' })
  return groupRecords(message.answers)
    .flatMap(({ values }) => [...values])
    .sort()
}

const endpointsOf = async (client: Client): Promise<string[]> =>
  (await client.list(DNSEndpoint, { namespace: 'shop' })).items.map(({ metadata }) => metadata.name ?? '').sort()

async function withFleet(
  startServer: typeof startEmbedded,
  run: (given: { environment: FleetEnvironment; eu1: Gateway; us1: Gateway; resolver: Resolver }) => Promise<void>,
) {
  const resolver = createDnsClient()
  // The port has to be free on both addresses.
  const eu1 = await new Gateway('127.0.0.1').start()
  const us1 = await new Gateway('127.0.0.2', eu1.port).start()
  try {
    await using environment = await FleetEnvironment.start(['eu1', 'us1'], startServer)
    for (const name of ['eu1', 'us1']) {
      await environment.register(name)
      await environment.deploy(name)
    }
    await environment.hub.client.create(GlobalIngressPolicy, {
      metadata: { namespace: 'shop', name: 'shop' },
      spec: {
        targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
        traffic: { ttlSeconds: 1 },
        migration: { drainSeconds: 1, minHoldSeconds: 0 },
        health: { protocol: 'HTTP', port: eu1.port, intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 2 },
      },
    } as GlobalIngressPolicy)
    await run({ environment, eu1, us1, resolver })
  } finally {
    await resolver.close()
    eu1.stop()
    us1.stop()
  }
}

async function admit(environment: FleetEnvironment): Promise<void> {
  await environment.admit('eu1', 'shop/shop', '127.0.0.1')
  await environment.admit('us1', 'shop/shop', '127.0.0.2')
  const merged = async () =>
    (await environment.hub.client.get(Ingress, 'shop/shop')).status?.loadBalancer?.ingress?.length
  await expect.poll(merged, POLL_OPTIONS).toBe(2)
}

describe.each(SERVERS)('with fleet and balance, on $name', ({ start: startServer, isMissing }) => {
  it.skipIf(isMissing)('a root is not answered before a probe passed, and then by balance alone', async () => {
    await withFleet(startServer, async ({ environment, eu1, us1, resolver }) => {
      eu1.stop()
      us1.stop()
      const { client } = environment.hub
      const { server } = await start(environment, unified)
      await client.create(Ingress, root('shop', HOST))
      await admit(environment)
      // Health of both endpoints is known: whoever publishes unproven addresses has done so.
      const lost = async () => (await client.list(DNSLoadBalancer)).items.map(({ status }) => status?.state)
      await expect.poll(lost, POLL_OPTIONS).toEqual(['unreachable'])
      expect(await endpointsOf(client)).toEqual([])
      expect(await resolve(resolver, server)).toEqual([])
      await us1.start()
      await expect.poll(async () => resolve(resolver, server), POLL_OPTIONS).toEqual(['127.0.0.2'])
      await eu1.start()
      await expect.poll(async () => resolve(resolver, server), POLL_OPTIONS).toEqual(['127.0.0.1', '127.0.0.2'])
      us1.stop()
      await expect.poll(async () => resolve(resolver, server), POLL_OPTIONS).toEqual(['127.0.0.1'])
      expect(await endpointsOf(client)).toMatchObject([expect.stringMatching(/-dnslb$/)])
    })
  })

  it.skipIf(isMissing)(
    'the DNSEndpoint that an earlier version wrote for a root is handed over, and the name is answered at every step',
    async () => {
      await withFleet(startServer, async ({ environment, eu1, us1, resolver }) => {
        eu1.stop()
        us1.stop()
        const { client } = environment.hub
        const earlier = await start(environment, EARLIER)
        await client.create(Ingress, root('shop', HOST))
        await admit(environment)
        await expect
          .poll(async () => resolve(resolver, earlier.server), POLL_OPTIONS)
          .toEqual(['127.0.0.1', '127.0.0.2'])
        expect(await endpointsOf(client)).toEqual(['shop-ingress'])
        await earlier.stop()

        const { server } = await start(environment, unified)
        const seen = new Set<string>()
        const observe = async (): Promise<string[]> => {
          const answer = await resolve(resolver, server)
          seen.add(answer.join(' '))
          return answer
        }
        await observe()
        const states = async () => {
          await observe()
          return (await client.list(DNSLoadBalancer)).items.map(({ status }) => status?.state)
        }
        await expect.poll(states, POLL_OPTIONS).toEqual(['unreachable'])
        // No probe passed: balance publishes nothing, and what publish wrote stays.
        expect(await endpointsOf(client)).toEqual(['shop-ingress'])
        await us1.start()
        await expect.poll(observe, { ...POLL_OPTIONS, interval: 2 }).toEqual(['127.0.0.2'])
        expect(await endpointsOf(client)).toMatchObject([expect.stringMatching(/-dnslb$/)])
        expect([...seen].sort()).toEqual(['127.0.0.1 127.0.0.2', '127.0.0.2'])
      })
    },
  )
})

it('explain knows which capabilities the manager of its configuration has: balance publishes before it wrote a status', async () => {
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  await client.create(DNSLoadBalancer, { metadata: { namespace: 'shop', name: 'app' }, spec: { DNSName: HOST } })
  await client.create(Ingress, {
    metadata: { namespace: 'shop', name: 'app' },
    spec: { ingressClassName: 'nginx', rules: [{ host: HOST }] },
  })
  const folder = await mkdtemp(join(tmpdir(), 'seamark-publishers-'))
  try {
    const kubeconfig = join(folder, 'kubeconfig')
    await writeFile(kubeconfig, environment.hub.kubeconfig)
    const flags = ['--kubeconfig', kubeconfig, '-o', 'json']
    const alone = await runCommand(['explain', HOST, ...flags])
    expect((JSON.parse(alone.stdout) as Explanation).firstBroken).toMatchObject({ name: 'address' })
    const beside = await runCommand(['explain', HOST, '--balance-enabled', ...flags])
    expect((JSON.parse(beside.stdout) as Explanation).verdict).toMatchObject({ state: 'broken', at: 'health' })
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('a publish that runs in another process leaves a root to balance', async () => {
  await withFleet(startEmbedded, async ({ environment }) => {
    const { client } = environment.hub
    environment.run({}, { balance: balance() })
    const publish = environment.run({}, { publish: unified, fleet: undefined } as never)
    await client.create(Ingress, root('shop', HOST))
    // A source of publish, created after the root: what publish does about the root is done before.
    await admit(environment)
    await client.create(Ingress, {
      metadata: { namespace: 'shop', name: 'plain' },
      spec: { ingressClassName: 'nginx', rules: [{ host: 'plain.example.com' }] },
    })
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }
    await client.patch(Ingress, 'shop/plain', 'merge', { status }, { subresource: 'status' })
    await expect
      .poll(async () => endpointsOf(client), POLL_OPTIONS)
      .toEqual([expect.stringMatching(/-dnslb$/), 'plain-ingress'])
    expect(publish.writes.filter((write) => write.includes('/dnsendpoints/shop-'))).toEqual([])
  })
})

describe.each(SERVERS)('a host of an older source of publish, on $name', ({ start: startServer, isMissing }) => {
  it.skipIf(isMissing)(
    'passes to a younger load balancer of another namespace only when the source is gone',
    async () => {
      const backend = await new Gateway('127.0.0.1').start()
      const resolver = createDnsClient()
      try {
        await using environment = await FleetEnvironment.start([], startServer)
        const { client } = environment.hub
        await client.create(Namespace, { metadata: { name: 'other' } })
        await client.create(Ingress, {
          metadata: { namespace: 'shop', name: 'older' },
          spec: { ingressClassName: 'nginx', rules: [{ host: HOST }] },
        })
        // Creation times have seconds: the load balancer has to be younger.
        const born = Date.parse((await client.get(Ingress, 'shop/older')).metadata.creationTimestamp ?? '')
        await expect.poll(() => Date.now(), POLL_OPTIONS).toBeGreaterThan(born + 1_000)
        const balancer = async (name: string, DNSName: string) => {
          const healthCheck = { scheme: 'http' as const, port: backend.port, interval: '1s', timeout: '1s', rise: 1 }
          const spec = { DNSName, ttl: 1, healthPath: '/', healthCheck }
          await client.create(DNSLoadBalancer, { metadata: { namespace: 'other', name }, spec })
          await client.create(DNSLoadBalancerEndpoint, {
            metadata: { namespace: 'other', name },
            spec: { loadbalancer: name, ipaddress: '127.0.0.1' },
          })
        }
        await balancer('young', HOST)
        const { server } = await start(environment, unified)
        // Of a load balancer that is created later and free: what balance does about the first is done.
        await balancer('free', 'free.example.com')
        const published = async (): Promise<string[]> =>
          (await client.list(DNSEndpoint)).items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort()
        await expect.poll(published, POLL_OPTIONS).toContain('other/free-dnslb')
        const ready = async () =>
          (await client.get(DNSLoadBalancer, 'other/young')).status?.conditions?.find(({ type }) => type === 'Ready')
        await expect.poll(ready, POLL_OPTIONS).toMatchObject({
          status: 'False',
          reason: 'ClaimHeldByOther',
          message: expect.stringContaining('Ingress shop/older'),
        })
        expect(await published()).toEqual(['other/free-dnslb'])
        // The source gets its address after balance could have published.
        const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }
        await client.patch(Ingress, 'shop/older', 'merge', { status }, { subresource: 'status' })
        await expect.poll(async () => resolve(resolver, server), POLL_OPTIONS).toEqual(['192.0.2.1'])
        expect(await published()).toEqual(['other/free-dnslb', 'shop/older-ingress'])
        await client.delete(Ingress, 'shop/older')
        // Where no controller manager runs, the test collects garbage.
        await client.delete(DNSEndpoint, 'shop/older-ingress').catch(() => undefined)
        await expect
          .poll(async () => resolve(resolver, server), { ...POLL_OPTIONS, timeout: 100_000 })
          .toEqual(['127.0.0.1'])
        expect(await ready()).toMatchObject({ status: 'True' })
        expect(await published()).toEqual(['other/free-dnslb', 'other/young-dnslb'])
      } finally {
        await resolver.close()
        backend.stop()
      }
    },
  )
})

it('a load balancer and a source of two namespaces that name one host are told about each other', async () => {
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  await client.create(Namespace, { metadata: { name: 'other' } })
  const spec = (host: string) => ({ ingressClassName: 'nginx', rules: [{ host }] })
  await client.create(DNSLoadBalancer, {
    metadata: { namespace: 'other', name: 'first' },
    spec: { DNSName: 'a.example.com' },
  })
  await client.create(Ingress, { metadata: { namespace: 'shop', name: 'second' }, spec: spec('b.example.com') })
  // Creation times have seconds: the next objects have to be younger.
  const born = Date.parse((await client.get(Ingress, 'shop/second')).metadata.creationTimestamp ?? '')
  await expect.poll(() => Date.now(), POLL_OPTIONS).toBeGreaterThan(born + 1_000)
  await client.create(Ingress, { metadata: { namespace: 'shop', name: 'late' }, spec: spec('a.example.com') })
  await client.create(DNSLoadBalancer, {
    metadata: { namespace: 'other', name: 'late-balancer' },
    spec: { DNSName: 'b.example.com' },
  })
  environment.run({}, { publish: unified, balance: balance() })
  const told = async () =>
    (await client.list(Event)).items
      .filter(({ reason }) => reason === 'ClaimHeldByOther' || reason === 'HostShared')
      .map(
        ({ regarding, reason, note = '' }) =>
          `${regarding?.kind} ${regarding?.name} ${reason}: ${note.split(' since ')[0]}`,
      )
      .sort()
  await expect
    .poll(told, POLL_OPTIONS)
    .toEqual([
      'DNSLoadBalancer first HostShared: Ingress shop/late names host a.example.com, too; it belongs to this object, and publish writes no record for the other',
      'DNSLoadBalancer late-balancer ClaimHeldByOther: host b.example.com belongs to Ingress shop/second',
      'Ingress late ClaimHeldByOther: host a.example.com belongs to DNSLoadBalancer other/first',
      'Ingress second HostShared: DNSLoadBalancer other/late-balancer names host b.example.com, too; it belongs to this object, which is older',
    ])
})

/** Events that tell the holder of a host of another object. */
const shared = async (client: Client): Promise<string[]> =>
  (await client.list(Event)).items
    .filter(({ reason }) => reason === 'HostShared')
    .map(({ regarding, note }) => `${regarding?.kind} ${regarding?.namespace}/${regarding?.name}: ${note}`)
    .sort()

it('two load balancers that name one host are told about each other, once', async () => {
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  const create = async (name: string) =>
    client.create(DNSLoadBalancer, { metadata: { namespace: 'shop', name }, spec: { DNSName: HOST } })
  // Of one second: the name decides.
  await create('late')
  await create('first')
  const expected = [
    `DNSLoadBalancer shop/first: DNSLoadBalancer shop/late names host ${HOST}, too; it belongs to this object, which is older`,
  ]
  const before = environment.run({}, { publish: unified, balance: balance() })
  await expect.poll(async () => shared(client), POLL_OPTIONS).toEqual(expected)
  await before.stop()
  environment.run({}, { publish: unified, balance: balance() })
  const reason = async (name: string) =>
    (await client.get(DNSLoadBalancer, `shop/${name}`)).status?.conditions?.find(({ type }) => type === 'Ready')?.reason
  await create('third')
  await expect.poll(async () => reason('third'), POLL_OPTIONS).toBe('NameClaimed')
  await expect.poll(async () => shared(client), POLL_OPTIONS).toHaveLength(2)
  const counts = (await client.list(Event)).items
    .filter(({ reason: code }) => code === 'HostShared')
    .map(({ series }) => series?.count ?? 1)
  expect([(await shared(client)).slice(0, 1), counts]).toEqual([expected, [1, 1]])
})

it.each([
  { beside: 'publish', parts: { publish: unified } },
  { beside: 'no publish', parts: {} },
])(
  'a root that has no leaf yet keeps its host from a younger load balancer of another namespace, beside $beside',
  async ({ parts }) => {
    const backend = await new Gateway('127.0.0.1').start()
    try {
      await using environment = await FleetEnvironment.start([])
      const { client } = environment.hub
      await client.create(Namespace, { metadata: { name: 'other' } })
      await client.create(Ingress, root('shop', HOST))
      const born = Date.parse((await client.get(Ingress, 'shop/shop')).metadata.creationTimestamp ?? '')
      environment.run({}, { ...parts, balance: balance() })
      await expect.poll(async () => (await client.list(HostClaim)).items.length, POLL_OPTIONS).toBe(1)
      // Creation times have seconds: the load balancers have to be younger.
      await expect.poll(() => Date.now(), POLL_OPTIONS).toBeGreaterThan(born + 1_000)
      const healthCheck = { scheme: 'tcp' as const, port: backend.port, interval: '1s', timeout: '1s', rise: 1 }
      for (const [name, DNSName] of [
        ['young', HOST],
        ['free', 'free.example.com'],
      ] as const) {
        const metadata = { namespace: 'other', name }
        const spec = { loadbalancer: name, ipaddress: '127.0.0.1' }
        await client.create(DNSLoadBalancerEndpoint, { metadata, spec })
        await client.create(DNSLoadBalancer, { metadata, spec: { DNSName, healthCheck } })
      }
      const published = async () => (await client.list(DNSEndpoint)).items.map(({ metadata }) => metadata.name)
      await expect.poll(published, POLL_OPTIONS).toEqual(['free-dnslb'])
      expect((await client.get(DNSLoadBalancer, 'other/young')).status?.conditions).toMatchObject([
        {
          type: 'Ready',
          status: 'False',
          reason: 'ClaimHeldByOther',
          message: expect.stringContaining('Ingress shop/shop'),
        },
      ])
      await expect
        .poll(async () => shared(client), POLL_OPTIONS)
        .toEqual([
          `Ingress shop/shop: DNSLoadBalancer other/young names host ${HOST}, too; it belongs to this object, which is older`,
        ])
    } finally {
      backend.stop()
    }
  },
)

it('two sources of two namespaces that name one host are told about each other, once', async () => {
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  await client.create(Namespace, { metadata: { name: 'other' } })
  const rules = [{ host: 'a.example.com' }, { host: 'b.example.com' }]
  const create = async (namespace: string, name: string) =>
    client.create(Ingress, { metadata: { namespace, name }, spec: { ingressClassName: 'nginx', rules } })
  const first = await create('shop', 'first')
  const born = Date.parse(first.metadata.creationTimestamp ?? '')
  await expect.poll(() => Date.now(), POLL_OPTIONS).toBeGreaterThan(born + 1_000)
  await create('other', 'late')
  const expected = [
    'Ingress shop/first: Ingress other/late names hosts a.example.com, b.example.com, too; this object has it, which is older',
  ]
  const publish = { publish: unified, fleet: undefined } as never
  const before = environment.run({}, publish)
  await expect.poll(async () => shared(client), POLL_OPTIONS).toEqual(expected)
  // Something else changes: what is known is not said again, nor by the process that follows.
  await client.patch(Ingress, 'other/late', 'merge', { metadata: { labels: { seen: 'again' } } })
  await before.stop()
  environment.run({}, publish)
  await client.create(Ingress, {
    metadata: { namespace: 'shop', name: 'plain' },
    spec: { ingressClassName: 'nginx', rules: [{ host: 'plain.example.com' }] },
  })
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }
  await client.patch(Ingress, 'shop/plain', 'merge', { status }, { subresource: 'status' })
  await expect.poll(async () => endpointsOf(client), POLL_OPTIONS).toContain('plain-ingress')
  const counts = (await client.list(Event)).items
    .filter(({ reason }) => reason === 'HostShared')
    .map(({ series }) => series?.count ?? 1)
  expect([await shared(client), counts]).toEqual([expected, [1]])
})

it('two HTTPProxies of one namespace that name one host are told about each other', async () => {
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  const create = async (name: string) =>
    client.create(HTTPProxy, {
      metadata: { namespace: 'shop', name },
      spec: { virtualhost: { fqdn: 'a.example.com' }, routes: [{ services: [{ name: 'web', port: 80 }] }] },
    })
  // Of one second: the name decides.
  await create('late')
  await create('first')
  environment.run({}, { publish: unified, fleet: undefined } as never)
  await expect
    .poll(async () => shared(client), POLL_OPTIONS)
    .toEqual([
      'HTTPProxy shop/first: HTTPProxy shop/late names host a.example.com, too; this object has it, which is older',
    ])
  const refused = async () =>
    (await client.list(Event)).items.find(({ reason }) => reason === 'ClaimHeldByOther')?.regarding?.name
  await expect.poll(refused, POLL_OPTIONS).toBe('late')
})

it('the root that has a host is told once which root of another namespace names it, too', async () => {
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  await client.create(Namespace, { metadata: { name: 'other' } })
  const before = environment.run()
  await client.create(Ingress, root('first', HOST))
  await expect.poll(async () => environment.global('first'), POLL_OPTIONS).toBeDefined()
  await client.create(Ingress, { ...root('rival', HOST), metadata: { namespace: 'other', name: 'rival' } })
  const expected = [`Ingress shop/first: Ingress other/rival names host ${HOST}, too; it belongs to this object`]
  await expect.poll(async () => shared(client), POLL_OPTIONS).toEqual(expected)
  const owned = async () =>
    (await environment.global('rival'))?.status?.conditions?.find(({ type }) => type === 'HostsOwned')?.reason
  await expect.poll(owned, POLL_OPTIONS).toBe('HostConflict')
  await before.stop()
  // With the Events gone, a process that says it again would be seen.
  for (const { metadata } of (await client.list(Event)).items)
    await client.delete(Event, `${metadata.namespace}/${metadata.name}`)
  const after = environment.run()
  await client.create(Ingress, root('third', 'third.example.com'))
  await expect.poll(async () => (await environment.global('third'))?.status, POLL_OPTIONS).toBeDefined()
  await client.patch(Ingress, 'other/rival', 'merge', { metadata: { labels: { seen: 'again' } } })
  await client.create(Ingress, root('fourth', 'fourth.example.com'))
  await expect.poll(async () => (await environment.global('fourth'))?.status, POLL_OPTIONS).toBeDefined()
  await after.stop()
  expect(await shared(client)).toEqual([])
})

it('without the right to read load balancers and classes, hosts are published as if there were none', async () => {
  await using environment = await FleetEnvironment.start([])
  const { client } = environment.hub
  const allowed = (resources: string[], ...apiGroups: string[]) => ({ apiGroups, resources, verbs: ['*'] })
  await client.create(ClusterRole, {
    metadata: { name: 'earlier' },
    rules: [
      allowed(['*'], '', 'externaldns.k8s.io', 'coordination.k8s.io', 'events.k8s.io', 'apiextensions.k8s.io'),
      allowed(['ingresses', 'ingresses/finalizers'], 'networking.k8s.io'),
    ],
  })
  await client.create(ClusterRoleBinding, {
    metadata: { name: 'earlier' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'earlier' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'earlier' }],
  })
  const kubeconfig = await environment.hub.userKubeconfig('earlier')
  await using limited = new FleetEnvironment({ ...environment.hub, kubeconfig, stop: async () => undefined }, new Map())
  limited.run({}, {
    publish: { ...unified, sources: ['Ingress'], children: ['DNSEndpoint'] },
    fleet: undefined,
  } as never)
  await client.create(Ingress, {
    metadata: { namespace: 'shop', name: 'plain' },
    spec: { ingressClassName: 'nginx', rules: [{ host: 'plain.example.com' }] },
  })
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }
  await client.patch(Ingress, 'shop/plain', 'merge', { status }, { subresource: 'status' })
  await expect.poll(async () => endpointsOf(client), POLL_OPTIONS).toEqual(['plain-ingress'])
})
