/**
 * The DNS server inside the manager: a host that is published is answered by it, a restart answers from what is stored, and
 * until a zone is complete its names are refused.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords, RCODE, type ServerAddress } from '@seamark/dns'
import { type AppOptions, DNSEndpoint, DnsConfig, runApp } from '@seamark/operator'
import { ConfigMap, configFromText, connect, createLogger, Lease, Namespace } from '@seamark/kube'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { createNamespace, eventually, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'

const client = createDnsClient()
let environment: TestEnvironment
let folder = ''

beforeEach(async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  environment = await embedded.start()
  for (const name of ['kube-system', 'seamark', 'web'])
    if ((await environment.client.find(Namespace, name)) === undefined) await createNamespace(environment.client, name)
  folder = await mkdtemp(join(tmpdir(), 'seamark-serve-'))
})
afterEach(async () => {
  await environment[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})
afterAll(async () => client.close())

interface Running {
  readonly at: ServerAddress
  stop(): Promise<void>
}

async function run(dns: object, options: Partial<AppOptions> = {}): Promise<Running> {
  const { cluster } = environment.connect('contour-plus')
  const stopping = new AbortController()
  let onReady: (address: string) => void = () => undefined
  const ready = new Promise<string>((resolve) => (onReady = resolve))
  const config = DnsConfig.parse({ listen: ['127.0.0.1:0'], zones: ['example.test'], ...dns })
  const running = runApp(
    {
      cluster,
      mode: 'enforce',
      namespace: 'seamark',
      dns: { config, env: {} },
      onReady: ({ dns: addresses = [] }) => onReady(addresses[0] ?? ''),
      ...options,
    },
    stopping.signal,
  )
  const address = await Promise.race([ready, running.then(() => '')])
  return {
    at: { address: '127.0.0.1', port: Number(address.split(':').at(-1)) },
    async stop() {
      stopping.abort()
      await running
      await cluster.close()
    },
  }
}

async function publish(name: string, ...targets: string[]): Promise<void> {
  await environment.client.apply(DNSEndpoint, {
    metadata: { name, namespace: 'web' },
    spec: { endpoints: [{ dnsName: `${name}.example.test`, recordType: 'A', recordTTL: 60, targets }] },
  })
}

async function ask(at: ServerAddress, name: string): Promise<string> {
  const { message } = await client.query({ server: at, name, type: 'A' })
  if (message.rcode !== RCODE.NOERROR) return `rcode ${message.rcode}`
  return groupRecords(message.answers)
    .flatMap(({ values }) => [...values])
    .join(' ')
}

const answers = async (at: ServerAddress, name: string, wanted: string) =>
  eventually(
    `${name} answers ${wanted}`,
    async () => ask(at, name),
    (found) => found === wanted,
    20_000,
  )

it('a host that is published is answered, and a restart answers it from its folder without a cluster', async () => {
  const dns = { dataDir: folder }
  await publish('shop', '192.0.2.80')
  const first = await run(dns)
  await answers(first.at, 'shop.example.test', '192.0.2.80')
  expect(await ask(first.at, 'missing.example.test')).toBe(`rcode ${RCODE.NXDOMAIN}`)
  expect(await ask(first.at, 'other.test')).toBe(`rcode ${RCODE.REFUSED}`)
  await first.stop()

  // Nothing leads here: what is answered comes from the folder.
  const lease = { lease: 'held-by-another', namespace: 'seamark' }
  await environment.client.create(Lease, {
    metadata: { name: lease.lease, namespace: lease.namespace },
    spec: {
      holderIdentity: 'another',
      leaseDurationSeconds: 3600,
      renewTime: new Date(Date.now() + 3_600_000).toISOString().replace(/Z$/, '000Z'),
    },
  })
  const second = await run(dns, { leader: lease })
  expect(await ask(second.at, 'shop.example.test')).toBe('192.0.2.80')
  await second.stop()
})

it('zones in ConfigMaps have a local copy in dns.copyDir, and without one a warning says what is lost and what to set', async () => {
  const lines: string[] = []
  const log = createLogger({ level: 'warn', destination: { write: (line: string) => void lines.push(line) } })
  const warnings = () => lines.filter((line) => line.includes('zones have no local copy'))
  // Nobody listens there.
  const away = () =>
    connect(configFromText(environment.kubeconfig.replace(/server: .*/, 'server: https://127.0.0.1:1')), {
      name: 'away',
    })
  await publish('shop', '192.0.2.80')
  const without = await run({}, { log })
  await answers(without.at, 'shop.example.test', '192.0.2.80')
  await without.stop()
  expect(warnings()).toHaveLength(1)
  expect(warnings()[0]).toContain('REFUSED')
  expect(warnings()[0]).toContain('set dns.copyDir')
  expect(warnings()[0]).toContain('or dns.dataDir')
  const lost = await run({}, { cluster: away() })
  expect(await ask(lost.at, 'shop.example.test')).toBe(`rcode ${RCODE.REFUSED}`)
  await lost.stop()

  lines.length = 0
  const copyDir = join(folder, 'copy')
  const first = await run({ copyDir }, { log })
  await answers(first.at, 'shop.example.test', '192.0.2.80')
  await first.stop()
  expect(warnings()).toEqual([])
  const kept = await run({ copyDir }, { cluster: away() })
  expect(await ask(kept.at, 'shop.example.test')).toBe('192.0.2.80')
  await kept.stop()

  // A file is in its place.
  await writeFile(join(folder, 'taken'), '')
  const taken = await run({ copyDir: join(folder, 'taken', 'copy') }, { log })
  await taken.stop()
  expect(warnings()[0]).toContain('is not writable')
})

