/**
 * A hub whose API server stops answering, with `seamark run` as it is shipped (DNS server, gateway, fleet, balance): every query
 * and every request from the beginning to the end is counted.
 *
 * By hand: `node --conditions=source --import tsx test/integration/process/outage-bench.ts KIND REPLICAS SECONDS`
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createDnsClient, type DnsClient, groupRecords } from '@seamark/dns'
import {
  type Client,
  configFromText,
  connect,
  CustomResourceDefinition,
  EndpointSlice,
  Ingress,
  Namespace,
  Service,
} from '@seamark/kube'
import { DNSEndpoint, playgroundCrds } from '@seamark/operator'
import { freePort } from '../dns/peers.ts'
import { buildBundle, type ManagerProcess, startManager } from '../records/manager-process.ts'

const bundle = join(import.meta.dirname, '../../../dist/seamark.mjs')

/** `stall`: connections stay open, and nothing is answered (SIGSTOP). `down`: killed, and started again later. */
export type OutageKind = 'stall' | 'down'

export interface OutageOptions {
  readonly kind: OutageKind
  readonly replicas: number
  readonly outageMs: number
  /** Settings of the Lease; none: as shipped. */
  readonly leaseFlags?: readonly string[]
  /** Queries and requests a second, to each replica. */
  readonly perSecond: number
}

interface ReplicaCounts {
  answers: number
  responses: number
  /** Of /healthz and /metrics, once a second. */
  reports: number
  /** What was not answered as before the outage. */
  readonly failures: string[]
}

export interface OutageResult {
  readonly counts: readonly ReplicaCounts[]
  /** From the return of the API server to the answer that follows a change, for the slowest replica. */
  readonly changedAfterMs: number
  readonly logs: readonly string[]
  /** Lines of the log that end a process. */
  readonly hasEnded: readonly boolean[]
}

interface Hub {
  readonly client: Client
  readonly kubeconfig: string
  stop(): Promise<void>
  begin(kind: OutageKind): Promise<void>
  end(kind: OutageKind): Promise<void>
}

async function startHub(folder: string): Promise<Hub> {
  const port = await freePort()
  const kubeconfig = join(folder, 'kubeconfig')
  let program: ChildProcess
  const start = async (): Promise<void> => {
    const argv = [
      'apiserver',
      '--listen',
      `127.0.0.1:${port}`,
      '--kubeconfig',
      kubeconfig,
      '--data-dir',
      join(folder, 'hub'),
    ]
    program = spawn(process.execPath, [bundle, ...argv], { stdio: ['ignore', 'pipe', 'inherit'] })
    for await (const line of createInterface(program.stdout as NodeJS.ReadableStream))
      if (line.startsWith('ready')) break
    program.stdout?.resume()
  }
  const kill = async (): Promise<void> => {
    const ended = once(program, 'exit')
    program.kill('SIGKILL')
    await ended
  }
  await start()
  const cluster = connect(configFromText(await readFile(kubeconfig, 'utf8')), { fieldManager: 'test' })
  return {
    client: cluster.client,
    kubeconfig,
    begin: async (kind) => (kind === 'down' ? kill() : void program.kill('SIGSTOP')),
    end: async (kind) => (kind === 'down' ? start() : void program.kill('SIGCONT')),
    async stop() {
      await cluster.close()
      await kill()
    },
  }
}

const NAME = 'www.example.test'
const HOST = 'app.example.test'
const [BEFORE, AFTER] = ['192.0.2.1', '192.0.2.2']

