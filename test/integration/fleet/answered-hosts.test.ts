/**
 * What is said about hosts beside what the DNS server of the manager answers: one that two roots share, one in no zone, and the
 * state of the load balancer of each.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords } from '@seamark/dns'
import { findCondition, Ingress } from '@seamark/kube'
import { DNSLoadBalancer, GlobalIngressPolicy, loadConfig } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCommand } from '../records/run-command.ts'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

const HOST = 'shop.example.com'
const CONFIG = `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
publish: { enabled: false }
fleet: { enabled: true }
balance: { enabled: true }
dns: { listen: ['127.0.0.1:0'], zones: [example.com] }
`
const SETTINGS = {
  traffic: { ttlSeconds: 1 },
  migration: { drainSeconds: 1, minHoldSeconds: 0 },
  health: { protocol: 'TCP', intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 2 },
} as const
const resolver = createDnsClient()
let environment: FleetEnvironment
let gateways: Server[]
let folder: string
let dns: { address: string; port: number }

async function listen(address: string, port = 0): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end())
  await new Promise<void>((resolve) => server.listen(port, address, resolve))
  return server
}

beforeAll(async () => {
  environment = await FleetEnvironment.start(['eu1', 'us1'])
  const first = await listen('127.0.0.1')
  const { port } = first.address() as AddressInfo
  gateways = [first, await listen('127.0.0.2', port)]
  for (const name of ['eu1', 'us1']) {
    await environment.register(name)
    await environment.deploy(name)
  }
  await environment.hub.client.create(GlobalIngressPolicy, {
    metadata: { namespace: 'manager', name: 'default' },
    spec: { ...SETTINGS, health: { ...SETTINGS.health, port } },
  } as GlobalIngressPolicy)
  folder = await mkdtemp(join(tmpdir(), 'seamark-answered-'))
  await writeFile(join(folder, 'kubeconfig'), environment.hub.kubeconfig, { mode: 0o600 })
  const loaded = loadConfig({ file: CONFIG })
  if (!loaded.ok) throw new Error(loaded.faults.join('; '))
  const address = await new Promise<string>((resolve) => {
    environment.run(
      {},
      {
        balance: { config: loaded.config.balance, startThread: proberInThisThread(20) },
        dns: { config: loaded.config.dns, env: {} },
        onReady: ({ dns: [at] = [] }) => resolve(at ?? ''),
      },
    )
  })
  dns = { address: '127.0.0.1', port: Number(address.split(':').at(-1)) }
  await writeFile(join(folder, 'config.yaml'), CONFIG.replace('127.0.0.1:0', `127.0.0.1:${dns.port}`))
})

afterAll(async () => {
  await environment[Symbol.asyncDispose]()
  await resolver.close()
  for (const gateway of gateways) gateway.close()
  await rm(folder, { recursive: true, force: true })
})

async function answer(name: string): Promise<string[]> {
  const { message } = await resolver.query({ server: dns, name, type: 'A' })
  return groupRecords(message.answers)
    .flatMap(({ values }) => [...values])
    .sort()
}

async function create(name: string, host: string): Promise<void> {
  await environment.hub.client.create(Ingress, root(name, host))
  await environment.admit('eu1', `shop/${name}`, '127.0.0.1')
  await environment.admit('us1', `shop/${name}`, '127.0.0.2')
}

/** The last line of the tree, and the first one of explain. */
async function verdicts(host: string): Promise<(string | undefined)[]> {
  const files = ['--kubeconfig', join(folder, 'kubeconfig'), '--config', join(folder, 'config.yaml'), '-n', 'manager']
  const tree = await runCommand(['tree', host, ...files])
  const explained = await runCommand(['explain', host, ...files])
  return [tree.stdout.trimEnd().split('\n').at(-1), explained.stdout.split('\n')[0]]
}

async function conditions(name: string, ...types: string[]): Promise<string[]> {
  const status = (await environment.global(name))?.status
  return types.map((type) => {
    const { status: value, reason } = findCondition(status?.conditions, type) ?? {}
    return `${type} ${value} ${reason}`
  })
}

it('two roots that share a host are both published where both serve', async () => {
  await create('shop', HOST)
  await expect.poll(async () => answer(HOST), POLL_OPTIONS).toEqual(['127.0.0.1', '127.0.0.2'])
  await create('cart', HOST)
  const good = ['DNSPublished True Published', 'Degraded False Serving', 'Ready True Serving']
  for (const name of ['shop', 'cart'])
    await expect.poll(async () => conditions(name, 'DNSPublished', 'Degraded', 'Ready'), POLL_OPTIONS).toEqual(good)
  expect(await verdicts(HOST)).toEqual([`${HOST} is as it should be`, `${HOST} is as it should be`])
  // One of them is not on us1 any more: the host is answered where both serve.
  await environment.hub.client.create(GlobalIngressPolicy, {
    metadata: { namespace: 'shop', name: 'cart' },
    spec: {
      ...SETTINGS,
      targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'cart' }],
      placement: { clusters: ['eu1'] },
    },
  } as GlobalIngressPolicy)
  await expect.poll(async () => answer(HOST), POLL_OPTIONS).toEqual(['127.0.0.1'])
  await expect.poll(async () => environment.phases('cart'), POLL_OPTIONS).toBe('eu1 Active')
  expect(await verdicts(HOST)).toEqual([`${HOST} is as it should be`, `${HOST} is as it should be`])
})

it('the state of a load balancer is what the zone answers, and not what the resolver of the machine knows', async () => {
  await create('state', 'state.example.com')
  const state = async (): Promise<string | undefined> => {
    const { items } = await environment.hub.client.list(DNSLoadBalancer)
    return items.find(({ spec }) => spec.DNSName === 'state.example.com')?.status?.state
  }
  await expect.poll(state, POLL_OPTIONS).toBe('healthy')
  expect(await answer('state.example.com')).toEqual(['127.0.0.1', '127.0.0.2'])
})

it('a host that is in no zone of the manager says so, with the zones and what to add', async () => {
  await create('outside', 'shop.example.org')
  const text = async (): Promise<string> => {
    const { reason, message } =
      findCondition((await environment.global('outside'))?.status?.conditions, 'DNSPublished') ?? {}
    return `${reason}: ${message}`
  }
  await expect
    .poll(text, POLL_OPTIONS)
    .toMatch(
      /^NoMatchingZone: shop\.example\.org is in no zone of this manager \(example\.com\); add it to dns\.zones, .*answeredElsewhere/,
    )
  const meaning = 'no configured provider serves a zone for this name'
  await expect
    .poll(async () => verdicts('shop.example.org'), POLL_OPTIONS)
    .toEqual([`shop.example.org is broken at plan: ${meaning}`, `shop.example.org is broken at plan: ${meaning}`])
  const { stdout } = await runCommand(['tree', 'shop.example.org', '--kubeconfig', join(folder, 'kubeconfig')])
  expect(stdout).toContain('127.0.0.1  published')
  // Also without the configuration of the manager.
  expect(stdout.trimEnd().split('\n').at(-1)).toBe(`shop.example.org is broken at plan: ${meaning}`)
})
