/**
 * From a root to an answer in one manager: leaves on two members, real probes, records, and the DNS server of the manager.
 * A client resolves the host and requests it from the address that it got.
 */
import { createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDnsClient, groupRecords } from '@seamark/dns'
import { Ingress } from '@seamark/kube'
import { Cluster, DnsConfig, GlobalIngressPolicy, loadConfig } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

/** The gateway of a member: an address of its own on this machine. */
async function startGateway(address: string, port = 0): Promise<Server & { port: number }> {
  const server = createServer((_request, response) => response.end(address))
  await new Promise<void>((resolve) => server.listen(port, address, resolve))
  return Object.assign(server, { port: (server.address() as AddressInfo).port })
}

async function request(address: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: address, port, headers: { host: HOST } }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => resolve(text))
    }).on('error', reject)
  })
}

const HOST = 'shop.example.com'

it('a root becomes leaves, a verdict, a record, an answer and a response, and a drain follows in the order of DNS', async () => {
  const eu1 = await startGateway('127.0.0.1')
  const us1 = await startGateway('127.0.0.2', eu1.port)
  const resolver = createDnsClient()
  try {
    await using environment = await FleetEnvironment.start(['eu1', 'us1'])
    const { client } = environment.hub
    for (const name of ['eu1', 'us1']) {
      await environment.register(name)
      await environment.deploy(name)
    }
    await client.create(GlobalIngressPolicy, {
      metadata: { namespace: 'shop', name: 'shop' },
      spec: {
        targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
        traffic: { ttlSeconds: 1 },
        migration: { drainSeconds: 1, minHoldSeconds: 0 },
        health: { protocol: 'HTTP', port: eu1.port, intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 2 },
      },
    } as GlobalIngressPolicy)
    const loaded = loadConfig({ flags: { 'balance-enabled': 'true' } })
    if (!loaded.ok) throw new Error(loaded.faults.join('; '))
    const address = await new Promise<string>((resolve) => {
      environment.run(
        {},
        {
          balance: { config: loaded.config.balance, startThread: proberInThisThread(20) },
          dns: { config: DnsConfig.parse({ listen: ['127.0.0.1:0'], zones: ['example.com'] }), env: {} },
          onReady: ({ dns: [first] = [] }) => resolve(first ?? ''),
        },
      )
    })
    const server = { address: '127.0.0.1', port: Number(address.split(':').at(-1)) }
    const answer = async () => {
      const { message } = await resolver.query({ server, name: HOST, type: 'A' })
      return groupRecords(message.answers)
        .flatMap(({ values }) => [...values])
        .sort()
    }
    await client.create(Ingress, root('shop', HOST))
    await environment.admit('eu1', 'shop/shop', '127.0.0.1')
    await environment.admit('us1', 'shop/shop', '127.0.0.2')
    await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Active')
    await expect.poll(answer, POLL_OPTIONS).toEqual(['127.0.0.1', '127.0.0.2'])
    for (const target of await answer()) expect(await request(target, eu1.port)).toBe(target)
    const ready = async () => (await client.get(Ingress, 'shop/shop')).metadata.annotations?.['seamark.io/summary']
    await expect.poll(ready, POLL_OPTIONS).toBe('ready 2/2')

    await client.patch(Cluster, 'us1', 'merge', { spec: { drain: { enabled: true } } })
    await expect.poll(answer, POLL_OPTIONS).toEqual(['127.0.0.1'])
    await expect.poll(async () => environment.exists('us1', Ingress, 'shop/shop'), POLL_OPTIONS).toBe(false)
    await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active')
  } finally {
    await resolver.close()
    for (const gateway of [eu1, us1]) {
      gateway.closeAllConnections()
      gateway.close()
    }
  }
})
