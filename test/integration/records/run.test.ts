/**
 * The whole way in one `seamark run`: an HTTPProxy becomes a DNSEndpoint, the nodes of the cluster a wildcard, and both become
 * answers of BIND, or of our own server. And what must survive a process that is killed, does.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createDnsClient,
  createDnsServer,
  createZone,
  fqdn,
  groupRecords,
  createRRset,
  type ServerAddress,
} from '@seamark/dns'
import { isThorough, needs } from '@seamark/kit'
import { type Client, Namespace, Node } from '@seamark/kube'
import {
  DNSEndpoint,
  embeddedProvider,
  HTTPProxy,
  memoryProvider,
  RecordsConfig,
  runApp,
  startWebhookServer,
  unified,
  wildcardDefaults,
} from '@seamark/operator'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freePort, type Key, startBind } from '../dns/peers.ts'
import {
  createLoadBalancer,
  createNamespace,
  eventually,
  setAddresses,
  type TestEnvironment,
  environmentKinds,
} from '../publish/test-environment.ts'
import { buildBundle, type ManagerProcess, startManager } from './manager-process.ts'
import { runCommand } from './run-command.ts'

const ZONE = 'example.test.'
const SERVICE = 'projectcontour/envoy'
const secret = Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64')
const key: Key = { name: 'seamark', algorithm: 'hmac-sha256', secret }
const text = `$ORIGIN ${ZONE}\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`
const resolver = createDnsClient()

async function ask(server: ServerAddress, name: string): Promise<string> {
  const { message } = await resolver.query({ server, name, type: 'A' })
  return groupRecords(message.answers)
    .flatMap((set) => [...set.values])
    .toSorted()
    .join(' ')
}

async function answers(server: ServerAddress, name: string, wanted: string): Promise<void> {
  await eventually(
    `${name} answers ${wanted}`,
    async () => ask(server, name),
    (found) => found === wanted,
    30_000,
  )
}

async function furnish(client: Client): Promise<void> {
  for (const name of ['web', 'seamark', 'projectcontour']) await createNamespace(client, name)
  if ((await client.find(Namespace, 'kube-system')) === undefined) await createNamespace(client, 'kube-system')
  await createLoadBalancer(client, SERVICE, [{ ip: '192.0.2.80' }])
  await client.create(Node, { metadata: { name: 'node-1' } })
  const status = {
    addresses: [{ type: 'ExternalIP', address: '203.0.113.11' }],
    conditions: [{ type: 'Ready', status: 'True' }],
  }
  await client.patch(Node, 'node-1', 'merge', { status }, { subresource: 'status' })
}

async function createProxy(client: Client, name: string): Promise<void> {
  await client.apply(HTTPProxy, {
    metadata: { name, namespace: 'web' },
    spec: { routes: [], virtualhost: { fqdn: `${name}.example.test` } } as NonNullable<HTTPProxy['spec']>,
  })
}

let environment: TestEnvironment
let folder = ''
beforeAll(() => buildBundle(), 120_000)
afterAll(async () => resolver.close())

/** A cluster and a configuration for each test: what one publishes or undoes is not seen by another. */
beforeEach(async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  environment = await embedded.start()
  await furnish(environment.client)
  folder = await mkdtemp(join(tmpdir(), 'seamark-run-'))
  await writeFile(join(folder, 'kubeconfig'), environment.kubeconfig, { mode: 0o600 })
  await writeFile(
    join(folder, 'seamark.yaml'),
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
leaderElection: { enabled: false }
publish:
  services: [{ service: ${SERVICE} }]
wildcard: { enabled: true, zone: example.test, localCluster: east }
records:
  enabled: true
  owner: run-test
  dnsEndpoints: { enabled: true }
`,
  )
  await writeFile(
    join(folder, 'webhook.yaml'),
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
records: { providers: [{ name: mem, type: memory, zones: [example.test, other.test] }], zones: [example.test] }
`,
  )
})
afterEach(async () => {
  await environment[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const flags = (...more: string[]) => [
  '--kubeconfig',
  join(folder, 'kubeconfig'),
  '--config',
  join(folder, 'seamark.yaml'),
  '--namespace',
  'seamark',
  ...more,
]

it.skipIf(!needs('named'))('HTTPProxy and nodes become answers of BIND, by a provider given as a flag', async () => {
  const peer = await startBind([{ origin: ZONE, text }], [key])
  const provider = `{ name: bind, type: rfc2136, server: "127.0.0.1:${peer.address.port}", zones: [example.test],
    key: { name: seamark, secretFrom: { env: TSIG_SECRET } } }`
  const manager = await startManager(flags('--records-providers', provider), { TSIG_SECRET: secret })
  try {
    await createProxy(environment.client, 'shop')
    await answers(peer.address, 'shop.example.test', '192.0.2.80')
    await answers(peer.address, 'anything.east.example.test', '203.0.113.11')
    await setAddresses(environment.client, SERVICE, [{ ip: '192.0.2.81' }])
    await answers(peer.address, 'shop.example.test', '192.0.2.81')
    const [latest] = JSON.parse((await undo('-o', 'json')).stdout) as {
      plans: number[]
      zones: string[]
      names: string[]
    }[]
    expect(latest).toMatchObject({ zones: ['example.test. (bind)'], names: ['shop.example.test.'] })
    const numbers = (latest?.plans ?? []).map(String)
    expect(await manager.stop()).toBe(0)
    // What the process did last is taken back by its number.
    const undone = await undo(...numbers)
    expect(undone).toMatchObject({ code: 0, stderr: '' })
    await answers(peer.address, 'shop.example.test', '192.0.2.80')
    expect(manager.log()).not.toContain(secret)
  } catch (error) {
    throw new Error(`${String(error)}\n${manager.log()}`, { cause: error })
  } finally {
    await manager.kill()
    await peer.close()
  }

  async function undo(...plan: string[]) {
    return runCommand(['undo', ...plan, ...flags('--records-providers', provider)], { TSIG_SECRET: secret })
  }
})

it('the same code answers from our own server, and DNSEndpoints are watched once for everybody', async () => {
  const zone = createZone(fqdn(ZONE), [
    createRRset(ZONE, 'SOA', 300, [`ns1.${ZONE} hostmaster.${ZONE} 1 3600 600 86400 60`]),
    createRRset(ZONE, 'NS', 300, [`ns1.${ZONE}`]),
  ])
  const server = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
  const [address] = server.addresses
  if (address === undefined) throw new Error('the DNS server has no address')
  const { cluster } = environment.connect('contour-plus')
  const stopping = new AbortController()
  const config = RecordsConfig.parse({ enabled: true, owner: 'own-server', dnsEndpoints: { enabled: true } })
  const running = runApp(
    {
      cluster,
      mode: 'enforce',
      namespace: 'seamark',
      publish: { ...unified, services: [{ service: SERVICE }] },
      wildcard: { ...wildcardDefaults, zone: 'example.test', localCluster: 'east' },
      records: { config, env: {}, providers: [embeddedProvider({ server })] },
    },
    stopping.signal,
  )
  try {
    await createProxy(environment.client, 'own')
    await answers(address, 'own.example.test', '192.0.2.80')
    await answers(address, 'anything.east.example.test', '203.0.113.11')
    const watched = cluster.informers.all().filter((informer) => informer.kind.plural === DNSEndpoint.plural)
    expect(watched).toHaveLength(1)
  } finally {
    stopping.abort()
    await running
    await server.close()
  }
})

describe('a manager that is killed', () => {
  it('again and again in the middle of its writes stays within one delete budget', { timeout: 300_000 }, async () => {
    const suite = `k${Date.now()}`
    const memory = memoryProvider({ zones: [ZONE] })
    let onWrite: () => void = () => undefined
    const server = await startWebhookServer({
      provider: {
        ...memory,
        apply: async (...given) => {
          await memory.apply(...given)
          onWrite()
        },
      },
      listen: { address: '127.0.0.1', port: 0 },
    })
    const argv = flags(
      '--publish-enabled=false',
      '--wildcard-enabled=false',
      `--records-owner=${suite}`,
      `--records-dns-endpoints-label-filter=suite=${suite}`,
      '--records-providers',
      `{ name: hook, type: webhook, url: "${server.url}", zones: [example.test], requestsPerSecond: 1000 }`,
    )
    const names = Array.from({ length: 100 }, (_, index) => `${suite}-${String(index).padStart(3, '0')}`)
    for (const name of names) {
      await environment.client.create(DNSEndpoint, {
        metadata: { name, namespace: 'web', labels: { suite } },
        spec: {
          endpoints: [{ dnsName: `${name}.example.test`, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }],
        },
      })
    }
    const left = () => memory.dump(ZONE).filter(({ type }) => type === 'A').length
    const first = await startManager(argv)
    await eventually(
      'all records',
      async () => left(),
      (count) => count === 100,
      60_000,
    )
    await hasSynced(first)
    await first.stop()
    // A quarter of the sources: below the breaker, far above the budget of ten names.
    for (const name of names.slice(0, 25)) await environment.client.delete(DNSEndpoint, `web/${name}`)
    let kills = 0
    let livesWithoutWrite = 0
    // A name is two batches here, because the protocol has no transactions: its record, then its marker.
    for (let life = 0; life < 24 && livesWithoutWrite < 2; life++) {
      // After every batch, or after one to four: in a third of the time.
      const killAfter = isThorough ? 1 : 1 + (life % 4)
      let batches = 0
      const manager = await startManager(argv)
      const isKilled = new Promise<void>((resolve) => {
        onWrite = () => {
          batches++
          if (batches !== killAfter) return
          manager.child.kill('SIGKILL')
          kills++
          resolve()
        }
      })
      await Promise.race([isKilled, hasSynced(manager)])
      await manager.kill()
      livesWithoutWrite = batches === 0 ? livesWithoutWrite + 1 : 0
    }
    await server.close()
    expect(kills).toBeGreaterThanOrEqual(isThorough ? 10 : 5)
    // The budget is spent, and a new process does not get another one.
    expect(livesWithoutWrite).toBe(2)
    expect(left()).toBe(90)
  })
})

/** It has looked at everything once, and has nothing more to write. */
async function hasSynced(manager: ManagerProcess): Promise<void> {
  await eventually(
    'a whole pass',
    async () => manager.metrics().catch(() => ''),
    (found) => found.includes('seamark_records_last_sync_timestamp_seconds{'),
    60_000,
  ).catch((error: unknown) => {
    if (manager.child.signalCode === null) throw new Error(`${String(error)}\n${manager.log()}`, { cause: error })
  })
}

describe('seamark provider webhook', () => {
  it('serves a configured provider to ExternalDNS, obeys --pause, and ends on SIGTERM', async () => {
    const port = await freePort()
    const config = join(folder, 'webhook.yaml')
    const url = `http://127.0.0.1:${port}`
    const headers = { 'content-type': 'application/external.dns.webhook+json;version=1' }
    const post = async (body: object) =>
      (await fetch(`${url}/records`, { method: 'POST', headers, body: JSON.stringify(body) })).status
    const endpoint = { dnsName: 'www.example.test', recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }
    for (const isPaused of [false, true]) {
      const stopping = new AbortController()
      const argv = ['provider', 'webhook', '--listen', `127.0.0.1:${port}`, '--config', config]
      const running = runCommand([...argv, ...(isPaused ? ['--pause'] : [])], {}, stopping.signal)
      await eventually(
        'the server',
        async () =>
          fetch(url).then(
            (answer) => answer.status,
            () => undefined,
          ),
        undefined,
        20_000,
      )
      expect(await (await fetch(url)).json()).toEqual({ include: ['example.test'] })
      expect(await post({ create: [endpoint] })).toBe(isPaused ? 500 : 204)
      expect(await (await fetch(`${url}/records`)).json()).toEqual(isPaused ? [] : [endpoint])
      expect(await post({ create: [{ ...endpoint, dnsName: 'www.other.test' }] })).toBe(400)
      stopping.abort()
      const ran = await running
      expect(ran).toMatchObject({ code: 0, stdout: `ready ${url}\n` })
      if (isPaused) expect(ran.stderr).toContain('writing is paused')
    }
  })

  it('says which providers there are when none, or a wrong one, is named', async () => {
    const config = join(folder, 'webhook.yaml')
    const wrong = await runCommand(['provider', 'webhook', '--provider', 'nope', '--config', config])
    expect(wrong).toMatchObject({ code: 5 })
    expect(wrong.stderr).toContain("there is no provider 'nope'; configured: mem")
  })
})
