/**
 * `seamark run` with balance and its own DNS server: weights and regions of endpoints choose among the healthy ones, query by
 * query.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsClient, groupRecords } from '@seamark/dns'
import { CustomResourceDefinition, Namespace } from '@seamark/kube'
import {
  BalanceConfig,
  DnsConfig,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  loadBalancerCrds,
  runApp,
} from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { afterEach, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { createNamespace, environmentKinds } from '../publish/test-environment.ts'
import { POLL_OPTIONS, startBackends } from './backends.ts'

const NAME = 'shop.example.test'
const [EAST, WEST, OFFICE] = ['127.0.0.2', '127.0.0.3', '127.0.0.4'] as const
const ENDPOINTS = [
  { name: 'east', ipaddress: EAST, weight: 3 },
  { name: 'west', ipaddress: WEST, weight: 1 },
  { name: 'office', ipaddress: OFFICE, geo: 'office', priority: 5 },
]

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

it('weights and regions of healthy endpoints choose the answers in a zone of our own', async () => {
  const environment = await environmentKinds[0]!.start()
  cleanups.push(async () => environment[Symbol.asyncDispose]())
  const { client } = environment
  for (const name of ['web', 'seamark']) await createNamespace(client, name)
  if ((await client.find(Namespace, 'kube-system')) === undefined) await createNamespace(client, 'kube-system')
  for (const definition of loadBalancerCrds()) await client.create(CustomResourceDefinition, definition)
  const backends = await startBackends(EAST, WEST, OFFICE)
  cleanups.push(async () => backends.close())
  const folder = await mkdtemp(join(tmpdir(), 'seamark-policy-'))
  cleanups.push(async () => rm(folder, { recursive: true, force: true }))
  const regionsFile = join(folder, 'regions')
  await writeFile(regionsFile, '198.51.100.0/24 office\n')
  const server = { address: '127.0.0.1', port: await freePort() }
  const listen = `${server.address}:${server.port}`
  const dns = DnsConfig.parse({
    listen: [listen],
    zones: ['example.test'],
    dataDir: join(folder, 'zones'),
    regionsFile,
  })
  const app = environment.launch('contour-plus', async (cluster, _surroundings, signal) =>
    runApp(
      {
        cluster,
        mode: 'enforce',
        namespace: 'seamark',
        allowLoopback: true,
        balance: {
          config: BalanceConfig.parse({ enabled: true, resolver: listen }),
          startThread: proberInThisThread(20),
        },
        dns: { config: dns, env: {} },
      },
      signal,
    ),
  )
  cleanups.push(async () => app.stop())
  await client.create(DNSLoadBalancer, {
    metadata: { namespace: 'web', name: 'shop' },
    spec: {
      DNSName: NAME,
      healthPath: '/healthz',
      healthCheck: { scheme: 'http', port: backends.port, profile: 'fast' },
    },
  })
  for (const { name, ...spec } of ENDPOINTS)
    await client.create(DNSLoadBalancerEndpoint, {
      metadata: { namespace: 'web', name },
      spec: { loadbalancer: 'shop', ...spec },
    })
  const resolver = createDnsClient()
  cleanups.push(async () => resolver.close())
  const ask = async (subnet?: string) => {
    const { message } = await resolver.query({
      server,
      name: NAME,
      type: 'A',
      ...(subnet !== undefined && { subnet: { address: subnet, sourcePrefix: 24, scopePrefix: 0 } }),
    })
    return groupRecords(message.answers).flatMap(({ values }) => [...values])
  }
  const shares = async () => {
    const counts: Record<string, number> = {}
    for (let query = 0; query < 8; query++) for (const value of await ask()) counts[value] = (counts[value] ?? 0) + 1
    return counts
  }
  await expect.poll(shares, POLL_OPTIONS).toEqual({ [EAST]: 6, [WEST]: 2 })
  expect(await ask('198.51.100.0')).toEqual([OFFICE])
  // One after the other: while most sites fail at once, their verdicts are held.
  await backends.stop(OFFICE)
  await expect.poll(async () => ask('198.51.100.0'), POLL_OPTIONS).not.toEqual([OFFICE])
  await backends.stop(EAST)
  await expect.poll(shares, POLL_OPTIONS).toEqual({ [WEST]: 8 })
  expect(await ask('198.51.100.0')).toEqual([WEST])
})