async function prepare(client: Client, backend: number): Promise<void> {
  for (const crd of playgroundCrds())
    await client.apply(CustomResourceDefinition, crd, { fieldManager: 'test', force: true })
  for (const name of ['web', 'seamark']) await client.create(Namespace, { metadata: { name } })
  await until('DNSEndpoint is served', async () => {
    await client.create(DNSEndpoint, {
      metadata: { namespace: 'web', name: 'www' },
      spec: { endpoints: [{ dnsName: NAME, recordType: 'A', recordTTL: 60, targets: [BEFORE] }] },
    })
    return true
  })
  const metadata = { namespace: 'web', name: 'app' }
  await client.create(Service, { metadata, spec: { ports: [{ name: 'http', port: 80 }] } })
  await client.create(EndpointSlice, {
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'app' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: backend }],
    endpoints: [{ addresses: [backendAddress()], conditions: { ready: true } }],
  })
  const service = { name: 'app', port: { number: 80 } }
  await client.create(Ingress, {
    metadata,
    spec: {
      rules: [{ host: HOST, http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service } }] } }],
    },
  })
}

/** An EndpointSlice may not have a loopback address. Undefined: this machine has no other. */
export function findBackendAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
}

function backendAddress(): string {
  const address = findBackendAddress()
  if (address === undefined) throw new Error('this machine has no address but loopback ones')
  return address
}

