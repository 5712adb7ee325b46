/**
 * Balance: from the death of an endpoint to the authoritative answer without it, and from a verdict to the answer.
 * `seamark dnslb` runs in this process on an embedded API server, with the prober in its worker thread and the embedded
 * DNS server as provider. Backends are HTTP servers on addresses of 127.0.0.0/8.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createDnsServer, createRRset, createZone, type DnsServer, fqdn } from '@seamark/dns'
import { type Client, configFromText, connect, createLogger, Namespace, systemClock } from '@seamark/kube'
import {
  createProviderTypes,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  embeddedProvider,
  loadBalancerCrds,
  runDnslb,
} from '@seamark/operator'
import { startWorker } from '@seamark/operator/testing'
import { startEmbeddedPlane } from '../integration/apiserver/embedded-server.ts'
import { type Figure, median, shared } from './figure.ts'

const ZONE = fqdn('bench.test.')
const KILLS = 200
/** Kills are spread, so that they are not taken for a failure of the prober's own network. */
const BETWEEN_KILLS_MS = 100
const LIMIT_MS = 60_000
const root = join(import.meta.dirname, '../..')

const nameOf = (index: number) => fqdn(`lb-${index}.${ZONE}`)
const addressOf = (index: number, side: 1 | 2) => `127.${side}.${Math.floor(index / 250)}.${1 + (index % 250)}`

const pause = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Health of a backend: answers, refuses connections, or accepts and never answers. */
interface Backend {
  refuse(): void
  hang(): void
}

async function startBackends(addresses: readonly string[]) {
  const servers: Server[] = []
  const backends = new Map<string, Backend>()
  let port = 0
  for (const address of addresses) {
    let isHanging = false
    const server = createServer((_request, response) => {
      if (!isHanging) response.end('ok')
    })
    server.listen(port, address)
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
    servers.push(server)
    backends.set(address, {
      refuse() {
        server.close()
        server.closeAllConnections()
      },
      hang: () => void (isHanging = true),
    })
  }
  const close = (): void => {
    for (const server of servers) {
      server.close()
      server.closeAllConnections()
    }
  }
  return { port, backends, close }
}

function answerOf(dns: DnsServer, index: number): readonly string[] {
  return dns.findZone(ZONE)?.find(nameOf(index), 'A')?.values ?? []
}

async function createObjects(client: Client, port: number, profile: 'default' | 'fast'): Promise<void> {
  for (let index = 0; index < KILLS; index++) {
    const name = `lb-${index}`
    await client.create(DNSLoadBalancer, {
      metadata: { namespace: 'default', name },
      spec: { DNSName: `${name}.bench.test`, healthPath: '/', healthCheck: { scheme: 'http', port, profile } },
    })
    for (const side of [1, 2] as const)
      await client.create(DNSLoadBalancerEndpoint, {
        metadata: { namespace: 'default', name: `${name}-${side}` },
        spec: { loadbalancer: name, ipaddress: addressOf(index, side) },
      })
  }
}

interface Failover {
  /** Of each kill, seconds. */
  readonly seconds: readonly number[]
  /** From the report of the prober to the answer, ms. */
  readonly publishMs: readonly number[]
}

