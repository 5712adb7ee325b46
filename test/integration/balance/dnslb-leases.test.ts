/**
 * The leases of `seamark dnslb`, with the shipped program: one pair for each cluster connection. A process that waits in one
 * cluster works in the other, answers probes, and says which lease it waits for; a process that is killed is replaced.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Lag } from '@seamark/kit/lag'
import { type Client, Lease, Service } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { createNamespace, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { buildBundle } from '../records/manager-process.ts'
import { POLL_OPTIONS } from './backends.ts'
import { type DnslbProcess, startDnslb } from './dnslb-process.ts'

const LEASE = 'garden/dnslb-controller-manager-lease'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

beforeAll(() => buildBundle(), 120_000)

interface Clusters {
  readonly target: Client
  readonly source: (name: string) => Client
  /** All controllers; with its own source cluster, or in one cluster without a name. */
  start(source: string | undefined, ...argv: readonly string[]): DnslbProcess
}

async function startClusters(start: () => Promise<TestEnvironment>, ...sources: readonly string[]): Promise<Clusters> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-leases-'))
  cleanups.push(async () => rm(folder, { recursive: true, force: true }))
  const clients = new Map<string, Client>()
  for (const name of ['target', ...sources]) {
    const environment = await start()
    cleanups.push(async () => environment[Symbol.asyncDispose]())
    for (const namespace of ['web', 'garden']) await createNamespace(environment.client, namespace)
    await writeFile(join(folder, name), environment.kubeconfig, { mode: 0o600 })
    clients.set(name, environment.client)
  }
  const client = (name: string): Client => {
    const found = clients.get(name)
    if (found === undefined) throw new Error(`there is no cluster ${name}`)
    return found
  }
  return {
    target: client('target'),
    source: client,
    start(source, ...argv) {
      const own = ['--kubeconfig', join(folder, source ?? 'target')]
      const other = source === undefined ? [] : ['--targetkube', join(folder, 'target'), '--cluster', source]
      const program = startDnslb([...own, ...other, ...argv])
      cleanups.push(async () => program.kill())
      return program
    },
  }
}

async function createBalancer(client: Client): Promise<void> {
  const object = { metadata: { namespace: 'web', name: 'shop' }, spec: { DNSName: 'shop.example.test' } }
  // A server serves a kind a moment after its CRD is established.
  const create = async () => client.create(DNSLoadBalancer, object).then(() => 'created', String)
  await expect.poll(create, POLL_OPTIONS).toBe('created')
}

async function createSource(client: Client, name: string, balancer = 'shop'): Promise<void> {
  const annotations = { 'loadbalancer.gardener.cloud/dnsloadbalancer': balancer }
  await client.create(Service, {
    metadata: { namespace: 'web', name, annotations },
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
  })
  const status = { loadBalancer: { ingress: [{ ip: '127.0.0.2' }] } }
  await client.patch(Service, `web/${name}`, 'merge', { status }, { subresource: 'status' })
}

/** Resolves with the time since `sinceMs`. */
async function expectEndpoint(client: Client, name: string, sinceMs = performance.now()): Promise<number> {
  const names = async () => (await client.list(DNSLoadBalancerEndpoint)).items.map(({ metadata }) => metadata.name)
  await expect.poll(names, POLL_OPTIONS).toContain(name)
  return performance.now() - sinceMs
}

/** The bounds of docs/balance.md, from the start of a process and from the death of the one before it. */
const START_MS = 5_000
const TAKE_OVER_MS = 18_000
/** Waits one after another in these times, each of which a busy machine makes longer. */
const HOPS = 10

function expectWithin(what: string, tookMs: number, boundMs: number, { maxMs }: Lag): void {
  process.stdout.write(`${what}: ${(tookMs / 1000).toFixed(1)} s, longest lag ${maxMs.toFixed(0)} ms\n`)
  expect(tookMs).toBeLessThanOrEqual(boundMs + HOPS * maxMs)
}