/** Polls; an error counts as not yet. */
async function until(what: string, check: () => Promise<boolean>, timeoutMs = 90_000): Promise<number> {
  const startedAt = performance.now()
  for (;;) {
    if (await check().catch(() => false)) return performance.now() - startedAt
    if (performance.now() - startedAt > timeoutMs) throw new Error(`${what}: not within ${timeoutMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

interface Replica {
  readonly process: ManagerProcess
  readonly dns: number
  readonly http: number
  readonly probes: number
}

async function startReplica(hub: Hub, flags: readonly string[]): Promise<Replica> {
  const [dns, http, probes] = [await freePort(), await freePort(), await freePort()]
  const settings = {
    'probes-address': `127.0.0.1:${probes}`,
    kubeconfig: hub.kubeconfig,
    namespace: 'seamark',
    mode: 'enforce',
    'dns-listen': `127.0.0.1:${dns}`,
    'dns-zones': 'example.test',
    'gateway-http-listen': `127.0.0.1:${http}`,
    'gateway-https-listen': '127.0.0.1:0',
    'gateway-status-addresses': '192.0.2.10',
  }
  const switches = ['--allow-loopback', '--fleet-enabled', '--balance-enabled', '--gateway-enabled']
  const given = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const process_ = await startManager([...given, ...switches, ...flags])
  return { process: process_, dns, http, probes }
}

async function resolve(client: DnsClient, { dns }: Replica): Promise<string> {
  const { message } = await client.query({ server: { address: '127.0.0.1', port: dns }, name: NAME, type: 'A' })
  const [set] = groupRecords(message.answers)
  return set?.values[0] ?? `rcode ${message.rcode}`
}

async function get({ http }: Replica): Promise<number> {
  return new Promise((done, fail) => {
    const call = request(
      { host: '127.0.0.1', port: http, headers: { host: HOST }, agent: false, timeout: 5_000 },
      (response) => {
        response.resume()
        done(response.statusCode ?? 0)
      },
    )
    call.on('timeout', () => call.destroy(new Error('no response within 5 s')))
    call.on('error', fail)
    call.end()
  })
}

/** /healthz is well, and metrics are served. */
async function report({ process: running, probes }: Replica): Promise<void> {
  const { status } = await fetch(`http://127.0.0.1:${probes}/healthz`)
  if (status !== 200) throw new Error(`/healthz: ${status}`)
  if (!(await running.metrics()).includes('leader_election_master_status')) throw new Error('/metrics: incomplete')
}

/** Asks until stopped; the rate does not depend on how fast the answers are. */
function load(replica: Replica, client: DnsClient, perSecond: number, accepted: () => readonly string[]) {
  const counts: ReplicaCounts = { answers: 0, responses: 0, reports: 0, failures: [] }
  const asking = new Set<Promise<void>>()
  const note = (what: string, error: unknown) =>
    void counts.failures.push(`${new Date().toISOString()} ${what}: ${String(error)}`)
  const wait = (each: Promise<void>): void => {
    asking.add(each)
    void each.finally(() => asking.delete(each))
  }
  const reportTimer = setInterval(() => {
    wait(
      report(replica)
        .then(() => void counts.reports++)
        .catch((error: unknown) => note('report', error)),
    )
  }, 1_000)
  const timer = setInterval(() => {
    const dns = resolve(client, replica)
      .then((value) => (accepted().includes(value) ? void counts.answers++ : note('DNS', value)))
      .catch((error: unknown) => note('DNS', error))
    const http = get(replica)
      .then((status) => (status === 200 ? void counts.responses++ : note('HTTP', status)))
      .catch((error: unknown) => note('HTTP', error))
    for (const each of [dns, http]) wait(each)
  }, 1_000 / perSecond)
  return {
    counts,
    async stop() {
      clearInterval(timer)
      clearInterval(reportTimer)
      await Promise.all(asking)
    },
  }
}

export async function runOutage(options: OutageOptions): Promise<OutageResult> {
  buildBundle()
  const folder = await mkdtemp(join(tmpdir(), 'seamark-outage-'))
  const backend: Server = createServer((_request, response) => response.end('ok'))
  backend.listen(0)
  await once(backend, 'listening')
  const hub = await startHub(folder)
  const client = createDnsClient({ timeoutMs: 2_000, tries: 1 })
  const replicas: Replica[] = []
  try {
    await prepare(hub.client, (backend.address() as { port: number }).port)
    for (let index = 0; index < options.replicas; index++)
      replicas.push(await startReplica(hub, options.leaseFlags ?? []))
    for (const replica of replicas) {
      await until('the first answer', async () => (await resolve(client, replica)) === BEFORE)
      await until('the first response', async () => (await get(replica)) === 200)
    }
    let accepted: readonly string[] = [BEFORE]
    const loads = replicas.map((replica) => load(replica, client, options.perSecond, () => accepted))
    await hub.begin(options.kind)
    await new Promise((done) => setTimeout(done, options.outageMs))
    await hub.end(options.kind)
    accepted = [BEFORE, AFTER]
    const returnedAt = performance.now()
    await until('the change is accepted', async () => {
      const found = await hub.client.get(DNSEndpoint, 'web/www')
      const endpoints = [{ dnsName: NAME, recordType: 'A', recordTTL: 60, targets: [AFTER] }]
      await hub.client.update(DNSEndpoint, { ...found, spec: { endpoints } })
      return true
    })
    for (const replica of replicas)
      await until('the change is answered', async () => (await resolve(client, replica)) === AFTER)
    const changedAfterMs = performance.now() - returnedAt
    for (const each of loads) await each.stop()
    return {
      counts: loads.map(({ counts }) => counts),
      changedAfterMs,
      logs: replicas.map(({ process: running }) => running.log()),
      hasEnded: replicas.map(({ process: { child } }) => child.exitCode !== null),
    }
  } catch (error) {
    const logs = replicas.map(({ process: running }) => running.log().slice(-4_000)).join('\n---\n')
    throw new Error(`${String(error)}\n${logs}`, { cause: error })
  } finally {
    await Promise.all(replicas.map(async ({ process: running }) => running.kill()))
    await client.close()
    await hub.stop()
    backend.close()
    await rm(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === import.meta.filename) {
  const [, , kind = 'stall', replicas = '1', seconds = '15'] = process.argv
  const result = await runOutage({
    kind: kind as OutageKind,
    replicas: Number(replicas),
    outageMs: Number(seconds) * 1_000,
    perSecond: 20,
  })
  for (const { answers, responses, reports, failures } of result.counts)
    process.stdout.write(
      `answers ${answers}, responses ${responses}, reports ${reports}, failures ${failures.length} ${failures.slice(0, 5).join(' | ')}\n`,
    )
  if (result.counts.some(({ failures }) => failures.length > 0)) process.exitCode = 1
  process.stdout.write(`changed after ${Math.round(result.changedAfterMs)} ms; ended: ${result.hasEnded.join()}\n`)
}
