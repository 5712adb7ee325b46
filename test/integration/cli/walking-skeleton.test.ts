/**
 * The whole way, thin: an HTTPProxy becomes a DNSEndpoint, becomes a guarded plan, becomes a record of our own DNS server,
 * becomes the answer to a question over UDP (and to dig, where there is one).
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createDnsClient, createDnsServer, createZone, fqdn, groupRecords, createRRset } from '@seamark/dns'
import { findProgram } from '@seamark/kit'
import {
  DNSEndpoint,
  embeddedProvider,
  memoryGuardStore,
  createEngine,
  createKillSwitch,
  HTTPProxy,
  desiredOf,
} from '@seamark/operator'
import { expect, it } from 'vitest'
import { Bench, SERVICE } from '../publish/bench.ts'
import { eventually, setAddresses, worldKinds } from '../publish/world.ts'

const [embedded] = worldKinds

it('U40: a proxy made before the start answers; a second one too; a restart changes nothing; the answer follows the load balancer', async () => {
  if (embedded === undefined) throw new Error('no embedded world')
  await using world = await embedded.start()
  const bench = await Bench.prepare(world)
  const zone = createZone(fqdn('example.com.'), [
    createRRset('example.com.', 'SOA', 300, ['ns.example.com. admin.example.com. 1 3600 600 86400 30']),
    createRRset('example.com.', 'NS', 300, ['ns.example.com.']),
  ])
  const server = await createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
  const [address] = server.addresses
  if (address === undefined) throw new Error('the DNS server has no address')
  const client = createDnsClient()
  const engine = createEngine({
    providers: [embeddedProvider({ server })],
    owner: { id: 'skeleton', cluster: 'c1' },
    store: memoryGuardStore(),
    killSwitch: createKillSwitch(),
    mode: 'enforce',
    types: ['A', 'AAAA', 'CNAME'],
  })
  const signal = AbortSignal.timeout(60_000)

  async function publishRecords(): Promise<number> {
    const { items } = await world.client.list(DNSEndpoint)
    const present = new Set(items.map(({ metadata }) => `dnsendpoint/${metadata.uid}`))
    const { plans, unread } = await engine.plan(
      { ...desiredOf(items, 300), sources: { present, gone: new Set() } },
      'all',
      signal,
    )
    expect(unread).toEqual([])
    let applied = 0
    for (const plan of plans)
      applied += (await engine.apply(plan, signal)).results.filter(({ result }) => result === 'applied').length
    return applied
  }

  async function ask(name: string): Promise<string[]> {
    const reply = await client.query({
      server: { address: address?.address ?? '', port: address?.port ?? 0 },
      name,
      type: 'A',
    })
    return groupRecords(reply.message.answers).flatMap((set) => [...set.values])
  }

  try {
    await bench.proxy()
    const first = bench.run()
    await bench.dns('ns/foo')
    await publishRecords()
    expect(await ask('test.example.com')).toEqual(['10.0.0.0'])
    await first.stop()

    await using second = bench.run()
    await bench.proxy({ metadata: { name: 'second' }, spec: { virtualhost: { fqdn: 'second.example.com' } } })
    await bench.dns('ns/second')
    expect(second.writes.count).toBe(1)
    await publishRecords()
    expect(await ask('second.example.com')).toEqual(['10.0.0.0'])
    expect(await publishRecords()).toBe(0)

    await setAddresses(world.client, SERVICE, [{ ip: '203.0.113.5' }])
    for (const key of ['ns/foo', 'ns/second'])
      await bench.dns(key, (object) => object.spec.endpoints[0]?.targets[0] === '203.0.113.5')
    await publishRecords()
    expect(await ask('test.example.com')).toEqual(['203.0.113.5'])

    const dig = findProgram('dig')
    if (dig === undefined) return
    {
      const { stdout } = await promisify(execFile)(dig, [
        '@127.0.0.1',
        '-p',
        String(address.port),
        '+short',
        'test.example.com',
      ])
      expect(stdout.trim()).toBe('203.0.113.5')
    }
    await eventually(
      'the proxies',
      async () => (await world.client.list(HTTPProxy)).items.length,
      (count) => count === 2,
    )
  } finally {
    await client.close()
    await server.close()
    await engine.close()
  }
})