const holderOf = async (client: Client) => (await client.find(Lease, LEASE))?.spec?.holderIdentity ?? ''

async function expectHolder(client: Client, { child }: DnslbProcess): Promise<void> {
  await expect.poll(async () => holderOf(client), POLL_OPTIONS).toMatch(new RegExp(`/${child.pid}$`))
}

const linesOf = (program: DnslbProcess, text: string) =>
  program
    .log()
    .split('\n')
    .filter((line) => line.includes(text))

describe.each(environmentKinds)('the leases of dnslb on $name', ({ isMissing, start }) => {
  it.skipIf(isMissing)(
    'are held per cluster: a second source cluster is served while another process has the target',
    async () => {
      const clusters = await startClusters(start, 'east', 'west')
      const first = clusters.start('east')
      await createBalancer(clusters.target)
      await createSource(clusters.source('east'), 'shop')
      await expectEndpoint(clusters.target, 'east-shop-service')
      await createSource(clusters.source('west'), 'shop')
      const port = await freePort()
      using lag = new Lag()
      const startedMs = performance.now()
      const second = clusters.start('west', '--port', String(port))
      const tookMs = await expectEndpoint(clusters.target, 'west-shop-service', startedMs)
      expectWithin('start to endpoint in the second cluster', tookMs, START_MS, lag)
      await expectHolder(clusters.source('west'), second)
      await expectHolder(clusters.target, first)
      // It waits in the target cluster, says so once, and answers.
      const holder = await holderOf(clusters.target)
      await expect.poll(() => linesOf(second, 'waiting for').length, POLL_OPTIONS).toBe(1)
      const line = linesOf(second, 'waiting for').join()
      for (const text of [LEASE, holder, '"cluster":"target"']) expect(line).toContain(text)
      expect(await fetch(`http://127.0.0.1:${port}/healthz`).then(({ status }) => status)).toBe(200)
      const metrics = await fetch(`http://127.0.0.1:${port}/metrics`).then(async (response) => response.text())
      expect(metrics).toContain('leader_election_master_status{name="west/dnslb-controller-manager-lease"} 1')
      expect(metrics).toContain('leader_election_master_status{name="target/dnslb-controller-manager-lease"} 0')
      // It takes over in the target cluster when the other one ends.
      expect(await first.stop()).toBe(0)
      await expectHolder(clusters.target, second)
      expect(linesOf(second, 'waiting for')).toHaveLength(1)
      expect(await second.stop()).toBe(0)
    },
  )

  it.skipIf(isMissing)('pass to a standby when their holder is killed, with one cluster and with two', async () => {
    const one = await startClusters(start)
    const two = await startClusters(start, 'east')
    const cases = [
      { clusters: one, client: one.target, source: undefined, endpoint: 'late-service' },
      { clusters: two, client: two.source('east'), source: 'east', endpoint: 'east-late-service' },
    ]
    await Promise.all(
      cases.map(async ({ clusters, client, source, endpoint }) => {
        const leader = clusters.start(source)
        await createBalancer(clusters.target)
        await expectHolder(client, leader)
        const port = await freePort()
        const standby = clusters.start(source, '--port', String(port))
        await expect.poll(() => linesOf(standby, 'waiting for').length, POLL_OPTIONS).toBe(source === undefined ? 1 : 2)
        expect(await fetch(`http://127.0.0.1:${port}/healthz`).then(({ status }) => status)).toBe(200)
        using lag = new Lag()
        const killedMs = performance.now()
        await leader.kill()
        await createSource(client, 'late')
        const tookMs = await expectEndpoint(clusters.target, endpoint, killedMs)
        expectWithin(
          `take-over with ${source === undefined ? 'one cluster' : 'two clusters'}`,
          tookMs,
          TAKE_OVER_MS,
          lag,
        )
        await expectHolder(client, standby)
        await expectHolder(clusters.target, standby)
        expect(await standby.stop()).toBe(0)
      }),
    )
  })
})