async function measureFailover(profile: 'default' | 'fast', death: 'refuse' | 'hang'): Promise<Failover> {
  const built = spawnSync(join(root, 'bin/seamark'), ['version'])
  if (built.status !== 0) throw new Error('the bundle with the worker cannot be built')
  const worker = pathToFileURL(join(root, 'dist/health-worker.mjs'))
  const addresses = Array.from({ length: KILLS }, (_, index) => [addressOf(index, 1), addressOf(index, 2)]).flat()
  const { port, backends, close } = await startBackends(addresses)
  const plane = await startEmbeddedPlane(loadBalancerCrds())
  const config = configFromText(plane.kubeconfig())
  const user = connect(config, { fieldManager: 'bench' })
  const zone = createZone(ZONE, [
    createRRset(ZONE, 'SOA', 60, [`ns.${ZONE} hostmaster.${ZONE} 1 3600 600 86400 30`]),
    createRRset(ZONE, 'NS', 60, [`ns.${ZONE}`]),
  ])
  const dns = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
  await user.client.create(Namespace, { metadata: { name: 'garden' } })
  await createObjects(user.client, port, profile)
  const stop = new AbortController()
  /** When the prober last reported an address unhealthy, by address. */
  const reportedMs = new Map<string, number>()
  const target = connect(config, { fieldManager: 'seamark-dnslb' })
  const running = runDnslb(
    {
      target,
      controllers: { endpoint: false, dns: true },
      identity: 'bench',
      defaults: { ttlSeconds: 30, onAllUnhealthy: 'ServeLast' },
      providers: { isDynamic: false, staticTypes: [] },
      types: createProviderTypes(),
      env: {},
      extraProviders: [embeddedProvider({ server: dns })],
      hasLeases: false,
      isOnce: false,
      isDryRun: false,
      guard: { allowLoopback: true },
      resolver: `127.0.0.1:${dns.addresses[0]?.port ?? 0}`,
      fieldManager: 'seamark-dnslb',
      log: createLogger({ level: 'error' }),
      clock: systemClock,
      healthTimeoutMs: 120_000,
      startThread: (settings, events) =>
        startWorker(
          settings,
          {
            ...events,
            onReports(reports) {
              for (const { key, verdict } of reports)
                if (verdict === 'unhealthy') reportedMs.set((JSON.parse(key) as string[])[2] ?? '', performance.now())
              events.onReports(reports)
            },
          },
          worker,
        ),
    },
    stop.signal,
  )
  try {
    const startedMs = performance.now()
    const isReady = () =>
      Array.from({ length: KILLS }, (_, index) => answerOf(dns, index)).every((set) => set.length === 2)
    while (!isReady()) {
      if (performance.now() - startedMs > LIMIT_MS) throw new Error('the load balancers are not published')
      await pause(50)
    }
    const killedMs = new Map<number, number>()
    const seconds: number[] = []
    const publishMs: number[] = []
    let next = 0
    const beganMs = performance.now()
    while (seconds.length < KILLS) {
      const nowMs = performance.now()
      if (nowMs - beganMs > LIMIT_MS + KILLS * BETWEEN_KILLS_MS)
        throw new Error('an answer did not follow its endpoint')
      if (next < KILLS && nowMs - beganMs >= next * BETWEEN_KILLS_MS) {
        backends.get(addressOf(next, 1))?.[death]()
        killedMs.set(next++, nowMs)
      }
      for (const [index, atMs] of killedMs) {
        if (answerOf(dns, index).includes(addressOf(index, 1))) continue
        killedMs.delete(index)
        seconds.push((nowMs - atMs) / 1_000)
        publishMs.push(nowMs - (reportedMs.get(addressOf(index, 1)) ?? nowMs))
      }
      await pause(2)
    }
    return { seconds, publishMs }
  } finally {
    stop.abort()
    await running.catch(() => undefined)
    close()
    await dns.close()
    await user.close()
    await target.close()
    await plane.stop()
  }
}

function percentile99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN
}

const refused = shared(async () => measureFailover('default', 'refuse'))
const hanging = shared(async () => measureFailover('default', 'hang'))
const fast = shared(async () => measureFailover('fast', 'hang'))

const failover = (name: string, what: string, max: number, measure: typeof refused): Figure => ({
  name: `balance.failover.${name}`,
  what: `${what}: endpoint dies → authoritative answer without it, p99 of ${KILLS} kills`,
  unit: 's',
  bound: { max },
  against: '-',
  runs: 1,
  measure: async (run) => percentile99((await measure(run)).seconds),
})

export const figures: Figure[] = [
  failover('refused', 'connections are refused', 7.7, refused),
  failover('blackhole', 'connections are accepted and never answered', 14.3, hanging),
  failover('fast', 'never answered, profile fast', 3.3, fast),
  {
    name: 'balance.publish',
    what: 'verdict → answer, embedded provider, median of the kills',
    unit: 'ms',
    bound: { max: 50 },
    against: '-',
    runs: 1,
    measure: async (run) => median((await refused(run)).publishMs),
  },
]
