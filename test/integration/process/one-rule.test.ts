/**
 * One kill switch, one mode and one table of grants for all capabilities of a process: publish, wildcard, fleet, balance,
 * records with our own DNS server, and the gateway's statuses. Settings of `records` apply to the DNS server also where no
 * provider is configured.
 */
import { createServer } from 'node:http'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer as createSocketServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords, RCODE, type ServerAddress } from '@seamark/dns'
import { ConfigMap, Event, findCondition, Ingress, Node, Secret, Service } from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import {
  Certificate,
  Cluster,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  GlobalIngress,
  GlobalIngressPolicy,
  HostClaim,
  HTTPProxy,
  LeafIngress,
} from '@seamark/operator'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root } from '../fleet/test-environment.ts'
import { startVerb, type StartedVerb, statusAt } from '../gateway/started-verb.ts'

const client = createDnsClient()
const cleanups: (() => Promise<unknown>)[] = []
let environment: FleetEnvironment
let folder = ''
/** A backend that passes every check. */
let port = 0

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-one-rule-'))
  cleanups.push(async () => rm(folder, { recursive: true, force: true }))
  environment = await FleetEnvironment.start(['eu1'])
  cleanups.push(async () => environment[Symbol.asyncDispose]())
  const backend = createServer((_, response) => response.end('ok'))
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.2', resolve))
  cleanups.push(async () => new Promise((resolve) => backend.close(resolve)))
  port = (backend.address() as AddressInfo).port
  await createSources()
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})
afterAll(async () => client.close())

const proxy = (namespace: string, name: string, fqdn: string) => ({
  metadata: { namespace, name },
  spec: { virtualhost: { fqdn }, routes: [{ directResponsePolicy: { statusCode: 200 } }] },
})
const endpoint = (namespace: string, name: string, dnsName: string, address: string) => ({
  metadata: { namespace, name },
  spec: { endpoints: [{ dnsName, recordType: 'A' as const, recordTTL: 60, targets: [address] }] },
})

/**
 * For each capability a name that the namespace `shop` may use, in shop.example.test, and one that it may not use. The namespace
 * `rogue` may use none, and its objects with the names of `shop` come first in the order of age. That of the manager needs no grant.
 */
async function createSources(): Promise<void> {
  const { client: hub } = environment.hub
  await environment.namespace(hub, 'rogue')
  await hub.create(Service, {
    metadata: { namespace: 'shop', name: 'envoy' },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  })
  const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }
  await hub.patch(Service, 'shop/envoy', 'merge', { status }, { subresource: 'status' })
  await hub.create(Service, { metadata: { namespace: 'shop', name: 'web' }, spec: { ports: [{ port: 80 }] } })
  await hub.create(Node, { metadata: { name: 'n1' } })
  const addresses = [{ type: 'ExternalIP', address: '203.0.113.1' }]
  const conditions = [{ type: 'Ready', status: 'True' }]
  await hub.patch(Node, 'n1', 'merge', { status: { addresses, conditions } }, { subresource: 'status' })
  await hub.create(GlobalIngressPolicy, {
    metadata: { namespace: 'manager', name: 'default' },
    spec: { health: { protocol: 'HTTP', port } },
  } as GlobalIngressPolicy)
  await environment.register('eu1')
  await environment.deploy('eu1')
  await environment.deploy('eu1', 'rogue')
  for (const [namespace, kind, zone] of [
    ['rogue', 'older', 'shop.example.test'],
    ['shop', 'mine', 'shop.example.test'],
    ['shop', 'other', 'other.example.test'],
    ['manager', 'own', 'own.example.test'],
  ] as const) {
    const address = namespace === 'rogue' ? '198.51.100.7' : '192.0.2.7'
    await hub.create(HTTPProxy, proxy(namespace, kind, `proxy.${zone}`))
    await hub.create(DNSEndpoint, endpoint(namespace, `hand-${kind}`, `hand.${zone}`, address))
    if (namespace !== 'manager') await hub.create(Ingress, root(`root-${kind}`, `root.${zone}`, { namespace }))
    await hub.create(DNSLoadBalancer, {
      metadata: { namespace, name: `lb-${kind}` },
      spec: { DNSName: `lb.${zone}`, healthPath: '/', healthCheck: { scheme: 'http', port, profile: 'fast' } },
    })
    await hub.create(DNSLoadBalancerEndpoint, {
      metadata: { namespace, name: `lb-${kind}` },
      spec: { loadbalancer: `lb-${kind}`, ipaddress: namespace === 'rogue' ? '127.0.0.1' : '127.0.0.2' },
    })
  }
}

interface Running {
  readonly at: ServerAddress
  readonly gateway: number
  readonly metrics: () => Promise<string>
  readonly verb: StartedVerb
}

