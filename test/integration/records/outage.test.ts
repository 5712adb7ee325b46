/**
 * What users see of a zone that cannot be read, on the embedded and on a real API server: Events, a condition, metrics, and
 * that it passes by itself. A provider whose Secret comes late; a process that does not hold its lease.
 */
import { TsigKey } from '@seamark/dns'
import { needs } from '@seamark/kit'
import {
  type Client,
  type Clock,
  CustomResourceDefinition,
  Event,
  Lease,
  Namespace,
  Secret,
  systemClock,
} from '@seamark/kube'
import { DNSEndpoint, memoryProvider, type Provider, ProviderError, rfc2136Provider } from '@seamark/operator'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Key, startBind } from '../dns/peers.ts'
import { createNamespace, eventually, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { endpoint, startApp } from './manager-app.ts'

const ZONE = 'example.test.'
const zone = { id: ZONE, name: ZONE }
const signal = new AbortController().signal

/** ExternalDNS' schema has no conditions; this one has. */
async function makeRoomForConditions(client: Client): Promise<void> {
  const value = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const path = '/spec/versions/0/schema/openAPIV3Schema/properties/status'
  const name = `${DNSEndpoint.plural}.${DNSEndpoint.group}`
  await client.patch(CustomResourceDefinition, name, 'json', [{ op: 'add', path, value }])
}

async function untilTold(
  client: Client,
  namespace: string,
  kind: string,
  name: string,
  reason: string,
): Promise<string> {
  const events = await eventually(
    `an Event ${reason} about ${kind} ${name}`,
    async () => {
      const { items } = await client.list(Event, { namespace })
      return items.filter(({ regarding }) => regarding?.kind === kind && regarding.name === name)
    },
    (found) => found.some((event) => event.reason === reason),
  )
  return events.find((event) => event.reason === reason)?.note ?? ''
}

async function untilServed(client: Client, name: string, status: string, reason: string): Promise<void> {
  await eventually(
    `${name} to be ${reason}`,
    async () => (await client.get(DNSEndpoint, `web/${name}`)).status?.conditions,
    (conditions) =>
      conditions.some(
        (condition) =>
          condition.type === 'seamark.io/Served' && condition.status === status && condition.reason === reason,
      ),
    60_000,
  )
}

for (const kind of environmentKinds) {
  describe.skipIf(kind.isMissing)(`outages on ${kind.name}`, () => {
    let environment: TestEnvironment
    beforeEach(async () => {
      environment = await kind.start()
      const { client } = environment
      for (const name of ['web', 'seamark']) await createNamespace(client, name)
      if ((await client.find(Namespace, 'kube-system')) === undefined) await createNamespace(client, 'kube-system')
      await makeRoomForConditions(client)
    })
    afterEach(async () => {
      await environment[Symbol.asyncDispose]()
    })

    it('a zone that cannot be read is reported on the configuration object and on the objects that wait for it, until it can', async () => {
      const { client } = environment
      const memory = memoryProvider({ zones: [ZONE] })
      let isReadable = false
      const provider: Provider = {
        ...memory,
        async read(...given) {
          if (!isReadable) throw new ProviderError('TransferRefused', 'later', 'the server says REFUSED')
          return memory.read(...given)
        },
      }
      const app = await startApp(environment, [provider])
      try {
        await client.apply(DNSEndpoint, endpoint('blind', ['192.0.2.1']))
        const note = await untilTold(client, 'seamark', 'ConfigMap', 'seamark', 'TransferRefused')
        expect(note).toContain(`zone ${ZONE} of memory`)
        expect(note).toContain('the server says REFUSED')
        expect(await untilTold(client, 'web', 'DNSEndpoint', 'blind', 'TransferRefused')).toContain(
          'blind.example.test.',
        )
        await untilServed(client, 'blind', 'False', 'TransferRefused')
        await expect
          .poll(async () => app.metrics(), { timeout: 20_000 })
          .toMatch(/seamark_records_zone_stale\{.*zone="example.test."\} 1/)
        // Records of other tests may wait for the zone as well.
        await expect
          .poll(async () => app.metrics(), { timeout: 20_000 })
          .toMatch(/seamark_records_held\{.*reason="TransferRefused"\} [1-9]/)
        expect(memory.counts.writes).toBe(0)
        isReadable = true
        await untilServed(client, 'blind', 'True', 'Published')
        expect(memory.dump(ZONE).filter(({ name }) => name.includes('blind'))).toHaveLength(2)
        await expect
          .poll(async () => app.metrics(), { timeout: 20_000 })
          .toMatch(/seamark_records_zone_stale\{.*zone="example.test."\} 0/)
      } finally {
        await app.stop()
      }
    })

    it.skipIf(!needs('named'))('a provider whose Secret comes later than the manager begins to work then', async () => {
      const { client } = environment
      const key: Key = { name: 'late', algorithm: 'hmac-sha256', secret: Buffer.alloc(32, 9).toString('base64') }
      const text = `$ORIGIN ${ZONE}\n$TTL 300\n@ IN SOA ns1 hostmaster 1 3600 600 86400 60\n@ IN NS ns1\nns1 IN A 127.0.0.1\n`
      const peer = await startBind([{ origin: ZONE, text }], [key])
      const { address, port } = peer.address
      const secretFrom = { secret: 'seamark/tsig', key: 'secret' }
      const configured = {
        name: 'bind',
        type: 'rfc2136',
        server: `${address}:${port}`,
        zones: ['example.test'],
        key: { name: key.name, secretFrom },
      }
      const direct = rfc2136Provider({
        name: 'direct',
        server: peer.address,
        zones: [ZONE],
        key: new TsigKey(key.name, key.algorithm, key.secret),
      })
      const app = await startApp(environment, [], {}, [configured])
      try {
        await client.apply(DNSEndpoint, endpoint('late', ['192.0.2.2']))
        await untilServed(client, 'late', 'False', 'ProviderMisconfigured')
        expect(await untilTold(client, 'seamark', 'ConfigMap', 'seamark', 'ProviderMisconfigured')).toContain(
          'seamark/tsig',
        )
        await client.create(Secret, {
          metadata: { namespace: 'seamark', name: 'tsig' },
          data: { secret: Buffer.from(key.secret).toString('base64') },
        })
        await untilServed(client, 'late', 'True', 'Published')
        const found = await direct.read(zone, new Set(['late.example.test.']), signal)
        expect(found.map(({ values }) => values)).toEqual([['192.0.2.2']])
      } finally {
        await app.stop()
        await direct.close?.()
        await peer.close()
      }
    })

    it('of two processes the one with the lease writes, and the other goes on when it stops', async () => {
      const { client } = environment
      const leader = { lease: 'two', namespace: 'seamark' }
      const memory = memoryProvider({ zones: [ZONE] })
      const counted = () => {
        const counts = { calls: 0 }
        const provider: Provider = {
          ...memory,
          async apply(...given) {
            counts.calls++
            await memory.apply(...given)
          },
        }
        return { counts, provider }
      }
      const find = (name: string) => memory.dump(ZONE).find((set) => set.name === `${name}.${ZONE}`)
      const [first, second] = [counted(), counted()]
      const leading = await startApp(environment, [first.provider], { leader })
      await client.apply(DNSEndpoint, endpoint('one', ['192.0.2.1']))
      await eventually('the first record', async () => find('one'))
      const waiting = await startApp(environment, [second.provider], { leader })
      await client.apply(DNSEndpoint, endpoint('two', ['192.0.2.1']))
      await eventually('the second record', async () => find('two'))
      expect(second.counts.calls).toBe(0)
      await leading.stop()
      const { calls } = first.counts
      await client.apply(DNSEndpoint, endpoint('three', ['192.0.2.1']))
      await eventually('the third record', async () => find('three'))
      expect(second.counts.calls).toBeGreaterThan(0)
      expect(first.counts.calls).toBe(calls)
      await waiting.stop()
    })

    it('a process that slept over its lease writes no record, though it does not know yet', async () => {
      const { client } = environment
      const memory = memoryProvider({ zones: [ZONE] })
      let slept = 0
      const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + slept }
      const app = await startApp(environment, [memory], { leader: { lease: 'asleep', namespace: 'seamark' }, clock })
      await client.apply(DNSEndpoint, endpoint('awake', ['192.0.2.1']))
      await eventually('the record', async () => memory.dump(ZONE).find((set) => set.name === `awake.${ZONE}`))
      const { writes } = memory.counts
      const spec = {
        holderIdentity: 'another',
        leaseDurationSeconds: 3_600,
        renewTime: new Date().toISOString().replace('Z', '000Z'),
      }
      await client.patch(Lease, 'seamark/asleep', 'merge', { spec })
      slept = 3_600_000
      await client.apply(DNSEndpoint, endpoint('asleep', ['192.0.2.1']))
      await expect.poll(async () => app.metrics()).toContain('leader_election_master_status{name="asleep"} 0')
      expect(memory.counts.writes).toBe(writes)
      await app.stop()
    })
  })
}
