/**
 * What must not happen by mistake: addresses and Services that go away for a while, a configuration that would retarget or
 * prune most of what is published, a pause. Run like scenarios.ts.
 */
import { ConfigMap, createLogger, Service } from '@seamark/kube'
import { approveInStore, HELD_OBJECTS_STORE, HTTPProxy, openObjectStore } from '@seamark/operator'
import { expect } from 'vitest'
import { type Bench, endpointsOf, SERVICE } from './bench.ts'
import type { Scenario } from './scenarios.ts'
import { createLoadBalancer, setAddresses } from './test-environment.ts'

const COUNT = 8
const STATE = 'manager/seamark-publish'
const OTHER = 'test-ns/other-svc'

const names = Array.from({ length: COUNT }, (_, index) => `p${index}`)

/** More proxies than the guard lets change at once, all published, and the configuration remembered. */
async function publishMany(bench: Bench, annotations: Record<string, string> = {}): Promise<void> {
  for (const name of names) {
    await bench.proxy({
      metadata: { name },
      annotations: { 'kubernetes.io/tls-acme': 'false', ...annotations },
      spec: { virtualhost: { fqdn: `${name}.example.com` } },
    })
  }
  await bench.untilChildren(COUNT)
  await remembered(bench)
}

async function remembered(bench: Bench): Promise<void> {
  await bench.eventually(
    'the configuration to be remembered',
    async () => (await bench.client.find(ConfigMap, STATE))?.data?.['fingerprint'],
  )
}

async function reasons(bench: Bench): Promise<Set<string>> {
  const { items } = await bench.client.list(HTTPProxy)
  return new Set(items.map((item) => item.status?.conditions?.[0]?.reason ?? 'none'))
}

async function untilReported(bench: Bench, reason: string): Promise<void> {
  await bench.eventually(
    `${reason} on every source`,
    async () => [...(await reasons(bench))].join(),
    (text) => text === reason,
  )
}

async function targets(bench: Bench): Promise<string[]> {
  const found = await Promise.all(names.map(async (name) => endpointsOf(await bench.dns(`ns/${name}`))))
  return [...new Set(found.map(([line]) => line?.split(' ').at(-1) ?? ''))]
}

/** The guard's memory and further load balancers belong to a scenario, not to the fixture. */
async function tidy(bench: Bench): Promise<void> {
  for (const [kind, key] of [
    [ConfigMap, STATE],
    [ConfigMap, `manager/${HELD_OBJECTS_STORE}`],
    [Service, OTHER],
  ] as const)
    if ((await bench.client.find<ConfigMap | Service>(kind, key)) !== undefined)
      await bench.client.delete<ConfigMap | Service>(kind, key)
}

function guarded(title: string, run: (bench: Bench) => Promise<void>): Scenario {
  return {
    title,
    run: async (bench) => {
      await run(bench)
      await tidy(bench)
    },
  }
}

