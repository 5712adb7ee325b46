/**
 * A tenant that uses health checks to read what it cannot reach, of the shipped manager with little memory: no request of its own
 * making arrives, and the load balancer of another namespace is followed meanwhile.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Event } from '@seamark/kube'
import { isThorough } from '@seamark/kit'
import { DNSEndpoint, DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS } from '../integration/fleet/test-environment.ts'
import { type LimitedProcess, startLimited } from './limited-process.ts'
import { watchVictim } from './victim.ts'

const HEAP_MIB = 512
const ROUNDS = isThorough ? 60 : 15
/** What the tenant wants to know of a service of another namespace. */
const SECRET = 'account 4711'
/** First characters that the tenant guesses, one load balancer each. */
const GUESSES = 'abcdefghijklmnopqrstuvwxyz0123456789'.split('')

let environment: FleetEnvironment
let manager: LimitedProcess
let folder = ''
const closes: (() => void)[] = []

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closes.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

type HealthCheck = NonNullable<DNSLoadBalancer['spec']['healthCheck']>

async function balance(namespace: string, name: string, healthCheck: HealthCheck, dnsName?: string): Promise<void> {
  const { client } = environment.hub
  const metadata = { namespace, name }
  const spec = { DNSName: dnsName ?? `${name}.${namespace}.example.com`, healthPath: '/', healthCheck }
  await client.create(DNSLoadBalancer, { metadata, spec })
  await client.create(DNSLoadBalancerEndpoint, { metadata, spec: { loadbalancer: name, ipaddress: '127.0.0.1' } })
}

const readyOf = async (key: `${string}/${string}`) =>
  (await environment.hub.client.get(DNSLoadBalancer, key)).status?.conditions?.find(({ type }) => type === 'Ready')
const targetsOf = async (key: `${string}/${string}`) =>
  (await environment.hub.client.find(DNSEndpoint, key))?.spec.endpoints.flatMap(({ targets }) => targets)

beforeAll(async () => {
  environment = await FleetEnvironment.start([])
  await environment.namespace(environment.hub.client, 'tenant')
  await environment.namespace(environment.hub.client, 'platform')
  folder = mkdtempSync(join(tmpdir(), 'seamark-abuse-balance-'))
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(kubeconfig, environment.hub.kubeconfig)
  const config = join(folder, 'seamark.yaml')
  writeFileSync(
    config,
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
allowLoopback: true
publish: { enabled: false }
balance: { enabled: true, resolver: "127.0.0.1:1", trustedNamespaces: [platform] }
metrics: { address: "127.0.0.1:0" }
probes: { address: "127.0.0.1:0" }
`,
  )
  manager = startLimited(
    'bin/seamark',
    ['run', '--kubeconfig', kubeconfig, '--config', config, '-n', 'manager'],
    HEAP_MIB,
  )
}, 90_000)
afterAll(async () => {
  for (const close of closes) close()
  await manager?.stop()
  await environment?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

it('no health check of a tenant reads a service that the tenant cannot reach', { timeout: 180_000 }, async () => {
  const { client } = environment.hub
  const asked: string[] = []
  const secretPort = await listen((request, response) => {
    asked.push(`${request.url} ${request.headers.host} ${String(request.headers['x-api-key'])}`)
    response.end(SECRET)
  })
  const victimPort = await listen((_, response) => response.end('ok'))
  const redirectPort = await listen((_, response) =>
    response.writeHead(302, { location: `http://127.0.0.1:${secretPort}/redirected` }).end(),
  )
  await balance('shop', 'shop', { scheme: 'http', port: victimPort, profile: 'fast' })
  await expect.poll(async () => targetsOf('shop/shop-dnslb'), POLL_OPTIONS).toEqual(['127.0.0.1'])
  const step = async (round: number): Promise<void> => {
    const spec = { endpointValidityInterval: `${round + 1}h` }
    const { metadata } = await client.patch(DNSLoadBalancer, 'shop/shop', 'merge', { spec })
    const observed = async () => (await client.get(DNSLoadBalancer, 'shop/shop')).status?.observedGeneration
    await expect.poll(observed, { timeout: 60_000, interval: 2 }).toBe(metadata.generation)
  }
  const http = { scheme: 'http', port: secretPort, profile: 'fast' } as const
  const others: Readonly<Record<string, HealthCheck>> = {
    headers: { ...http, headers: { 'x-api-key': 'guess' } },
    host: { ...http, host: 'accounts.bank.svc' },
    sni: { ...http, sni: 'accounts.bank.svc' },
    kubelet: { scheme: 'tcp', port: 10_250 },
    ssh: { scheme: 'tcp', port: 22 },
  }
  const refused = [...GUESSES.map((guess) => `guess-${guess}`), ...Object.keys(others)]
  const watched = await watchVictim(
    step,
    async () => {
      await balance('tenant', 'redirect', { ...http, port: redirectPort, maxRedirects: 10 })
      for (const guess of GUESSES) await balance('tenant', `guess-${guess}`, { ...http, bodyContains: guess })
      for (const [name, check] of Object.entries(others)) await balance('tenant', name, check)
      for (const name of refused)
        await expect
          .poll(async () => readyOf(`tenant/${name}`), POLL_OPTIONS)
          .toMatchObject({ status: 'False', reason: 'HealthCheckRefused' })
      const redirected = async () => (await client.get(DNSLoadBalancerEndpoint, 'tenant/redirect')).status?.conditions
      await expect
        .poll(redirected, POLL_OPTIONS)
        .toContainEqual(expect.objectContaining({ type: 'Healthy', status: 'False' }))
    },
    ROUNDS,
  )
  process.stdout.write(`health checks of a tenant: ${JSON.stringify(watched)}\n`)
  expect([asked, watched.late, manager.isRunning()]).toEqual([[], [], true])
  expect((await readyOf('tenant/guess-a'))?.message).toContain('balance.trustedNamespaces')
  for (const name of refused) {
    expect((await client.get(DNSLoadBalancerEndpoint, `tenant/${name}`)).status?.healthy).not.toBe(true)
    expect(await targetsOf(`tenant/${name}-dnslb`)).toBeUndefined()
  }
  const events = (await client.list(Event, { namespace: 'tenant' })).items
  expect(events.map(({ note }) => note).join('\n')).toContain('balance.trustedNamespaces')
  expect(await targetsOf('shop/shop-dnslb')).toEqual(['127.0.0.1'])

  // The operator trusts the namespace: the same check reads the service.
  await balance('platform', 'reader', { ...http, bodyContains: SECRET })
  await expect.poll(async () => targetsOf('platform/reader-dnslb'), POLL_OPTIONS).toEqual(['127.0.0.1'])
  expect(asked.length).toBeGreaterThan(0)

  // What was published before the namespace lost that trust, or its load balancer changed, stays.
  await balance('tenant', 'kept', { ...http, port: victimPort })
  await expect.poll(async () => targetsOf('tenant/kept-dnslb'), POLL_OPTIONS).toEqual(['127.0.0.1'])
  await client.patch(DNSLoadBalancer, 'tenant/kept', 'merge', { spec: { healthCheck: { bodyContains: 'x' } } })
  await expect.poll(async () => (await readyOf('tenant/kept'))?.reason, POLL_OPTIONS).toBe('HealthCheckRefused')
  await balance('tenant', 'thief', { ...http, port: victimPort }, 'kept.tenant.example.com')
  await expect.poll(async () => (await readyOf('tenant/thief'))?.reason, POLL_OPTIONS).toBe('NameClaimed')
  expect(await targetsOf('tenant/kept-dnslb')).toEqual(['127.0.0.1'])
})
