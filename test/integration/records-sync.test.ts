/** DNSEndpoints become records of a served zone, and the switches work, on the embedded and on a real API server. */
import { type Client, ConfigMap, type Manager, manager, Namespace, systemClock, createLogger } from '@seamark/kube'
import {
  CONFIGURATION_OBJECT,
  createKillSwitch,
  DNSEndpoint,
  dnsEndpointProvider,
  type MemoryProvider,
  memoryProvider,
  RecordsConfig,
  setUpRecords,
} from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createNamespace, eventually, type World, worldKinds } from './publish-world.ts'
import { describeProvider } from './providers/describe-provider.ts'

const ZONE = 'example.test.'

async function start(world: World, memory: MemoryProvider): Promise<{ manager: Manager; stop(): Promise<void> }> {
  const { cluster } = world.connect('seamark')
  const mgr = await manager({ cluster, log: createLogger({ level: 'silent' }) })
  const config = RecordsConfig.parse({
    enabled: true,
    owner: 'sync-test',
    dnsEndpoints: { enabled: true, annotationFilter: 'team!=other' },
  })
  setUpRecords(mgr, {
    config,
    mode: 'enforce',
    namespace: 'seamark',
    killSwitch: createKillSwitch(),
    env: {},
    clock: systemClock,
    providers: [memory],
  })
  const stop = new AbortController()
  const running = mgr.run(stop.signal)
  return {
    manager: mgr,
    async stop() {
      stop.abort()
      await running
    },
  }
}

const endpoint = (
  name: string,
  targets: string[],
  annotations: Record<string, string> = {},
  dnsName = `${name}.example.test`,
): DNSEndpoint => ({
  metadata: { name, namespace: 'web', annotations },
  spec: { endpoints: [{ dnsName, recordType: 'A', recordTTL: 60, targets }] },
})

async function setTargets(client: Client, name: string, targets: string[]): Promise<void> {
  const patch = [{ op: 'replace', path: '/spec/endpoints/0/targets', value: targets }]
  await client.patch(DNSEndpoint, `web/${name}`, 'json', patch)
}

for (const kind of worldKinds) {
  describe.skipIf(kind.isMissing)(`records on ${kind.name}`, () => {
    let world: World
    const memory = memoryProvider({ zones: [ZONE] })
    const find = (name: string) => memory.dump(ZONE).find((set) => set.name === `${name}.${ZONE}` && set.type === 'A')
    beforeAll(async () => {
      world = await kind.start()
      const { client } = world
      await createNamespace(client, 'web')
      await createNamespace(client, 'seamark')
      if ((await client.find(Namespace, 'kube-system')) === undefined) await createNamespace(client, 'kube-system')
      memory.put(ZONE, { name: `foreign.${ZONE}`, type: 'A', ttl: 60, values: ['203.0.113.1'] })
    })
    afterAll(async () => {
      await world[Symbol.asyncDispose]()
    })

    it('creates, retargets, deletes; skips what others own and what a filter excludes; a restart writes nothing', async () => {
      const { client } = world
      const app = await start(world, memory)
      try {
        await client.create(DNSEndpoint, endpoint('shop', ['192.0.2.1']))
        await client.create(DNSEndpoint, endpoint('foreign', ['192.0.2.1']))
        await client.create(DNSEndpoint, endpoint('other', ['192.0.2.1'], { team: 'other' }))
        await eventually(
          'the record',
          async () => find('shop'),
          (set) => set.values[0] === '192.0.2.1',
        )
        await eventually(
          'observedGeneration',
          async () => (await client.get(DNSEndpoint, 'web/shop')).status?.observedGeneration,
        )
        await setTargets(client, 'shop', ['192.0.2.2'])
        await eventually(
          'the new target',
          async () => find('shop'),
          (set) => set.values[0] === '192.0.2.2',
        )
        // The source exists and has no target: what is published stays.
        await setTargets(client, 'shop', [])
        await client.create(DNSEndpoint, endpoint('second', ['192.0.2.3']))
        await eventually('the second record', async () => find('second'))
        expect(find('shop')?.values).toEqual(['192.0.2.2'])
        await client.delete(DNSEndpoint, 'web/second')
        await eventually('the deletion', async () => (find('second') === undefined ? true : undefined))
        expect(find('foreign')?.values).toEqual(['203.0.113.1'])
        expect(find('other')).toBeUndefined()
        expect((await client.get(DNSEndpoint, 'web/foreign')).status?.observedGeneration).toBeUndefined()
      } finally {
        await app.stop()
      }
      await setTargets(client, 'shop', ['192.0.2.2'])
      const writes = memory.counts.writes
      const again = await start(world, memory)
      await client.create(DNSEndpoint, endpoint('third', ['192.0.2.4']))
      await eventually('a change after the restart', async () => find('third'))
      await again.stop()
      expect(memory.counts.writes).toBe(writes + 1)
    })

    it('the kill switch stops writing within two seconds, and survives a restart', async () => {
      const { client } = world
      let app = await start(world, memory)
      await client.create(ConfigMap, {
        metadata: { name: CONFIGURATION_OBJECT, namespace: 'seamark', annotations: { 'seamark.io/pause': 'true' } },
      })
      await new Promise((resolve) => setTimeout(resolve, 2000))
      const writes = memory.counts.writes
      await client.create(DNSEndpoint, endpoint('paused', ['192.0.2.5']))
      await new Promise((resolve) => setTimeout(resolve, 1500))
      expect(memory.counts.writes).toBe(writes)
      await app.stop()
      app = await start(world, memory)
      await new Promise((resolve) => setTimeout(resolve, 1500))
      expect(memory.counts.writes).toBe(writes)
      expect((await client.get(DNSEndpoint, 'web/paused')).status?.observedGeneration).toBeUndefined()
      await client.patch(ConfigMap, `seamark/${CONFIGURATION_OBJECT}`, 'merge', {
        metadata: { annotations: { 'seamark.io/pause': null } },
      })
      await eventually('the record after the pause', async () => find('paused'))
      await app.stop()
    })
  })

  const zone = { id: ZONE, name: ZONE }
  describeProvider(`DNSEndpoints on ${kind.name}`, !kind.isMissing, async () => {
    const world = await kind.start()
    await createNamespace(world.client, 'records')
    const provider = dnsEndpointProvider({ name: 'xd', client: world.client, namespace: 'records', zones: [ZONE] })
    return { provider, zone, close: async () => world[Symbol.asyncDispose]() }
  })
}
