/**
 * The runtime on a real kube-apiserver: controller, children, status, finalizer, events, lease, webhooks, conversion.
 */
import { needs } from '@seamark/kit'
import {
  configFromText,
  connect,
  createLogger,
  kind,
  Lease,
  manager,
  Secret,
  Event,
  keyOf,
  withController,
  type Cluster,
  type Manager,
  type ManagerOptions,
  type Obj,
} from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

interface Route extends Obj {
  spec: { host: string; targets?: { address: string; weight?: number }[] }
  status?: { ready: boolean; observedGeneration?: number }
}
interface Record_ extends Obj {
  spec: { name: string; values: string[] }
}
const Route = kind<Route>({ group: 'edge.test', version: 'v1', kind: 'Route', plural: 'routes', namespaced: true })
const OldRoute = kind<Obj & { spec: { fqdn: string; addresses?: string[] } }>({ ...Route, version: 'v1beta1' })
const Entry = kind<Record_>({ group: 'edge.test', version: 'v1', kind: 'Entry', plural: 'entries', namespaced: true })

const object = (properties: object, required: string[] = []) => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
})
const text = { type: 'string' }
const schema = (spec: object) => ({
  openAPIV3Schema: object({ spec, status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }),
})
const crd = (plural: string, name: string, versions: object[], extra: object = {}) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.edge.test` },
  spec: {
    group: 'edge.test',
    scope: 'Namespaced',
    names: { plural, singular: name.toLowerCase(), kind: name, listKind: `${name}List` },
    versions,
    ...extra,
  },
})
const routeSpec = object(
  { host: text, targets: { type: 'array', items: object({ address: text, weight: { type: 'integer' } }) } },
  ['host'],
)
const oldSpec = object({ fqdn: text, addresses: { type: 'array', items: text } }, ['fqdn'])
const version = (name: string, storage: boolean, spec: object) => ({
  name,
  served: true,
  storage,
  schema: schema(spec),
  subresources: { status: {} },
})
const routeCrd = crd('routes', 'Route', [version('v1', true, routeSpec), version('v1beta1', false, oldSpec)])
const entryCrd = crd('entries', 'Entry', [
  version('v1', true, object({ name: text, values: { type: 'array', items: text } })),
])

interface Started {
  mgr: Manager
  stop: AbortController
  outcome: Promise<unknown>
  lines: string[]
}

describe.skipIf(!needs('kube-apiserver', 'etcd'))('runtime on a real kube-apiserver', () => {
  let plane: ControlPlane
  let client: Cluster
  const started: Started[] = []

  // A server each: webhooks and conversions of one test would be called by the objects of the others.
  beforeEach(async () => {
    plane = await ControlPlane.start({ crds: [routeCrd, entryCrd] })
    client = connect(configFromText(plane.kubeconfig()), { fieldManager: 'user' })
  })
  afterEach(async () => {
    for (const { stop, outcome } of started.splice(0)) {
      stop.abort()
      await outcome
    }
    await client.close()
    await plane.stop()
  })

  async function start(wire: (mgr: Manager) => void, options: ManagerOptions = {}): Promise<Started> {
    const lines: string[] = []
    const log = createLogger({ destination: { write: (line: string) => lines.push(line) } })
    const mgr = await manager({
      config: configFromText(plane.kubeconfig()),
      fieldManager: 'edge',
      log,
      grace: '5s',
      ...options,
    })
    wire(mgr)
    const stop = new AbortController()
    const outcome = mgr.run(stop.signal).then(
      () => 'stopped',
      (error: unknown) => error,
    )
    const result = { mgr, stop, outcome, lines }
    started.push(result)
    return result
  }

  const writes = async ({ mgr }: Started) => {
    const { values } = (await mgr.metrics.registry.getSingleMetric('rest_client_requests_total')?.get()) ?? {
      values: [],
    }
    return values.filter(({ labels }) => labels['method'] !== 'GET').reduce((sum, { value }) => sum + value, 0)
  }
  const reconciles = async ({ mgr }: Started) => {
    const { values } = (await mgr.metrics.registry.getSingleMetric('controller_runtime_reconcile_total')?.get()) ?? {
      values: [],
    }
    return values.reduce((sum, { value }) => sum + value, 0)
  }
  const route = (name: string, host = `${name}.test`): Route => ({
    metadata: { name, namespace: 'default' },
    spec: { host, targets: [{ address: '192.0.2.1' }] },
  })

  it('drives objects to their children and status, then writes nothing, also after a restart', async () => {
    const cleaned: string[] = []
    const wire = (mgr: Manager) =>
      mgr
        .controller('routes', Route)
        .owns(Entry)
        .finalizer('edge.test/records', async ({ metadata }) => void cleaned.push(metadata.name ?? ''))
        .reconcile(async (object, ctx) => {
          const { name, namespace = '' } = object.metadata
          const entry = {
            metadata: { name, namespace, labels: {} },
            spec: { name: object.spec.host, values: (object.spec.targets ?? []).map(({ address }) => address) },
          }
          await ctx.apply(Entry, withController(entry, object))
          await ctx.status(object, { ready: true, observedGeneration: object.metadata.generation })
          if (name === 'r0') ctx.event(object, 'Normal', 'Published', `${object.spec.host} is published`)
        })
    const first = await start(wire)
    for (let index = 0; index < 20; index++) await client.client.create(Route, route(`r${index}`))
    const find = async (name: string) => client.client.find(Route, `default/${name}`)
    await expect
      .poll(async () => (await find('r19'))?.status, { timeout: 20_000 })
      .toEqual({ ready: true, observedGeneration: 1 })
    const entry = await client.client.get(Entry, 'default/r7')
    expect(entry).toMatchObject({
      spec: { name: 'r7.test', values: ['192.0.2.1'] },
      metadata: { ownerReferences: [{ kind: 'Route', name: 'r7', controller: true }] },
    })
    await expect
      .poll(async () => (await client.client.list(Event, { namespace: 'default' })).items.map(({ reason }) => reason))
      .toContain('Published')

    const settled = await quiet(async () => reconciles(first))
    const sent = await writes(first)
    await client.client.patch(Route, 'default/r3', 'merge', { metadata: { labels: { touched: 'yes' } } })
    await expect.poll(async () => reconciles(first)).toBeGreaterThan(settled)
    await quiet(async () => reconciles(first))
    expect(await writes(first)).toBe(sent)

    // Another client edits our child: it is corrected with one write.
    await client.client.patch(Entry, 'default/r4', 'merge', { spec: { name: 'edited' } })
    await expect.poll(async () => (await client.client.get(Entry, 'default/r4')).spec.name).toBe('r4.test')
    first.stop.abort()
    expect(await first.outcome).toBe('stopped')

    const second = await start(wire)
    await expect.poll(async () => reconciles(second), { timeout: 20_000 }).toBeGreaterThanOrEqual(20)
    await quiet(async () => reconciles(second))
    expect(await writes(second)).toBe(0)

    await client.client.delete(Route, 'default/r5')
    await expect.poll(async () => find('r5')).toBeUndefined()
    expect(cleaned).toEqual(['r5'])
  })

  it('lets one of two processes lead, and the other take over when it stops', async () => {
    const seen: string[] = []
    const leader = {
      lease: 'edge',
      namespace: 'default',
      durationMs: 3_000,
      renewDeadlineMs: 2_000,
      retryPeriodMs: 200,
    }
    const wire = (who: string) => (mgr: Manager) =>
      mgr.controller('who', Route).reconcile(async (_object, { key }) => void seen.push(`${who} ${key}`))
    await client.client.create(Route, route('led'))
    const a = await start(wire('a'), { leader: { ...leader, identity: 'a' } })
    await expect.poll(() => seen.some((line) => line.startsWith('a '))).toBe(true)
    const b = await start(wire('b'), { leader: { ...leader, identity: 'b' } })
    await expect.poll(async () => (await client.client.get(Lease, 'default/edge')).spec?.holderIdentity).toBe('a')
    expect(seen.some((line) => line.startsWith('b '))).toBe(false)
    a.stop.abort()
    expect(await a.outcome).toBe('stopped')
    await expect.poll(() => seen.some((line) => line.startsWith('b '))).toBe(true)
    expect((await client.client.get(Lease, 'default/edge')).spec).toMatchObject({
      holderIdentity: 'b',
      leaseTransitions: 1,
    })

    // Another holder that never renews: b stops leading, and leads again when the Lease is free.
    const lease = await client.client.get(Lease, 'default/edge')
    await client.client.update(Lease, { ...lease, spec: { ...lease.spec, holderIdentity: 'other' } })
    const before = seen.length
    await expect
      .poll(async () => (await client.client.get(Lease, 'default/edge')).spec, { timeout: 20_000 })
      .toMatchObject({ holderIdentity: 'b', leaseTransitions: 2 })
    await expect.poll(() => seen.length).toBeGreaterThan(before)
    b.stop.abort()
    expect(await b.outcome).toBe('stopped')
  })

  it('starts a controller when its CRD appears', async () => {
    const Late = kind<Obj>({ group: 'edge.test', version: 'v1', kind: 'Late', plural: 'lates', namespaced: true })
    const seen: string[] = []
    await client.client.create(Route, route('present'))
    await start((mgr) => {
      mgr.controller('late', Late).reconcile(async (_object, { key }) => void seen.push(key))
      mgr.controller('routes', Route).reconcile(async (_object, { key }) => void seen.push(key))
    })
    await expect.poll(() => seen.length, { timeout: 20_000 }).toBeGreaterThan(0)
    await plane.install([
      crd('lates', 'Late', [version('v1', true, { type: 'object', 'x-kubernetes-preserve-unknown-fields': true })]),
    ])
    await client.client.create(Late, { metadata: { name: 'one', namespace: 'default' } })
    await expect.poll(() => seen, { timeout: 40_000 }).toContain('default/one')
  })

  it('defaults, validates and converts, with a certificate it made itself and had trusted', async () => {
    const hook = (name: string, rules: object) => ({
      name: `${name}.edge.test`,
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      rules: [
        {
          apiGroups: ['edge.test'],
          apiVersions: ['v1'],
          resources: ['routes'],
          operations: ['CREATE', 'UPDATE', 'DELETE'],
          ...rules,
        },
      ],
    })
    const started_ = await start(
      (mgr) => {
        mgr.webhook(Route, {
          default: (object) => {
            object.spec.host = object.spec.host.toLowerCase()
            object.metadata.labels = { ...object.metadata.labels, defaulted: 'yes' }
          },
          validate: (now, old) => {
            if (now === undefined) return old?.metadata.name === 'protected' ? ['metadata.name: is protected'] : []
            return now.spec.host.endsWith('.') ? ['spec.host: must not end with a dot'] : ['warning: looked at']
          },
        })
        mgr.conversion(Route, [
          {
            version: 'v1beta1',
            toHub: ({ spec, ...rest }: typeof OldRoute.__type & Obj) => ({
              ...rest,
              spec: { host: spec.fqdn, targets: (spec.addresses ?? []).map((address) => ({ address })) },
            }),
            fromHub: ({ spec, ...rest }) => ({
              ...rest,
              spec: { fqdn: spec.host, addresses: (spec.targets ?? []).map(({ address }) => address) },
            }),
          },
        ])
      },
      {
        webhooks: {
          listen: '127.0.0.1:0',
          certificate: {
            secret: 'hooks',
            namespace: 'default',
            dnsNames: ['localhost'],
            inject: { crds: ['routes.edge.test'], mutating: ['edge'], validating: ['edge'] },
          },
        },
      },
    )
    await expect.poll(() => started_.mgr.addresses.webhooks, { timeout: 20_000 }).toBeDefined()
    const url = `https://localhost:${started_.mgr.addresses.webhooks?.split(':').at(-1)}`
    const configuration = (kindName: string, webhook: object) => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: kindName,
      metadata: { name: 'edge' },
      webhooks: [webhook],
    })
    const secret = await client.client.get(Secret, 'default/hooks')
    // The leader puts the bundle in when it looks next; here it is put in by hand, and by the manager at its next start below.
    const caBundle = secret.data?.['ca.crt'] ?? ''
    await plane.install([
      configuration('MutatingWebhookConfiguration', {
        ...hook('default', { operations: ['CREATE', 'UPDATE'] }),
        clientConfig: { url: `${url}/mutate-edge-test-v1-route`, caBundle },
      }),
      configuration('ValidatingWebhookConfiguration', {
        ...hook('validate', {}),
        clientConfig: { url: `${url}/validate-edge-test-v1-route`, caBundle },
      }),
      {
        ...routeCrd,
        spec: {
          ...routeCrd.spec,
          conversion: {
            strategy: 'Webhook',
            webhook: { conversionReviewVersions: ['v1'], clientConfig: { url: `${url}/convert`, caBundle } },
          },
        },
      },
    ])

    await expect
      .poll(
        async () =>
          (await client.client
            .create(Route, route('shouting', 'SHOUT.test'))
            .catch((error: unknown) => String(error))) as Route,
        { timeout: 20_000 },
      )
      .toMatchObject({ spec: { host: 'shout.test' }, metadata: { labels: { defaulted: 'yes' } } })
    const refused = client.client.create(Route, route('dotted', 'dotted.test.'))
    await expect(refused).rejects.toMatchObject({
      httpStatus: 422,
      message: expect.stringContaining('must not end with a dot'),
    })
    await client.client.create(Route, route('protected'))
    await expect(client.client.delete(Route, 'default/protected')).rejects.toThrow('is protected')

    const rich = { ...route('rich'), spec: { host: 'rich.test', targets: [{ address: '192.0.2.7', weight: 3 }] } }
    await client.client.create(Route, rich)
    await expect
      .poll(async () => (await client.client.get(OldRoute, 'default/rich')).spec, { timeout: 20_000 })
      .toEqual({ fqdn: 'rich.test', addresses: ['192.0.2.7'] })
    await client.client.patch(OldRoute, 'default/rich', 'merge', { spec: { fqdn: 'edited.test' } })
    const back = await client.client.get(Route, 'default/rich')
    expect(back.spec).toEqual({ host: 'edited.test', targets: [{ address: '192.0.2.7', weight: 3 }] })
    await client.client.create(OldRoute, {
      metadata: { name: 'old', namespace: 'default' },
      spec: { fqdn: 'old.test', addresses: ['192.0.2.9'] },
    })
    expect((await client.client.get(Route, 'default/old')).spec).toEqual({
      host: 'old.test',
      targets: [{ address: '192.0.2.9' }],
    })
    expect((await client.client.list(OldRoute)).items.map(keyOf)).toContain('default/old')
    expect(started_.lines.join()).not.toContain('webhook is broken')

    // A manager that finds callers with another bundle gives them its own.
    await client.client.patch(
      kind({
        group: 'admissionregistration.k8s.io',
        version: 'v1',
        kind: 'x',
        plural: 'mutatingwebhookconfigurations',
        namespaced: false,
      }),
      'edge',
      'json',
      [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }],
    )
    const again = await start(() => undefined, {
      webhooks: {
        listen: '127.0.0.1:0',
        certificate: { secret: 'hooks', namespace: 'default', dnsNames: ['localhost'], inject: { mutating: ['edge'] } },
      },
    })
    await expect.poll(() => again.mgr.addresses.webhooks, { timeout: 20_000 }).toBeDefined()
    const { body } = await plane.request(
      'GET',
      '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/edge',
    )
    expect(body).toMatchObject({ webhooks: [{ clientConfig: { caBundle } }] })
  })

  /** Resolves with the value once it has stood still for half a second. */
  async function quiet(read: () => Promise<number>): Promise<number> {
    let last = await read()
    let since = performance.now()
    await expect
      .poll(
        async () => {
          const now = await read()
          if (now !== last) since = performance.now()
          last = now
          return performance.now() - since
        },
        { timeout: 20_000 },
      )
      .toBeGreaterThan(500)
    return last
  }
})
