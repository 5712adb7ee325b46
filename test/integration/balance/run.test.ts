/**
 * `seamark run` with balance and records: a DNSLoadBalancer becomes answers of a DNS server, and the answers follow its
 * backends, which are HTTP servers on loopback addresses. The manager installs the CRDs.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsServer, createRRset, createZone, fqdn } from '@seamark/dns'
import { needs } from '@seamark/kit'
import { type Client, CustomResourceDefinition, Namespace } from '@seamark/kube'
import {
  BalanceConfig,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  embeddedProvider,
  explain,
  gatherFacts,
  RecordsConfig,
  runApp,
  unified,
} from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Key, startBind } from '../dns/peers.ts'
import { createNamespace, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { buildBundle, startManager } from '../records/manager-process.ts'
import { ask, type Backends, expectAnswer, POLL_OPTIONS, startBackends } from './backends.ts'

const ZONE = 'example.test.'
const NAME = 'shop.example.test'
const [EAST, WEST] = ['127.0.0.2', '127.0.0.3']

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function prepare(environment: TestEnvironment): Promise<Backends> {
  cleanups.push(async () => environment[Symbol.asyncDispose]())
  for (const name of ['web', 'seamark']) await createNamespace(environment.client, name)
  if ((await environment.client.find(Namespace, 'kube-system')) === undefined)
    await createNamespace(environment.client, 'kube-system')
  const backends = await startBackends(EAST, WEST)
  cleanups.push(async () => backends.close())
  return backends
}

async function createBalancer(client: Client, port: number): Promise<void> {
  const crd = async () => {
    const found = await client.find(CustomResourceDefinition, 'dnsloadbalancerendpoints.loadbalancer.gardener.cloud')
    return found?.status?.conditions?.find(({ type }) => type === 'Established')?.status
  }
  await expect.poll(crd, POLL_OPTIONS).toBe('True')
  const create = async () =>
    client.create(DNSLoadBalancer, {
      metadata: { namespace: 'web', name: 'shop' },
      spec: { DNSName: NAME, healthPath: '/healthz', healthCheck: { scheme: 'http', port, profile: 'fast' } },
    })
  // A real server serves a kind a moment after it is established.
  await expect.poll(async () => create().then(() => 'created', String), POLL_OPTIONS).toBe('created')
  for (const [name, ipaddress] of [
    ['east', EAST],
    ['west', WEST],
  ] as const) {
    const endpoint = { metadata: { namespace: 'web', name }, spec: { loadbalancer: 'shop', ipaddress } }
    const attempt = async () => client.create(DNSLoadBalancerEndpoint, endpoint).then(() => 'created', String)
    await expect.poll(attempt, POLL_OPTIONS).toBe('created')
  }
}

describe.each(environmentKinds)('balance on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)('answers follow a backend that dies and returns', async () => {
    const environment = await start()
    const backends = await prepare(environment)
    const zone = createZone(fqdn(ZONE), [
      createRRset(ZONE, 'SOA', 300, [`ns.${ZONE} admin.${ZONE} 1 3600 600 86400 30`]),
      createRRset(ZONE, 'NS', 300, [`ns.${ZONE}`]),
    ])
    const server = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
    cleanups.push(async () => server.close())
    const [address] = server.addresses
    if (address === undefined) throw new Error('the DNS server has no address')
    // The DNS name itself is probed, too: it is resolved by our own server.
    const resolver = `${address.address}:${address.port}`
    const app = environment.launch('contour-plus', async (cluster, _surroundings, signal) =>
      runApp(
        {
          cluster,
          mode: 'enforce',
          namespace: 'seamark',
          allowLoopback: true,
          balance: { config: BalanceConfig.parse({ enabled: true, resolver }), startThread: proberInThisThread(20) },
          records: {
            config: RecordsConfig.parse({ enabled: true, owner: 'balance', dnsEndpoints: { enabled: true } }),
            env: {},
            providers: [embeddedProvider({ server })],
          },
        },
        signal,
      ),
    )
    cleanups.push(async () => app.stop())
    const { client } = environment
    await createBalancer(client, backends.port)
    await expectAnswer(address, NAME, `${EAST} ${WEST}`)
    await backends.stop(EAST)
    await expectAnswer(address, NAME, WEST)
    const endpoint = async (name: string) => (await client.get(DNSLoadBalancerEndpoint, `web/${name}`)).status
    await expect.poll(async () => endpoint('east'), POLL_OPTIONS).toMatchObject({ healthy: false, active: false })
    const { signal } = new AbortController()
    const { cluster } = environment.connect('explain')
    const { hops } = explain(await gatherFacts(NAME, { cluster, options: unified }, signal))
    expect(hops.map(({ name }) => name).slice(0, 3)).toEqual(['source', 'health', 'selection'])
    expect(hops[1]?.text).toMatch(/^east \(127\.0\.0\.2\) is unhealthy since .*Z: .*; west \(127\.0\.0\.3\) is healthy/)
    expect(hops[2]?.text).toMatch(
      /east is not published since .*Z: it does not pass its health check; west is published/,
    )
    expect(hops[2]?.text).toMatch(/with a TTL of 30 s, caches may keep the older answer until .*Z$/)
    await backends.start(EAST)
    await expectAnswer(address, NAME, `${EAST} ${WEST}`)
    await backends.stop(WEST)
    await expectAnswer(address, NAME, EAST)
  })
})

describe('seamark run as a process', () => {
  beforeAll(() => buildBundle(), 120_000)

  const key: Key = {
    name: 'seamark',
    algorithm: 'hmac-sha256',
    secret: Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64'),
  }
  const text = `$ORIGIN ${ZONE}
$TTL 300
@ IN SOA ns1 hostmaster 1 3600 600 86400 60
@ IN NS ns1
ns1 IN A 127.0.0.1
; Records of dnslb-controller-manager.
shop 60 IN A 127.0.0.9
comment-shop 600 IN TXT "owner=GardenRing"
comment-shop 600 IN TXT "prefix=comment-"
`

  it.skipIf(!needs('named', 'kube-apiserver', 'etcd'))(
    "takes over the original's records on BIND by TSIG",
    async () => {
      const real = environmentKinds.find(({ name }) => name === 'kube-apiserver')
      if (real === undefined) throw new Error('there is no such environment')
      const environment = await real.start()
      const backends = await prepare(environment)
      const folder = await mkdtemp(join(tmpdir(), 'seamark-balance-'))
      cleanups.push(async () => rm(folder, { recursive: true, force: true }))
      const peer = await startBind([{ origin: ZONE, text }], [key])
      cleanups.push(async () => peer.close())
      await writeFile(join(folder, 'kubeconfig'), environment.kubeconfig, { mode: 0o600 })
      await writeFile(
        join(folder, 'seamark.yaml'),
        `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
publish: { enabled: false }
balance: { enabled: true, resolver: "127.0.0.1:${peer.address.port}" }
records:
  enabled: true
  owner: balance
  registry: { dnslbIdentity: GardenRing }
  dnsEndpoints: { enabled: true }
  providers:
    - name: bind
      type: rfc2136
      server: 127.0.0.1:${peer.address.port}
      zones: [example.test]
      key: { name: seamark, secretFrom: { env: TSIG_SECRET } }
`,
      )
      const flags = ['--kubeconfig', join(folder, 'kubeconfig'), '--config', join(folder, 'seamark.yaml')]
      const manager = await startManager([...flags, '--namespace', 'seamark'], { TSIG_SECRET: key.secret })
      cleanups.push(async () => manager.kill())
      try {
        await createBalancer(environment.client, backends.port)
        await expectAnswer(peer.address, NAME, `${EAST} ${WEST}`)
        expect(await ask(peer.address, `_seamark-a.${NAME}`, 'TXT')).toContain('from=dnslb/GardenRing')
        // Kept, so that the records can be given back.
        expect(await ask(peer.address, `comment-${NAME}`, 'TXT')).toBe('"owner=GardenRing" "prefix=comment-"')
        await backends.stop(EAST)
        await expectAnswer(peer.address, NAME, WEST)
        for (const line of [
          'endpoint_health{loadbalancer="web/shop",endpoint="web/east"} 0',
          'endpoint_active{loadbalancer="web/shop",endpoint="web/west"} 1',
        ])
          await expect.poll(async () => manager.metrics(), POLL_OPTIONS).toContain(line)
        expect(await manager.stop()).toBe(0)
        expect(manager.log()).not.toContain(key.secret)
      } catch (error) {
        throw new Error(`${String(error)}\n${manager.log()}`, { cause: error })
      }
    },
  )
})
