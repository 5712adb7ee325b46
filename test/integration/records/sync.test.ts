/**
 * Records in the running manager, on the embedded and on a real API server: DNSEndpoints become records of a served zone, the
 * switches work, applied plans can be taken back, and a kind that is removed takes no record with it.
 */
import { readFile } from 'node:fs/promises'
import { type Client, ConfigMap, CustomResourceDefinition, Event, Namespace, NotFound } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import {
  DNSEndpoint,
  dnsEndpointProvider,
  HTTPProxy,
  inverseOf,
  type MemoryProvider,
  memoryProvider,
  openRecordsStores,
  unified,
} from '@seamark/operator'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  createLoadBalancer,
  createNamespace,
  eventually,
  type TestEnvironment,
  environmentKinds,
} from '../publish/test-environment.ts'
import { describeProvider } from '../providers/describe-provider.ts'
import { annotate, type App, endpoint, setTargets, startApp } from './manager-app.ts'

const ZONE = 'example.test.'
const SERVICE = 'projectcontour/envoy'

const sumOf = (text: string, series: RegExp) =>
  [...text.matchAll(series)].reduce((sum, [, value]) => sum + Number(value), 0)
const reconcilesOf = (text: string) => sumOf(text, /^controller_runtime_reconcile_total\{.*\} (\S+)$/gm)
const syncedAt = (text: string) => sumOf(text, /^seamark_records_last_sync_timestamp_seconds\{.*\} (\S+)$/gm)

let verifications = 0

/** Has every zone read whole once more, and waits until it was; what the passes before it had to write is written then. */
async function verify(client: Client, app: App): Promise<void> {
  const before = await eventually(
    'a first pass',
    async () => syncedAt(await app.metrics()),
    (time) => time > 0,
  )
  await annotate(client, { 'seamark.io/verify': String(++verifications) })
  await eventually(
    'a further pass',
    async () => syncedAt(await app.metrics()),
    (time) => time > before,
    20_000,
  )
}

/** The manager has looked at a record, and holds it because of the pause. */
async function untilHeldByPause(app: App): Promise<void> {
  await eventually(
    'a record that the pause holds',
    async () => app.metrics(),
    (text) => /^seamark_records_held\{.*reason="Paused"\} [1-9]/m.test(text),
    20_000,
  )
}

