/**
 * Balance at scale: the cost of a probe, a restart on ten thousand converged load balancers with three endpoints each, and
 * how the cost of a load balancer grows with their number. The API server and the endpoints are in this process, the subjects
 * in processes of their own.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, configFromText, connect, Namespace } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint, loadBalancerCrds } from '@seamark/operator'
import { startEmbeddedPlane } from '../integration/apiserver/embedded-server.ts'
import { after, runProbes, startSubject } from './balance/programs.ts'
import { type Figure, shared } from './figure.ts'

const MANY = 10_000
const FEW = 1_000
const ADDRESSES = ['127.1.0.1', '127.1.0.2', '127.1.0.3']
const IN_FLIGHT = 32
const CONVERGED_LIMIT_MS = 600_000
/** After a restart, for writes that come late. */
const SETTLE_SECONDS = 5
const PROBED = 10_000
const INTERVAL_SECONDS = 10
/** Ours: as many as a connection is kept for, so that each endpoint gets a new one once. */
const ROUNDS = { ours: 12, bare: 4 } as const
const root = join(import.meta.dirname, '../..')

const pause = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function startEndpoints(addresses: readonly string[]): Promise<{ readonly port: number; close(): void }> {
  const servers: Server[] = []
  let port = 0
  for (const address of addresses) {
    // Connections stay open from one interval to the next.
    const server = createServer({ keepAliveTimeout: 120_000 }, (_request, response) => response.end('ok'))
    server.listen(port, address)
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
    servers.push(server)
  }
  return {
    port,
    close() {
      for (const server of servers) {
        server.close()
        server.closeAllConnections()
      }
    },
  }
}

async function createObjects(client: Client, count: number, port: number): Promise<void> {
  let next = 0
  const createSome = async (): Promise<void> => {
    while (next < count) {
      const name = `lb-${next++}`
      await client.create(DNSLoadBalancer, {
        metadata: { namespace: 'default', name },
        // A long interval: the figures are about load balancers, and a probe has one of its own.
        spec: {
          DNSName: `${name}.bench.test`,
          healthPath: '/',
          healthCheck: { scheme: 'http', port, interval: '60s' },
        },
      })
      for (const [index, ipaddress] of ADDRESSES.entries())
        await client.create(DNSLoadBalancerEndpoint, {
          metadata: { namespace: 'default', name: `${name}-${index}` },
          spec: { loadbalancer: name, ipaddress },
        })
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, createSome))
}

/** Every load balancer answers under its name, and has all its endpoints. */
async function untilConverged(client: Client, count: number): Promise<void> {
  const startedMs = performance.now()
  for (;;) {
    const { items } = await client.list(DNSLoadBalancer)
    const isDone = ({ status }: DNSLoadBalancer) =>
      status?.state === 'healthy' && status.active?.length === ADDRESSES.length
    if (items.length === count && items.every(isDone)) return
    if (performance.now() - startedMs > CONVERGED_LIMIT_MS) throw new Error('the load balancers do not converge')
    await pause(2_000)
  }
}

interface Scale {
  /** CPU-seconds of the manager's thread from nothing to published, for each load balancer. */
  readonly cpuPerBalancer: number
  /** From the start of the process until every load balancer was decided. */
  readonly restartSeconds: number
  readonly restartWrites: number
}

async function measureScale(count: number): Promise<Scale> {
  const built = spawnSync(join(root, 'bin/seamark'), ['version'])
  if (built.status !== 0) throw new Error('the bundle with the worker cannot be built')
  const folder = mkdtempSync(join(tmpdir(), 'balance-scale-'))
  const endpoints = await startEndpoints(ADDRESSES)
  const plane = await startEmbeddedPlane(loadBalancerCrds())
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(kubeconfig, plane.kubeconfig(), { mode: 0o600 })
  const user = connect(configFromText(plane.kubeconfig()), { fieldManager: 'bench' })
  const args = [kubeconfig, join(folder, 'zones'), join(root, 'dist/health-worker.mjs'), String(count)]
  try {
    await user.client.create(Namespace, { metadata: { name: 'garden' } })
    await createObjects(user.client, count, endpoints.port)
    const first = await startSubject(...args)
    await untilConverged(user.client, count)
    const { cpuSeconds } = await first.stop()
    const second = await startSubject(...args)
    const { wallSeconds } = await second.until(after('decided'))
    await second.until(after('idle', wallSeconds + SETTLE_SECONDS))
    const { writes } = await second.stop()
    return { cpuPerBalancer: cpuSeconds / count, restartSeconds: wallSeconds, restartWrites: writes }
  } finally {
    endpoints.close()
    await user.close()
    await plane.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const many = shared(async () => measureScale(MANY))

async function measureProbes(): Promise<number> {
  const endpoints = await startEndpoints(['127.0.0.1'])
  try {
    const perCpuSecond: number[] = []
    for (const mode of ['ours', 'bare'] as const) {
      const rounds = ROUNDS[mode]
      const { probes, failures, cpuSeconds } = await runProbes(mode, endpoints.port, PROBED, INTERVAL_SECONDS, rounds)
      const wanted = PROBED * rounds
      if (failures > 0 || Math.abs(probes - wanted) > wanted * 0.05)
        throw new Error(`${mode}: ${probes} of ${wanted} probes passed, ${failures} failed`)
      perCpuSecond.push(probes / cpuSeconds)
    }
    return (perCpuSecond[0] ?? 0) / (perCpuSecond[1] ?? 0)
  } finally {
    endpoints.close()
  }
}

export const figures: Figure[] = [
  {
    name: 'balance.probes',
    what: `probes per CPU-second, ${PROBED} endpoints every ${INTERVAL_SECONDS} s over kept connections`,
    unit: 'ratio',
    bound: { min: 0.6 },
    against: 'a bare loop of node:http at the same pace, same run',
    runs: 1,
    measure: measureProbes,
  },
  {
    name: 'balance.restart',
    what: `restart on ${MANY} converged load balancers with three endpoints each: process start → every one decided`,
    unit: 's',
    bound: { max: 5 },
    against: '-',
    runs: 1,
    measure: async (run) => (await many(run)).restartSeconds,
  },
  {
    name: 'balance.restart.writes',
    what: 'write requests of that restart',
    unit: 'count',
    bound: { max: 0 },
    against: '-',
    runs: 1,
    measure: async (run) => (await many(run)).restartWrites,
  },
  {
    name: 'balance.growth',
    what: `CPU per load balancer from nothing to published, ${MANY} of them`,
    unit: 'ratio',
    bound: { max: 1.2 },
    against: `the same with ${FEW}, same run`,
    runs: 1,
    measure: async (run) => {
      const few = await measureScale(FEW)
      return (await many(run)).cpuPerBalancer / few.cpuPerBalancer
    },
  },
]