it('without a folder the zone comes back from ConfigMaps', async () => {
  await publish('shop', '192.0.2.80')
  const first = await run({})
  await answers(first.at, 'shop.example.test', '192.0.2.80')
  await first.stop()
  const stored = await environment.client.list(ConfigMap, { namespace: 'seamark' })
  expect(stored.items.filter(({ metadata }) => metadata.name?.startsWith('seamark-dns-'))).not.toEqual([])
  const second = await run({})
  expect(await ask(second.at, 'shop.example.test')).toBe('192.0.2.80')
  await publish('shop', '192.0.2.81')
  await answers(second.at, 'shop.example.test', '192.0.2.81')
  await second.stop()
})

it('a new zone has the name servers of the configuration', async () => {
  await publish('a', '192.0.2.1')
  const app = await run({ dataDir: folder, nameServers: ['ns1.example.test=192.0.2.53'] })
  await answers(app.at, 'a.example.test', '192.0.2.1')
  expect(await ask(app.at, 'ns1.example.test')).toBe('192.0.2.53')
  await app.stop()
})

it('weights of a DNSEndpoint decide how often each target is answered', async () => {
  const targets = ['192.0.2.1', '192.0.2.2']
  await environment.client.apply(DNSEndpoint, {
    metadata: { name: 'canary', namespace: 'web' },
    spec: {
      endpoints: [
        {
          dnsName: 'canary.example.test',
          recordType: 'A',
          recordTTL: 60,
          targets,
          providerSpecific: [{ name: 'seamark.io/weights', value: '192.0.2.1=3,192.0.2.2=1' }],
        },
      ],
    },
  })
  const app = await run({ dataDir: folder })
  await eventually(
    'one target an answer',
    async () => ask(app.at, 'canary.example.test'),
    (found) => targets.includes(found),
    20_000,
  )
  const seen: string[] = []
  for (let i = 0; i < 8; i++) seen.push(await ask(app.at, 'canary.example.test'))
  expect(seen.toSorted()).toEqual([...Array<string>(6).fill('192.0.2.1'), ...Array<string>(2).fill('192.0.2.2')])
  await app.stop()
})