async function run(...flags: string[]): Promise<Running> {
  await writeFile(join(folder, 'kubeconfig'), environment.hub.kubeconfig, { mode: 0o600 })
  await writeFile(
    join(folder, 'seamark.yaml'),
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
logLevel: silent
grants: [{ namespace: shop, domains: [shop.example.test] }]
publish: { services: [{ service: shop/envoy }] }
wildcard: { enabled: true, zone: example.test, localCluster: local }
fleet: { enabled: true, verifyDns: false }
balance: { enabled: true }
dns: { listen: ["127.0.0.1:0"], zones: [example.test] }
gateway: { enabled: true, httpListen: "127.0.0.1:0", httpsListen: "127.0.0.1:0" }
`,
  )
  const metrics = await freePort()
  const verb = await startVerb('run', [
    `--kubeconfig=${join(folder, 'kubeconfig')}`,
    `--config=${join(folder, 'seamark.yaml')}`,
    '--namespace=manager',
    `--metrics-address=127.0.0.1:${metrics}`,
    '--probes-address=0',
    ...flags,
  ])
  cleanups.push(verb.stop)
  const [http = ''] = (await verb.line('gateway')).split(' ')
  const dns = await verb.line('dns')
  return {
    verb,
    at: { address: '127.0.0.1', port: portOf(dns) },
    gateway: portOf(http),
    metrics: async () => (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text(),
  }
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}

async function freePort(): Promise<number> {
  const server = createSocketServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return address.port
}

/** The addresses of the answer, or the name of the code. */
async function ask(at: ServerAddress, name: string): Promise<string> {
  const { message } = await client.query({ server: at, name, type: 'A' })
  const code = Object.entries(RCODE).find(([, value]) => value === message.rcode)?.[0] ?? ''
  if (code !== 'NOERROR') return code
  return groupRecords(message.answers)
    .flatMap(({ values }) => [...values])
    .join(' ')
}

const KINDS = [
  Certificate,
  Cluster,
  ConfigMap,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  GlobalIngress,
  GlobalIngressPolicy,
  HostClaim,
  HTTPProxy,
  Ingress,
  LeafIngress,
  Secret,
  Service,
] as unknown as readonly Kind<Obj>[]

/** Every object with its version, on the hub and on the member. */
async function objects(): Promise<string[]> {
  const all = await Promise.all(
    [environment.hub, environment.member('eu1')].map(async (server, index) =>
      Promise.all(
        KINDS.map(async (kind) => {
          if (index > 0 && kind.kind !== 'Ingress') return []
          const { items } = await server.client.list(kind)
          return items.map(
            ({ metadata }) =>
              `${index} ${kind.kind} ${metadata.namespace}/${metadata.name} ${metadata.resourceVersion}`,
          )
        }),
      ),
    ),
  )
  return all.flat(2).toSorted()
}

/** It was decided about the sources, and the data plane serves. */
async function decided({ metrics, gateway }: Running, reason: string): Promise<void> {
  await expect.poll(metrics, POLL_OPTIONS).toMatch(new RegExp(`kind="HTTPProxy",reason="${reason}"\\} [1-9]`))
  await expect.poll(async () => statusAt(gateway, 'proxy.shop.example.test'), POLL_OPTIONS).toBe(200)
  expect(await statusAt(gateway, 'proxy.other.example.test')).toBe(404)
}

/** Status, reason and message. */
function conditionOf(
  status: { readonly conditions?: Parameters<typeof findCondition>[0] } | undefined,
  type: string,
): string {
  const condition = findCondition(status?.conditions, type)
  return `${condition?.status} ${condition?.reason} ${condition?.message}`
}

const gatewayCondition = async (name: string) =>
  JSON.stringify((await environment.hub.client.get(HTTPProxy, `shop/${name}`)).status?.conditions)
const gatewayStatus = async () => (await environment.hub.client.get(HTTPProxy, 'shop/mine')).status?.currentStatus

describe('every capability of one process', () => {
  it('writes nothing while the annotation pauses, and after it answers only names with a grant', async () => {
    const { client: hub } = environment.hub
    const paused = { namespace: 'manager', name: 'seamark', annotations: { 'seamark.io/pause': 'true' } }
    await hub.create(ConfigMap, { metadata: paused })
    const before = await objects()
    const app = await run()
    await decided(app, 'Paused')
    expect(await objects()).toEqual(before)
    expect(await ask(app.at, 'hand.shop.example.test')).toBe('REFUSED')

    await hub.patch(ConfigMap, 'manager/seamark', 'merge', { metadata: { annotations: { 'seamark.io/pause': null } } })
    for (const [name, address] of [
      ['proxy.shop', '192.0.2.1'],
      ['hand.shop', '192.0.2.7'],
      ['lb.shop', '127.0.0.2'],
      ['proxy.own', '192.0.2.1'],
      ['hand.own', '192.0.2.7'],
      ['lb.own', '127.0.0.2'],
      ['any.local', '203.0.113.1'],
    ])
      await expect.poll(async () => ask(app.at, `${name}.example.test`), POLL_OPTIONS).toBe(address)
    await expect.poll(gatewayStatus, POLL_OPTIONS).toBe('valid')
    await expect.poll(async () => environment.phases('root-mine'), POLL_OPTIONS).toContain('eu1')
    await environment.admit('eu1', 'shop/root-mine', '127.0.0.2')
    await expect.poll(async () => ask(app.at, 'root.shop.example.test'), POLL_OPTIONS).toBe('127.0.0.2')
    for (const name of ['proxy', 'hand', 'lb', 'root'])
      expect([name, await ask(app.at, `${name}.other.example.test`)]).toEqual([name, 'NXDOMAIN'])
    expect(await statusAt(app.gateway, 'proxy.other.example.test')).toBe(404)
    expect(await statusAt(app.gateway, 'proxy.own.example.test')).toBe(200)
    await expect.poll(async () => gatewayCondition('other'), POLL_OPTIONS).toContain('NameNotGranted')
    // A root without a grant has neither a claim nor leaves, and a load balancer without one no name.
    for (const name of ['root-other', 'root-older'])
      await expect
        .poll(async () => conditionOf((await environment.global(name))?.status, 'HostsOwned'), POLL_OPTIONS)
        .toMatch(/^False NameNotGranted namespace .* is not granted to it; add a grant to the configuration$/)
    for (const key of ['shop/lb-other', 'rogue/lb-older'])
      await expect
        .poll(async () => conditionOf((await hub.get(DNSLoadBalancer, key)).status, 'Ready'), POLL_OPTIONS)
        .toMatch(/^False NameNotGranted namespace .* is not granted to it; add a grant to the configuration$/)
    const claims = (await hub.list(HostClaim)).items.map(({ spec }) => `${spec.namespace} ${spec.host}`)
    expect(claims).toEqual(['shop root.shop.example.test'])
    expect((await hub.list(LeafIngress)).items.map(({ spec }) => spec.manifests[0]?.metadata['name'])).toEqual([
      'root-mine',
    ])
    expect((await environment.member('eu1').client.list(Ingress)).items.map(({ metadata }) => metadata.name)).toEqual([
      'root-mine',
    ])
    const refusals = (await hub.list(Event)).items.filter(({ reason }) => reason === 'NameNotGranted')
    const told = refusals.map(({ regarding }) => `${regarding?.kind} ${regarding?.name}`)
    expect(told).toEqual(expect.arrayContaining(['Ingress root-other', 'Ingress root-older']))
    // Each Event names the capability that made it. Of records: about an object that it did not know before.
    await hub.create(DNSEndpoint, endpoint('rogue', 'hand-late', 'late.shop.example.test', '198.51.100.7'))
    const reporters = async () => (await hub.list(Event)).items.map((each) => each.reportingController ?? '')
    for (const name of ['balance', 'fleet', 'publish', 'records'])
      await expect.poll(reporters, POLL_OPTIONS).toContain(`seamark-${name}`)
    expect((await reporters()).filter((each) => !/^seamark(-[a-z]+)?$/.test(each))).toEqual([])
  }, 120_000)

  it.each([
    ['observes', '--mode=observe', 'ObserveMode'],
    ['is paused by its configuration', '--pause=true', 'Paused'],
  ])(
    'writes nothing while it %s',
    async (_, flag, reason) => {
      const before = await objects()
      const app = await run(flag)
      await decided(app, reason)
      expect(await objects()).toEqual(before)
      expect(await ask(app.at, 'hand.shop.example.test')).toBe('REFUSED')
    },
    120_000,
  )

  it('limits, filters and the TTL of records apply to the DNS server', async () => {
    const { client: hub } = environment.hub
    await hub.create(DNSEndpoint, {
      metadata: { namespace: 'shop', name: 'plain', labels: { served: 'yes' } },
      spec: {
        endpoints: [{ dnsName: 'plain.shop.example.test', recordType: 'A', recordTTL: 0, targets: ['192.0.2.8'] }],
      },
    })
    await hub.create(DNSEndpoint, {
      metadata: { namespace: 'shop', name: 'large', labels: { served: 'yes' } },
      spec: {
        endpoints: ['a', 'b'].map((name) => ({
          dnsName: `${name}.large.shop.example.test`,
          recordType: 'A' as const,
          recordTTL: 60,
          targets: ['192.0.2.9'],
        })),
      },
    })
    const app = await run(
      '--records-default-ttl=77',
      '--records-dns-endpoints-max-per-object=1',
      '--records-dns-endpoints-label-filter=served=yes',
    )
    await expect.poll(async () => ask(app.at, 'plain.shop.example.test'), POLL_OPTIONS).toBe('192.0.2.8')
    const { message } = await client.query({ server: app.at, name: 'plain.shop.example.test', type: 'A' })
    expect(groupRecords(message.answers).map(({ ttl }) => ttl)).toEqual([77])
    for (const name of ['hand.shop', 'a.large.shop', 'b.large.shop'])
      expect([name, await ask(app.at, `${name}.example.test`)]).toEqual([name, 'NXDOMAIN'])
  }, 120_000)
})