for (const kind of environmentKinds) {
  describe.skipIf(kind.isMissing)(`records on ${kind.name}`, () => {
    let environment: TestEnvironment
    let memory: MemoryProvider
    const find = (name: string) => memory.dump(ZONE).find((set) => set.name === `${name}.${ZONE}` && set.type === 'A')
    beforeAll(async () => {
      environment = await kind.start()
      const { client } = environment
      for (const name of ['web', 'seamark', 'projectcontour']) await createNamespace(client, name)
      if ((await client.find(Namespace, 'kube-system')) === undefined) await createNamespace(client, 'kube-system')
      await createLoadBalancer(client, SERVICE, [{ ip: '192.0.2.80' }])
    })
    /** Each test has a zone of its own, and no object of the test before it. */
    beforeEach(async () => {
      const { client } = environment
      // What is written in the second in which the kind was installed is not deleted at once.
      const { metadata } = await client.get(CustomResourceDefinition, `${DNSEndpoint.plural}.${DNSEndpoint.group}`)
      const installedAt = Date.parse(metadata.creationTimestamp ?? '')
      await eventually('the next second', async () => Date.now() > installedAt + 1_000 || undefined)
      memory = memoryProvider({ zones: [ZONE] })
      memory.put(ZONE, { name: `foreign.${ZONE}`, type: 'A', ttl: 60, values: ['203.0.113.1'] })
    })
    afterEach(async () => wipe(environment.client))
    afterAll(async () => {
      await environment[Symbol.asyncDispose]()
    })

    it('creates, retargets, deletes; skips what others own and what a filter excludes; a restart writes nothing', async () => {
      const { client } = environment
      const app = await startApp(environment, [memory])
      try {
        await client.apply(DNSEndpoint, endpoint('shop', ['192.0.2.1']))
        await client.apply(DNSEndpoint, endpoint('foreign', ['192.0.2.1']))
        await client.apply(DNSEndpoint, endpoint('other', ['192.0.2.1'], { team: 'other' }))
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
        await client.apply(DNSEndpoint, endpoint('second', ['192.0.2.3']))
        await eventually('the second record', async () => find('second'))
        expect(find('shop')?.values).toEqual(['192.0.2.2'])
        await client.delete(DNSEndpoint, 'web/second')
        await eventually('the deletion', async () => (find('second') === undefined ? true : undefined))
        expect(find('foreign')?.values).toEqual(['203.0.113.1'])
        expect(find('other')).toBeUndefined()
        expect((await client.get(DNSEndpoint, 'web/foreign')).status?.observedGeneration).toBeUndefined()
        await eventually(
          'an Event about what is held',
          async () => (await client.list(Event, { namespace: 'web' })).items,
          (events) =>
            events.some(({ reason, regarding }) => reason === 'UnownedRecordExists' && regarding?.name === 'foreign'),
        )
        await expectMetrics(app)
      } finally {
        await app.stop()
      }
      await setTargets(client, 'shop', ['192.0.2.2'])
      const writes = memory.counts.writes
      const again = await startApp(environment, [memory])
      await client.apply(DNSEndpoint, endpoint('third', ['192.0.2.4']))
      await eventually('a change after the restart', async () => find('third'))
      for (const name of ['shop', 'third'])
        await eventually(
          `the report about ${name}`,
          async () => client.get(DNSEndpoint, `web/${name}`),
          ({ metadata, status }) => status?.observedGeneration === metadata.generation,
        )
      await again.stop()
      expect(memory.counts.writes).toBe(writes + 1)
      const converged = await startApp(environment, [memory])
      await verify(client, converged)
      expect(converged.writes.count).toBe(0)
      await converged.stop()
    })

    it('the kill switch stops every write of every capability within two seconds, and survives a restart', async () => {
      const { client } = environment
      const publish = { ...unified, services: [{ service: SERVICE }] }
      let app = await startApp(environment, [memory], { publish })
      try {
        await annotate(client, { 'seamark.io/pause': 'true' })
        await eventually(
          'the pause',
          async () => app.metrics(),
          (text) => /^seamark_paused 1$/m.test(text),
          2_000,
        )
        const writes = memory.counts.writes
        const requests = app.writes.count
        const reconciles = reconcilesOf(await app.metrics())
        await client.apply(DNSEndpoint, endpoint('paused', ['192.0.2.5']))
        await client.apply(HTTPProxy, {
          metadata: { name: 'paused-proxy', namespace: 'web' },
          spec: { routes: [], virtualhost: { fqdn: 'paused-proxy.example.test' } } as NonNullable<HTTPProxy['spec']>,
        })
        await untilHeldByPause(app)
        await eventually(
          'the proxy to be looked at',
          async () => reconcilesOf(await app.metrics()),
          (count) => count > reconciles,
        )
        expect(memory.counts.writes).toBe(writes)
        expect(app.writes.count).toBe(requests)
        await app.stop()
        app = await startApp(environment, [memory], { publish })
        await untilHeldByPause(app)
        await eventually(
          'the proxy to be looked at again',
          async () => reconcilesOf(await app.metrics()),
          (count) => count > 0,
        )
        expect(memory.counts.writes).toBe(writes)
        expect(app.writes.count).toBe(0)
        expect((await client.get(DNSEndpoint, 'web/paused')).status?.observedGeneration).toBeUndefined()
        await annotate(client, { 'seamark.io/pause': null })
        await eventually('the record after the pause', async () => find('paused'))
        await eventually('the proxy after the pause', async () => find('paused-proxy'), undefined, 20_000)
      } finally {
        await app.stop()
      }
    })

    it('--pause does the same by configuration, and needs no object', async () => {
      const { client } = environment
      const app = await startApp(environment, [memory], { isPaused: true })
      const writes = memory.counts.writes
      await client.apply(DNSEndpoint, endpoint('paused', ['192.0.2.55']))
      await untilHeldByPause(app)
      expect(memory.counts.writes).toBe(writes)
      expect(app.writes.count).toBe(0)
      await app.stop()
    })

    it('what the running manager did can be taken back by its number', async () => {
      const { client } = environment
      const before = memory.dump(ZONE)
      const app = await startApp(environment, [memory])
      await client.apply(DNSEndpoint, endpoint('undone', ['192.0.2.6']))
      await eventually('the record', async () => find('undone'))
      await app.stop()
      const { plans } = openRecordsStores(client, 'seamark', '')
      const stored = await plans.list()
      const found = (await Promise.all(stored.map(async ({ number }) => plans.load(number)))).flat()
      const made = found.find((plan) => plan.changes.some(({ name }) => name === `undone.${ZONE}`))
      if (made === undefined) throw new Error('the plan was not kept')
      const inverse = inverseOf(made, Date.now())
      await memory.apply(
        { id: ZONE, name: ZONE },
        inverse.changes.flatMap(({ from, to, markers }) => [{ from, to }, ...markers]),
        AbortSignal.timeout(5_000),
      )
      const untouched = before.filter(({ name }) => !name.endsWith(`paused.${ZONE}`))
      expect(memory.dump(ZONE).filter(({ name }) => !name.endsWith(`paused.${ZONE}`))).toEqual(untouched)
      await client.delete(DNSEndpoint, 'web/undone')
    })

    it('removing the kind under a running manager, and installing it anew, deletes nothing', async () => {
      const { client } = environment
      const app = await startApp(environment, [memory])
      await client.apply(DNSEndpoint, endpoint('kept', ['192.0.2.7']))
      await eventually('the record', async () => find('kept'))
      const before = memory.dump(ZONE)
      const name = `${DNSEndpoint.plural}.${DNSEndpoint.group}`
      const definition = await client.get(CustomResourceDefinition, name)
      await client.delete(CustomResourceDefinition, name)
      await eventually(
        'the kind to be gone',
        async () => ((await client.find(CustomResourceDefinition, name)) === undefined ? true : undefined),
        undefined,
        20_000,
      )
      await verify(client, app)
      expect(memory.dump(ZONE)).toEqual(before)
      const { metadata, spec } = definition
      const { labels = {}, annotations = {} } = metadata
      await client.create(CustomResourceDefinition, { metadata: { name, labels, annotations }, spec })
      await eventually('the kind', async () => client.list(DNSEndpoint).catch(() => undefined), undefined, 20_000)
      await verify(client, app)
      expect(memory.dump(ZONE)).toEqual(before)
      await expect
        .poll(async () => app.metrics(), { timeout: 20_000 })
        .toMatch(/seamark_records_held\{.*reason="SourceUnconfirmed"\} [1-9]/)
      await app.stop()
    })
  })

  const zone = { id: ZONE, name: ZONE }
  describeProvider(`DNSEndpoints on ${kind.name}`, !kind.isMissing, async () => {
    const environment = await kind.start()
    await createNamespace(environment.client, 'records')
    const provider = dnsEndpointProvider({
      name: 'xd',
      client: environment.client,
      namespace: 'records',
      zones: [ZONE],
    })
    return { provider, zone, close: async () => environment[Symbol.asyncDispose]() }
  })
}

