/**
 * Program of tenant-load.test.ts, in a process of its own: a manager with a lease, a DNS service in memory, one namespace
 * that requests very many endpoints at once, and another that changes one record again and again meanwhile. Prints what
 * happened as one line of JSON.
 *
 * Arguments: endpoints of the namespace that requests most, records.dnsEndpoints.maxPerNamespace, and `before` when the endpoints are there
 * before the manager starts, which plans whole zones then.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { CustomResourceDefinition, Lease, Namespace } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { DNSEndpoint, memoryProvider, RecordsConfig, runApp } from '@seamark/operator'

const ZONE = 'example.test.'
/** Endpoints of one object: close to what an object may have. */
const PER_OBJECT = 1_000
/** Of one call of the DNS service. */
const LATENCY_MS = 5

const [count = 0, maxPerNamespace = 0] = process.argv.slice(2, 4).map(Number)
const isBefore = process.argv[4] === 'before'

const endpoint = (dnsName: string, address: string): DNSEndpoint['spec']['endpoints'][number] => ({
  dnsName,
  recordType: 'A',
  recordTTL: 60,
  targets: [address],
})
const shop = (address: string): DNSEndpoint => ({
  metadata: { namespace: 'shop', name: 'shop' },
  spec: { endpoints: [endpoint(`shop.${ZONE}`, address)] },
})

const cluster = memoryCluster()
cluster.put(Namespace, { metadata: { name: 'kube-system' } })
cluster.put(CustomResourceDefinition, {
  metadata: { name: `${DNSEndpoint.plural}.${DNSEndpoint.group}`, creationTimestamp: '2020-01-01T00:00:00Z' },
  spec: {
    group: DNSEndpoint.group,
    scope: 'Namespaced',
    names: { kind: DNSEndpoint.kind, plural: DNSEndpoint.plural },
    versions: [{ name: DNSEndpoint.version, served: true, storage: true }],
  },
})

const memory = memoryProvider({ zones: [ZONE] })
let greedyWritten = 0
let shopAddress = ''
const apply = memory.apply.bind(memory)
memory.apply = async (...given) => {
  await pause(LATENCY_MS)
  await apply(...given)
  for (const { to } of given[1]) {
    if (to?.type !== 'A') continue
    if (to.name.startsWith('g-')) greedyWritten++
    else shopAddress = to.values[0] ?? ''
  }
}

const config = RecordsConfig.parse({
  enabled: true,
  owner: 'load',
  dnsEndpoints: { enabled: true, maxPerNamespace },
})
const stopping = new AbortController()
let lost = ''
const isLost = (): boolean => lost !== ''
const run = async (): Promise<void> => {
  try {
    await runApp(
      {
        cluster,
        mode: 'enforce',
        namespace: 'seamark',
        records: { config, env: {}, providers: [memory] },
        leader: { lease: 'seamark', namespace: 'seamark' },
      },
      stopping.signal,
    )
  } catch (error) {
    lost = String(error)
  }
}

/** Looks often: what is measured is the manager, and not this loop. */
async function until(isTrue: () => boolean): Promise<number> {
  const startedAt = performance.now()
  while (!isTrue() && !isLost()) await pause(5)
  return Math.round(performance.now() - startedAt)
}

async function change(address: string): Promise<number> {
  cluster.put(DNSEndpoint, shop(address))
  return await until(() => shopAddress === address)
}

function putGreedy(): void {
  for (let first = 0; first < count; first += PER_OBJECT) {
    const names = Array.from({ length: PER_OBJECT }, (_, index) => `g-${first + index}.${ZONE}`)
    const endpoints = names.map((name) => endpoint(name, '192.0.2.9'))
    cluster.put(DNSEndpoint, { metadata: { namespace: 'greedy', name: `g-${first}` }, spec: { endpoints } })
  }
}

let running: Promise<void>
const blocks = monitorEventLoopDelay({ resolution: 5 })
if (isBefore) {
  putGreedy()
  blocks.enable()
  running = run()
} else {
  running = run()
  await change('192.0.2.1')
  blocks.enable()
  putGreedy()
}
const startedAt = performance.now()
const firstMs = await change('192.0.2.2')
const writtenAtFirst = greedyWritten
const expected = Math.min(count, maxPerNamespace)
const isComplete = (): boolean => greedyWritten >= expected
let worstMs = firstMs
let changes = 1
while (!isComplete() && !isLost()) {
  worstMs = Math.max(worstMs, await change(`198.51.100.${changes % 250}`))
  changes++
}
const totalMs = Math.round(performance.now() - startedAt)
blocks.disable()
const { spec } = await cluster.client.get(Lease, 'seamark/seamark')
stopping.abort()
await running
process.stdout.write(
  `${JSON.stringify({
    firstMs,
    worstMs,
    totalMs,
    changes,
    writtenAtFirst,
    greedyWritten,
    maxBlockMs: Math.round(blocks.max / 1e6),
    leaseTransitions: spec?.leaseTransitions ?? 0,
    lost,
    refused: cluster.requests.filter(({ body }) => (body as { reason?: string })?.reason === 'EndpointLimitExceeded')
      .length,
  })}\n`,
)
