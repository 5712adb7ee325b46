/**
 * The acceptance list of the fleet: each test is a defect that a predecessor had. On embedded API servers; one environment, because
 * every test has hosts, namespaces and clusters of its own.
 */
import { EndpointSlice, Ingress, Namespace, Secret, Service } from '@seamark/kube'
import {
  Cluster,
  DNSLoadBalancerEndpoint,
  Gateway,
  GlobalIngressPolicy,
  HostClaim,
  HTTPRoute,
  LeafIngress,
} from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS, root, type Running } from './test-environment.ts'
import { applyExample } from '../examples/manifests.ts'

describe('a fleet', () => {
  let environment: FleetEnvironment
  let app: Running

  beforeAll(async () => {
    environment = await FleetEnvironment.start(['eu1', 'us1', 'ap1'])
    for (const name of ['eu1', 'us1', 'ap1']) {
      await environment.register(name, name === 'ap1' ? { namespacePolicy: 'Create' } : {}, {
        region: name.slice(0, 2),
      })
      await environment.namespace(environment.member(name).client, 'shop')
    }
    app = environment.run({ orphanAfterSeconds: 3600, tlsSecrets: true })
    const ready = async () =>
      (await environment.hub.client.list(Cluster)).items.filter(({ status }) =>
        status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
      ).length
    await vi.waitFor(async () => expect(await ready()).toBe(3), POLL_OPTIONS)
  }, 120_000)

  afterAll(async () => {
    await environment[Symbol.asyncDispose]()
  })

  /** A namespace on the hub and on members, with the Service `web` on each of them. */
  async function tenant(namespace: string, ...members: string[]): Promise<void> {
    await environment.namespace(environment.hub.client, namespace)
    for (const name of members) await environment.deploy(name, namespace)
  }

  const ingress = (
    namespace: string,
    name: string,
    host: string,
    annotations: Record<string, string> = {},
  ): Ingress => {
    const object = root(name, host, { namespace, annotations })
    return object
  }

  const remote = (cluster: string, key: string) => environment.member(cluster).client.find(Ingress, key)

  const conditionOf = async (name: string, type: string) => {
    const found = (await environment.global(name))?.status?.conditions?.find((condition) => condition.type === type)
    return `${found?.status} ${found?.reason}`
  }

  async function serve(name: string, namespace: string, clusters: Record<string, string>): Promise<void> {
    for (const [cluster, ip] of Object.entries(clusters)) await environment.admit(cluster, `${namespace}/${name}`, ip)
    for (const cluster of Object.keys(clusters)) {
      await expect
        .poll(async () => environment.phases(name), POLL_OPTIONS)
        .toMatch(new RegExp(`${cluster} (Admitted|Warming|Active)`))
      await expect
        .poll(async () => environment.judge(cluster, { healthy: true, active: true }, name), POLL_OPTIONS)
        .toBeGreaterThan(0)
      await expect.poll(async () => environment.phases(name), POLL_OPTIONS).toContain(`${cluster} Active`)
    }
  }

  it('keeps roots of one name in two namespaces apart', async () => {
    await tenant('one', 'eu1')
    await tenant('two', 'eu1')
    await environment.hub.client.create(Ingress, ingress('one', 'twin', 'one.twin.test'))
    await environment.hub.client.create(Ingress, ingress('two', 'twin', 'two.twin.test'))
    await environment.admit('eu1', 'one/twin', '192.0.2.1')
    await environment.admit('eu1', 'two/twin', '192.0.2.2')
    const addresses = async (namespace: string) =>
      (await environment.hub.client.get(Ingress, `${namespace}/twin`)).status?.loadBalancer?.ingress
    await expect.poll(async () => addresses('one'), POLL_OPTIONS).toEqual([{ ip: '192.0.2.1' }])
    await expect.poll(async () => addresses('two'), POLL_OPTIONS).toEqual([{ ip: '192.0.2.2' }])
    await environment.hub.client.delete(Ingress, 'one/twin')
    await environment.hub.client.patch(Ingress, 'one/twin', 'merge', {
      metadata: { annotations: { 'seamark.io/delete': 'Immediate' } },
    })
    await expect.poll(async () => remote('eu1', 'one/twin'), POLL_OPTIONS).toBeUndefined()
    expect(await remote('eu1', 'two/twin')).toBeDefined()
    expect(await addresses('two')).toEqual([{ ip: '192.0.2.2' }])
  })

  it('follows a Service that moves, and a missing Service affects one cluster only', async () => {
    await tenant('move', 'eu1')
    await environment.hub.client.create(
      Ingress,
      ingress('move', 'mover', 'mover.test', { 'seamark.io/drain-seconds': '0', 'seamark.io/ttl': '1' }),
    )
    await expect.poll(async () => environment.phases('mover'), POLL_OPTIONS).toMatch(/^eu1 \w+$/)
    await serve('mover', 'move', { eu1: '192.0.2.11' })
    expect(await remote('us1', 'move/mover')).toBeUndefined()
    await environment.deploy('us1', 'move')
    await serve('mover', 'move', { us1: '192.0.2.12' })
    await environment.member('eu1').client.delete(Service, 'move/web')
    await expect.poll(async () => environment.phases('mover'), POLL_OPTIONS).toContain('eu1 Draining')
    // The leaf stays until DNS does not answer it any more.
    expect(await remote('eu1', 'move/mover')).toBeDefined()
    await environment.judge('eu1', { active: false }, 'mover')
    await expect.poll(async () => remote('eu1', 'move/mover'), POLL_OPTIONS).toBeUndefined()
    await expect.poll(async () => environment.phases('mover'), POLL_OPTIONS).toBe('us1 Active')
  })

  it('keeps the old leaf while its replacement is not admitted, and the last one for ever', async () => {
    await tenant('slow', 'eu1', 'us1')
    await environment.hub.client.create(Ingress, ingress('slow', 'slow', 'slow.test', { 'seamark.io/clusters': 'eu1' }))
    await serve('slow', 'slow', { eu1: '192.0.2.21' })
    await environment.hub.client.patch(Ingress, 'slow/slow', 'merge', {
      metadata: { annotations: { 'seamark.io/clusters': 'us1' } },
    })
    await expect.poll(async () => environment.phases('slow'), POLL_OPTIONS).toBe('eu1 Draining, us1 Applied')
    await expect.poll(async () => conditionOf('slow', 'Degraded'), POLL_OPTIONS).toBe('True NoReplacement')
    expect((await environment.hub.client.get(Ingress, 'slow/slow')).status?.loadBalancer?.ingress).toEqual([
      { ip: '192.0.2.21' },
    ])
    const { items } = await environment.hub.client.list(DNSLoadBalancerEndpoint, {
      labelSelector: 'seamark.io/cluster=eu1',
    })
    const own = items.filter(({ metadata }) => metadata.annotations?.['seamark.io/root'] === 'slow')
    expect(own.map(({ spec }) => spec.drain)).toEqual([undefined])
    await serve('slow', 'slow', { us1: '192.0.2.22' })
    await expect.poll(async () => conditionOf('slow', 'Degraded'), POLL_OPTIONS).toMatch(/^False/)
  })

  it('withdraws a leaf without ready endpoints while another serves', async () => {
    await tenant('pods', 'eu1', 'us1')
    await environment.hub.client.create(
      Ingress,
      ingress('pods', 'pods', 'pods.test', { 'seamark.io/clusters': 'eu1,us1' }),
    )
    const slice = (isReady: boolean): EndpointSlice => ({
      metadata: { namespace: 'pods', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: isReady } }],
    })
    await environment.member('eu1').client.create(EndpointSlice, slice(true))
    await serve('pods', 'pods', { eu1: '192.0.2.31', us1: '192.0.2.32' })
    await environment.member('eu1').client.apply(EndpointSlice, slice(false), { force: true })
    await expect.poll(async () => environment.phases('pods'), POLL_OPTIONS).toBe('eu1 Unhealthy, us1 Active')
    await expect.poll(async () => conditionOf('pods', 'Degraded'), POLL_OPTIONS).toBe('True NoReadyEndpoints')
    // Health changes DNS, never leaves.
    expect(await remote('eu1', 'pods/pods')).toBeDefined()
  })

  it('reports an object of another owner and does not change it', async () => {
    await tenant('foreign', 'eu1')
    const theirs = ingress('foreign', 'shared', 'theirs.test')
    await environment
      .member('eu1')
      .client.create(Ingress, { ...theirs, spec: { ...theirs.spec, ingressClassName: 'nginx' } })
    await environment.hub.client.create(
      Ingress,
      ingress('foreign', 'shared', 'ours.test', { 'seamark.io/clusters': 'eu1' }),
    )
    const reason = async () =>
      (await environment.hub.client.find(LeafIngress, 'foreign/ingress-shared--eu1'))?.status?.reason
    await expect.poll(reason, POLL_OPTIONS).toBe('ForeignObject')
    expect((await remote('eu1', 'foreign/shared'))?.spec?.rules?.[0]?.host).toBe('theirs.test')
  })

  it('corrects drift, and applies again what was deleted on the member', async () => {
    await tenant('drift', 'eu1')
    await environment.hub.client.create(Ingress, ingress('drift', 'drift', 'drift.test'))
    await expect.poll(async () => remote('eu1', 'drift/drift'), POLL_OPTIONS).toBeDefined()
    const { client } = environment.member('eu1')
    await client.patch(Ingress, 'drift/drift', 'json', [
      { op: 'replace', path: '/spec/rules/0/host', value: 'evil.test' },
    ])
    await expect
      .poll(async () => (await remote('eu1', 'drift/drift'))?.spec?.rules?.[0]?.host, POLL_OPTIONS)
      .toBe('drift.test')
    const uid = (await remote('eu1', 'drift/drift'))?.metadata.uid
    await client.delete(Ingress, 'drift/drift')
    await expect.poll(async () => (await remote('eu1', 'drift/drift'))?.metadata.uid, POLL_OPTIONS).not.toBe(uid)
    await expect.poll(async () => remote('eu1', 'drift/drift'), POLL_OPTIONS).toBeDefined()
  })

  it('reports fields of another manager, and a client that changes a leaf again and again', async () => {
    await tenant('fight', 'ap1')
    await environment.hub.client.create(Ingress, ingress('fight', 'fight', 'fight.test'))
    await expect.poll(async () => remote('ap1', 'fight/fight'), POLL_OPTIONS).toBeDefined()
    const { client } = environment.member('ap1')
    const reason = async () =>
      (await environment.hub.client.find(LeafIngress, 'fight/ingress-fight--ap1'))?.status?.reason
    for (let round = 0; round < 6; round++) {
      const path = `/spec/rules/0/host`
      await client.patch(Ingress, 'fight/fight', 'json', [{ op: 'replace', path, value: `evil${round}.test` }])
      const isOver = async () =>
        (await reason()) === 'SecondWriter' ||
        (await remote('ap1', 'fight/fight'))?.spec?.rules?.[0]?.host === 'fight.test'
      await expect.poll(isOver, POLL_OPTIONS).toBe(true)
    }
    await expect.poll(reason, POLL_OPTIONS).toBe('SecondWriter')

    await tenant('conflict', 'ap1')
    await environment.hub.client.create(Ingress, ingress('conflict', 'conflict', 'conflict.test'))
    await expect.poll(async () => remote('ap1', 'conflict/conflict'), POLL_OPTIONS).toBeDefined()
    const theirs = { metadata: { namespace: 'conflict', name: 'conflict' }, spec: { ingressClassName: 'nginx' } }
    await client.apply(Ingress, theirs, { fieldManager: 'another-manager' })
    const ingressClassMap = { global: 'traefik' }
    await environment.hub.client.patch(Cluster, 'ap1', 'merge', { spec: { ingress: { ingressClassMap } } })
    const conflict = async () =>
      (await environment.hub.client.find(LeafIngress, 'conflict/ingress-conflict--ap1'))?.status?.reason
    await expect.poll(conflict, POLL_OPTIONS).toBe('ApplyConflict')
    expect((await remote('ap1', 'conflict/conflict'))?.spec?.ingressClassName).toBe('nginx')
  })

  it('gives a host to one of two namespaces, and never applies a leaf without its hosts', async () => {
    await tenant('first', 'eu1')
    await tenant('second', 'eu1')
    await environment.hub.client.create(Ingress, ingress('first', 'claimed', 'claimed.test'))
    await expect.poll(async () => remote('eu1', 'first/claimed'), POLL_OPTIONS).toBeDefined()
    await environment.hub.client.create(Ingress, ingress('second', 'rival', 'claimed.test'))
    await expect.poll(async () => conditionOf('rival', 'HostsOwned'), POLL_OPTIONS).toBe('False HostConflict')
    expect(await remote('eu1', 'second/rival')).toBeUndefined()
    const claims = (await environment.hub.client.list(HostClaim)).items.filter(
      ({ spec }) => spec.host === 'claimed.test',
    )
    expect(claims.map(({ spec }) => spec.namespace)).toEqual(['first'])
    // Released, the host goes to the one that waits.
    await environment.hub.client.delete(Ingress, 'first/claimed')
    await expect.poll(async () => conditionOf('rival', 'HostsOwned'), POLL_OPTIONS).toBe('True HostsOwned')
    await expect.poll(async () => remote('eu1', 'second/rival'), POLL_OPTIONS).toBeDefined()
  })

  it('copies only allowed annotations, and applies the patches of a policy last', async () => {
    await tenant('render', 'eu1')
    await environment.hub.client.create(GlobalIngressPolicy, {
      metadata: { namespace: 'render', name: 'render' },
      spec: {
        targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'render' }],
        overrides: [
          {
            cluster: 'eu1',
            patches: [
              { op: 'add', path: '/metadata/labels', value: { team: 'a' } },
              {
                op: 'replace',
                path: '/metadata/annotations/nginx.ingress.kubernetes.io~1rewrite-target',
                value: '/eu1/$1',
              },
            ],
          },
        ],
      },
    } as GlobalIngressPolicy)
    const annotations = {
      'nginx.ingress.kubernetes.io/rewrite-target': '/$1',
      'nginx.ingress.kubernetes.io/configuration-snippet': 'evil',
      private: 'x',
    }
    await environment.hub.client.create(Ingress, ingress('render', 'render', 'render.test', annotations))
    await expect.poll(async () => remote('eu1', 'render/render'), POLL_OPTIONS).toBeDefined()
    const leaf = await remote('eu1', 'render/render')
    expect(Object.keys(leaf?.metadata.annotations ?? {}).sort()).toEqual([
      'nginx.ingress.kubernetes.io/rewrite-target',
      'seamark.io/leaf',
      'seamark.io/spec-hash',
    ])
    expect(leaf?.metadata.annotations?.['nginx.ingress.kubernetes.io/rewrite-target']).toBe('/eu1/$1')
    expect(leaf?.metadata.labels).toMatchObject({ 'seamark.io/managed': 'true' })
    expect(leaf?.metadata.labels).not.toHaveProperty('team')
  })

  it('refuses a policy with the path of the field, and leaves what is placed', async () => {
    await tenant('badpolicy', 'eu1')
    await environment.hub.client.create(Ingress, ingress('badpolicy', 'badpolicy', 'badpolicy.test'))
    await expect.poll(async () => remote('eu1', 'badpolicy/badpolicy'), POLL_OPTIONS).toBeDefined()
    await environment.hub.client.patch(Ingress, 'badpolicy/badpolicy', 'merge', {
      metadata: { annotations: { 'seamark.io/ttl': 'soon' } },
    })
    const summary = async () =>
      (await environment.hub.client.get(Ingress, 'badpolicy/badpolicy')).metadata.annotations?.['seamark.io/summary']
    await expect.poll(summary, POLL_OPTIONS).toBe('refused: annotation seamark.io/ttl: "soon" is no number')
    await expect.poll(async () => environment.events('badpolicy'), POLL_OPTIONS).toContain('PolicyInvalid')
    expect(await remote('eu1', 'badpolicy/badpolicy')).toBeDefined()
  })

  it('creates a missing namespace only where the Cluster allows it', async () => {
    await environment.namespace(environment.hub.client, 'fresh')
    const annotations = { 'seamark.io/clusters': 'eu1,ap1' }
    await environment.hub.client.create(GlobalIngressPolicy, {
      metadata: { namespace: 'fresh', name: 'fresh' },
      spec: { selector: { matchLabels: {} }, placement: { backendAffinity: 'Ignore', clusters: ['eu1', 'ap1'] } },
    } as GlobalIngressPolicy)
    await environment.hub.client.create(Ingress, ingress('fresh', 'fresh', 'fresh.test', annotations))
    await expect.poll(async () => remote('ap1', 'fresh/fresh'), POLL_OPTIONS).toBeDefined()
    const reason = async () =>
      (await environment.hub.client.find(LeafIngress, 'fresh/ingress-fresh--eu1'))?.status?.reason
    await expect.poll(reason, POLL_OPTIONS).toBe('NamespaceMissing')
    await environment.namespace(environment.member('eu1').client, 'fresh')
    expect(await environment.member('ap1').client.find(Namespace, 'fresh')).toBeDefined()
  })

  it('places by the labels of Services on the hub, as the proof of concept did', async () => {
    await tenant('kcp', 'eu1', 'us1')
    await environment.hub.client.create(Service, {
      metadata: { namespace: 'kcp', name: 'web', labels: { 'kcp.dev/cluster': 'us1' } },
      spec: { ports: [{ port: 80 }] },
    })
    await environment.hub.client.create(Ingress, ingress('kcp', 'kcp', 'kcp.test'))
    await expect.poll(async () => environment.phases('kcp'), POLL_OPTIONS).toBe('us1 Applied')
    await environment.hub.client.patch(Service, 'kcp/web', 'merge', {
      metadata: { labels: { 'kcp.dev/cluster': 'eu1' } },
    })
    await expect.poll(async () => environment.phases('kcp'), POLL_OPTIONS).toBe('eu1 Applied')
    await expect.poll(async () => remote('us1', 'kcp/kcp'), POLL_OPTIONS).toBeUndefined()
  })

  it('refuses a kubeconfig that runs a program, and reports a second registration of one server', async () => {
    const evil = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      users: [{ name: 'a', user: { exec: { command: 'sh' } } }],
    })
    await environment.registerSecret('evil', evil)
    await environment.hub.client.create(Cluster, { metadata: { name: 'evil' } } as Cluster)
    const ready = async (name: string) => {
      const found = (await environment.hub.client.get(Cluster, name)).status?.conditions?.find(
        ({ type }) => type === 'Ready',
      )
      return `${found?.status} ${found?.reason}`
    }
    await expect.poll(async () => ready('evil'), POLL_OPTIONS).toBe('False KubeconfigRefused')
    await environment.registerSecret('twin', environment.member('eu1').kubeconfig)
    await environment.hub.client.create(Cluster, { metadata: { name: 'twin' } } as Cluster)
    await expect.poll(async () => ready('twin'), POLL_OPTIONS).toBe('False DuplicateCluster')
    expect(await ready('eu1')).toBe('True ClusterReady')
    await environment.hub.client.create(Cluster, { metadata: { name: 'bare' } } as Cluster)
    await expect.poll(async () => ready('bare'), POLL_OPTIONS).toBe('False CredentialsMissing')
    for (const name of ['evil', 'twin', 'bare']) await environment.hub.client.delete(Cluster, name)
    for (const name of ['evil', 'twin']) await environment.hub.client.delete(Secret, `manager/${name}`)
  })

  it('distributes an HTTPRoute to the mapped Gateway of a member, and reads its addresses there', async () => {
    await tenant('gateway', 'us1')
    const { client } = environment.hub
    const us1 = environment.member('us1').client
    await applyExample(client, 'fleet/gateway-api.yaml')
    await us1.create(Gateway, {
      metadata: { namespace: 'gateway', name: 'gw' },
      status: { addresses: [{ type: 'IPAddress', value: '192.0.2.41' }] },
    })
    await us1.patch(
      Gateway,
      'gateway/gw',
      'merge',
      { status: { addresses: [{ type: 'IPAddress', value: '192.0.2.41' }] } },
      { subresource: 'status' },
    )
    await expect.poll(async () => us1.find(HTTPRoute, 'gateway/api'), POLL_OPTIONS).toBeDefined()
    const leaf = await us1.get(HTTPRoute, 'gateway/api')
    expect(leaf.spec?.parentRefs).toEqual([{ name: 'gw', namespace: 'gateway' }])
    const conditions = ['Accepted', 'ResolvedRefs'].map((type) => ({ type, status: 'True', reason: type }))
    await us1.patch(
      HTTPRoute,
      'gateway/api',
      'merge',
      { status: { parents: [{ parentRef: { name: 'gw', namespace: 'gateway' }, conditions }] } },
      { subresource: 'status' },
    )
    const addresses = async () =>
      (await client.find(LeafIngress, 'gateway/httproute-api--us1'))?.status?.addresses?.map(({ value }) => value)
    await expect.poll(addresses, POLL_OPTIONS).toEqual(['192.0.2.41'])
    const controllers = async () =>
      ((await client.get(HTTPRoute, 'gateway/api')).status?.parents ?? []).map(
        (parent) => (parent as { controllerName?: string }).controllerName,
      )
    await expect.poll(controllers, POLL_OPTIONS).toEqual(['seamark.io/global'])
  })

  it('copies a TLS Secret that may leave the hub before the leaf, follows its rotation, and deletes it with the last leaf', async () => {
    await tenant('tls', 'eu1')
    const { client } = environment.hub
    const eu1 = environment.member('eu1').client
    const secret = (name: string, changes: Partial<Secret> = {}): Secret => ({
      metadata: { namespace: 'tls', name, labels: { 'seamark.io/sync': 'true' } },
      type: 'kubernetes.io/tls',
      data: { 'tls.crt': 'Yw==', 'tls.key': 'a2V5MQ==' },
      ...changes,
    })
    await client.create(Secret, secret('web-tls'))
    await client.create(Secret, secret('private-tls', { metadata: { namespace: 'tls', name: 'private-tls' } }))
    await client.create(Secret, secret('odd-tls', { type: 'Opaque' }))
    await eu1.create(Secret, { metadata: { namespace: 'tls', name: 'theirs-tls' }, data: { 'tls.key': 'dGhlaXJz' } })
    await client.create(Secret, secret('theirs-tls'))
    const withTls = (name: string, ...secretNames: string[]): Ingress => {
      const object = ingress('tls', name, `${name}.test`)
      const tls = secretNames.map((secretName) => ({ hosts: [`${name}.test`], secretName }))
      return { ...object, spec: { ...object.spec, tls } }
    }
    await client.create(Ingress, withTls('secure', 'private-tls', 'web-tls'))
    await expect.poll(async () => remote('eu1', 'tls/secure'), POLL_OPTIONS).toBeDefined()
    const keyOn = async (name: string) => (await eu1.find(Secret, `tls/${name}`))?.data?.['tls.key']
    expect([await keyOn('web-tls'), await keyOn('private-tls')]).toEqual(['a2V5MQ==', undefined])
    // The key is in the Secret alone.
    expect(JSON.stringify((await client.list(LeafIngress, { namespace: 'tls' })).items)).not.toContain('a2V5MQ==')
    await client.patch(Secret, 'tls/web-tls', 'merge', { data: { 'tls.key': 'a2V5Mg==' } })
    await expect.poll(async () => keyOn('web-tls'), POLL_OPTIONS).toBe('a2V5Mg==')

    await client.create(Ingress, withTls('secure-too', 'web-tls'))
    await client.create(Ingress, withTls('odd', 'odd-tls'))
    await client.create(Ingress, withTls('foreign', 'theirs-tls'))
    const reason = async (name: string) => (await client.find(LeafIngress, `tls/ingress-${name}--eu1`))?.status?.reason
    await expect.poll(async () => reason('odd'), POLL_OPTIONS).toBe('ApplyRejected')
    await expect.poll(async () => reason('foreign'), POLL_OPTIONS).toBe('ForeignObject')
    expect(await keyOn('theirs-tls')).toBe('dGhlaXJz')
    await expect.poll(async () => remote('eu1', 'tls/secure-too'), POLL_OPTIONS).toBeDefined()
    await client.delete(Ingress, 'tls/secure')
    await expect.poll(async () => remote('eu1', 'tls/secure'), POLL_OPTIONS).toBeUndefined()
    expect(await keyOn('web-tls')).toBe('a2V5Mg==')
    await client.delete(Ingress, 'tls/secure-too')
    await expect.poll(async () => keyOn('web-tls'), POLL_OPTIONS).toBeUndefined()
  })

  it('runs on through all of this', () => {
    expect(app.writes.length).toBeGreaterThan(0)
  })
})