/** Removes what the tests made, and what the manager keeps: guard state, plans, switches. */
async function wipe(client: Client): Promise<void> {
  for (const [kind, namespace] of [
    [DNSEndpoint, 'web'],
    [HTTPProxy, 'web'],
    [DNSEndpoint, 'web'],
    [ConfigMap, 'seamark'],
  ] as const) {
    const { items } = await client.list<Obj>(kind, { namespace })
    for (const { metadata } of items)
      await client.delete<Obj>(kind, `${namespace}/${metadata.name}`).catch((error: unknown) => {
        if (!(error instanceof NotFound)) throw error
      })
  }
}

async function expectMetrics(app: App): Promise<void> {
  const text = await app.metrics()
  expect(text).toMatch(/seamark_records_changes_total\{[^}]*op="create",result="applied",reason=""\} [1-9]/)
  expect(text).toMatch(/seamark_records_changes_total\{[^}]*op="delete",result="applied",reason=""\} 1/)
  expect(text).toMatch(/seamark_records_held\{[^}]*reason="UnownedRecordExists"\} 1/)
  expect(text).toMatch(/seamark_records_zone_stale\{[^}]*\} 0/)
  expect(text).toMatch(/seamark_provider_calls_total\{provider="memory",call="read",reason=""\} [1-9]/)
  expect(text).toMatch(/seamark_provider_call_duration_seconds_count\{provider="memory",call="apply"\} [1-9]/)
  expect(text).toMatch(/^seamark_paused 0$/m)
  const documented = await readFile(new URL('../../../docs/records.md', import.meta.url), 'utf8')
  const names = [...text.matchAll(/^# TYPE (seamark_(?:records|provider|paused)\w*)/gm)].map((match) => match[1] ?? '')
  expect(names.length).toBeGreaterThanOrEqual(9)
  for (const name of names) expect(documented, `docs/records.md on ${name}`).toContain(`\`${name}\``)
}