export const guardScenarios: readonly Scenario[] = [
  guarded('an address that is away for a while, and a Service that is, move no record', async (bench) => {
    await using _app = bench.runUnified()
    await publishMany(bench)
    await untilReported(bench, 'Published')
    const before = (await bench.versions()).filter((line) => line.startsWith('DNSEndpoint'))
    await setAddresses(bench.client, SERVICE, [])
    await untilReported(bench, 'NoLoadBalancerAddress')
    await bench.restoreService()
    await untilReported(bench, 'Published')
    await bench.client.delete(Service, SERVICE)
    await untilReported(bench, 'ServiceNotFound')
    await bench.restoreService()
    await untilReported(bench, 'Published')
    expect((await bench.versions()).filter((line) => line.startsWith('DNSEndpoint'))).toEqual(before)
  }),
  guarded('an address that changes is followed, all at once', async (bench) => {
    await using _app = bench.runUnified()
    await publishMany(bench)
    await setAddresses(bench.client, SERVICE, [{ ip: '203.0.113.5' }])
    await bench.eventually(
      'every record to follow',
      async () => targets(bench),
      (found) => found.join() === '203.0.113.5',
    )
  }),
  guarded(
    'another Service in the configuration is held, also after a restart, until the deprecated annotation approves what is held',
    async (bench) => {
      {
        await using _app = bench.runUnified()
        await publishMany(bench)
      }
      await createLoadBalancer(bench.client, OTHER, [{ ip: '203.0.113.66' }])
      const wrong = { services: [{ service: OTHER }] }
      for (let attempt = 0; attempt < 2; attempt++) {
        await using _app = bench.runUnified(wrong)
        await untilReported(bench, 'GuardTripped')
        expect(await targets(bench)).toEqual(['10.0.0.0'])
      }
      await using _app = bench.runUnified(wrong)
      await untilReported(bench, 'GuardTripped')
      await bench.client.patch(ConfigMap, STATE, 'merge', {
        metadata: { annotations: { 'seamark.io/release': 'yes' } },
      })
      await bench.eventually(
        'every record to follow',
        async () => targets(bench),
        (found) => found.join() === '203.0.113.66',
      )
      await untilReported(bench, 'Published')
    },
  ),
  guarded('the right Service back in the configuration needs no release', async (bench) => {
    {
      await using _app = bench.runUnified()
      await publishMany(bench)
    }
    await createLoadBalancer(bench.client, OTHER, [{ ip: '203.0.113.66' }])
    {
      await using _app = bench.runUnified({ services: [{ service: OTHER }] })
      await untilReported(bench, 'GuardTripped')
    }
    await using _app = bench.runUnified()
    await untilReported(bench, 'Published')
    expect(await targets(bench)).toEqual(['10.0.0.0'])
  }),
  guarded('another annotation prefix in the configuration prunes nothing', async (bench) => {
    const allowed = { allowedDnsNamespaces: ['dns'] }
    const before = names.map((name) => `DNSEndpoint dns/ns-${name}`)
    {
      await using _app = bench.runUnified(allowed)
      await publishMany(bench, { 'contour-plus.cybozu.com/dns-namespace': 'dns' })
      expect(await bench.children()).toEqual(before)
    }
    await using _app = bench.runUnified({ ...allowed, annotationPrefix: 'wrong.example.com/' })
    await untilReported(bench, 'GuardTripped')
    expect(await bench.children()).toEqual(expect.arrayContaining(before))
  }),
  guarded(
    'another class in the configuration prunes nothing; most sources that change class are held',
    async (bench) => {
      const [ours, other] = ['ours', 'other'].map((ingressClassName) => ({ ingressClassName }))
      {
        await using _app = bench.runUnified(ours)
        await publishMany(bench, { 'kubernetes.io/ingress.class': 'ours' })
      }
      const all = await bench.children()
      expect(all.length).toBe(COUNT)
      {
        await using _app = bench.runUnified(other)
        await bench.settled('other')
        expect(await bench.children()).toEqual(all)
      }
      await using _app = bench.runUnified(ours)
      for (const name of names) await bench.annotate(`ns/${name}`, { 'kubernetes.io/ingress.class': 'other' })
      await untilReported(bench, 'GuardTripped')
      expect(await bench.children()).toEqual(all)
      for (const name of names) await bench.annotate(`ns/${name}`, { 'kubernetes.io/ingress.class': 'ours' })
      await untilReported(bench, 'Published')
      expect(await bench.children()).toEqual(all)
    },
  ),
  guarded(
    'a few deletions pass; most at once are held with the command that approves exactly them, and then made',
    async (bench) => {
      await using _app = bench.runUnified()
      await publishMany(bench)
      const exclude = { 'seamark.io/exclude': 'dns' }
      await bench.annotate('ns/p0', exclude)
      await bench.untilChildren(COUNT - 1)
      for (const name of names.slice(1)) await bench.annotate(`ns/${name}`, exclude)
      await bench.eventually(
        'the guard',
        async () => reasons(bench),
        (found) => found.has('GuardTripped'),
      )
      expect((await bench.children()).length).toBeGreaterThan(1)
      const store = openObjectStore(bench.client, 'manager')
      const held = await bench.eventually(
        'the held set to be persisted',
        async () => [...(await store.list()).values()].flatMap((state) => state.held),
        (found) => found.length === COUNT - 1,
      )
      const id = held[0]?.set ?? ''
      await bench.eventually('the command in the message', async () => {
        const { items } = await bench.client.list(HTTPProxy)
        const conditions = items.flatMap(({ status }) => status?.conditions ?? [])
        return conditions.find(({ message }) => message?.endsWith(`seamark approve ${id}`))
      })
      expect(
        (await approveInStore(store, 'p-000000000000', bench.environment.waiting.now(), { mayRepeat: true })).result,
      ).toBe('unknown')
      const { result, covered } = await approveInStore(store, id, bench.environment.waiting.now(), { mayRepeat: true })
      expect([result, covered.length]).toEqual(['approved', COUNT - 1])
      await bench.untilChildren(0)
    },
  ),
  guarded('a pause stops every write, also across a restart, and its end is noticed', async (bench) => {
    const pause = async (value: string | null) =>
      bench.client.apply(
        ConfigMap,
        {
          metadata: {
            namespace: 'manager',
            name: 'seamark',
            ...(value !== null && { annotations: { 'seamark.io/pause': value } }),
          },
        },
        { fieldManager: 'person', force: true },
      )
    await pause('true')
    for (let attempt = 0; attempt < 2; attempt++) {
      const lines: string[] = []
      const log = createLogger({ destination: { write: (line) => void lines.push(line) } })
      await using app = bench.runUnified({}, { log })
      if (attempt === 0) await bench.proxy()
      await bench.eventually('the source to be decided', async () =>
        lines.find((line) => line.includes('"reason":"Paused"')),
      )
      expect(await bench.children()).toEqual([])
      expect(app.writes.count).toBe(0)
    }
    await using _app = bench.runUnified()
    await pause(null)
    await bench.dns('ns/foo')
    await bench.certificate('ns/foo')
    await remembered(bench)
    await bench.client.delete(ConfigMap, 'manager/seamark')
  }),
]
