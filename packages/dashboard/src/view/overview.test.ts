import { Service } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { memoryCluster, type MemoryCluster } from '@seamark/kube/testing'
import {
  CachedHosts,
  Cluster,
  DNSEndpoint,
  Certificate,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  FIELD_MANAGER,
  GlobalIngress,
  LeafIngress,
  type PublishOptions,
  unified,
} from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import type { ManagerView, State } from '../api/state.ts'
import { applyDifference } from '../api/stream.ts'
import { EventLog } from './event-log.ts'
import { Overview } from './overview.ts'

const MANAGER: ManagerView = {
  version: '0.0.0',
  namespace: 'seamark',
  mode: 'enforce',
  pausedBy: [],
  isLeading: true,
  capabilities: [],
  data: { isCurrent: true, readAt: '2026-03-01T00:00:00Z' },
}
const START_MS = Date.UTC(2026, 2, 1)

function openOverview(
  cluster: MemoryCluster,
  {
    manager = () => MANAGER,
    publish,
  }: { readonly manager?: () => ManagerView; readonly publish?: PublishOptions } = {},
) {
  const hosts = new CachedHosts({
    informers: cluster.informers,
    hasFleet: true,
    hasBalance: true,
    publish,
    endpointScope: {},
  })
  const time = { nowMs: START_MS }
  hosts.start(() => undefined)
  const overview = new Overview({
    hosts,
    zones: undefined,
    log: new EventLog(),
    manager,
    hasOnlyOwnZones: false,
    epoch: 'test',
    now: () => time.nowMs,
  })
  overview.update()
  /** The state before, and what the difference makes of it. */
  const step = (before: State): State => {
    const difference = overview.update()
    const after = difference === undefined ? before : applyDifference(before, difference)
    if (after === undefined) throw new Error('the difference does not apply')
    expect(after).toEqual(overview.state())
    return after
  }
  return { overview, time, step }
}

const nameOf = (index: number) => `host-${String(index).padStart(5, '0')}.demo.test`
const put = (cluster: MemoryCluster, index: number, target: string) =>
  cluster.put(DNSEndpoint, {
    metadata: { namespace: `team-${index % 10}`, name: `host-${index}` },
    spec: { endpoints: [{ dnsName: nameOf(index), recordType: 'A', targets: [target], recordTTL: 60 }] },
  })

it('without hosts nothing needs anybody, and nothing changes', () => {
  const { overview } = openOverview(memoryCluster())
  expect(overview.state()).toMatchObject({ hosts: [], clusters: [], needsYou: [], lastHour: [] })
  expect(overview.update()).toBeUndefined()
})

it('of 10 000 hosts a difference has those that changed, came and went', () => {
  const cluster = memoryCluster()
  for (let index = 0; index < 10_000; index++) put(cluster, index, '203.0.113.1')
  const { overview, step } = openOverview(cluster)
  const before = overview.state()
  expect(before.hosts).toHaveLength(10_000)
  expect(before.hosts[7]).toMatchObject({
    name: nameOf(7),
    owner: 'DNSEndpoint team-7/host-7',
    answersFrom: 'published',
    answers: [{ address: '203.0.113.1', share: 1, state: 'answered' }],
  })
  put(cluster, 7, '203.0.113.2')
  put(cluster, 10_000, '203.0.113.3')
  cluster.remove(DNSEndpoint, 'team-9/host-9')
  const after = step(before)
  expect(after.hosts).toHaveLength(10_000)
  expect(after.hosts.filter((host, index) => host !== before.hosts[index]).length).toBeGreaterThan(2)
  expect(after.hosts.filter((host) => !before.hosts.includes(host)).map(({ name }) => name)).toEqual([
    nameOf(7),
    nameOf(10_000),
  ])
  expect(overview.hostText(after.hosts[0]!)).toBe(JSON.stringify(after.hosts[0]))
})

it('what changes again before the difference is made is what it is in the end', () => {
  const cluster = memoryCluster()
  put(cluster, 1, '203.0.113.1')
  const { overview, step } = openOverview(cluster)
  const before = overview.state()
  put(cluster, 1, '203.0.113.2')
  put(cluster, 2, '203.0.113.2')
  expect(overview.prepare(Number.POSITIVE_INFINITY)).toBe(false)
  put(cluster, 1, '203.0.113.3')
  cluster.remove(DNSEndpoint, 'team-2/host-2')
  expect(overview.prepare(Number.POSITIVE_INFINITY)).toBe(false)
  cluster.remove(DNSEndpoint, 'team-1/host-1')
  expect(step(before).hosts).toEqual([])
})

it('of more hosts that need somebody than are shown all are counted, also when those that are shown stay', () => {
  const cluster = memoryCluster()
  for (let index = 0; index < 150; index++)
    cluster.put(DNSLoadBalancer, {
      metadata: { namespace: 'ns', name: `c${index}` },
      spec: { DNSName: nameOf(index), ttl: 30 },
    })
  const { overview, step } = openOverview(cluster)
  const before = overview.state()
  expect(before.needsYou.map(({ host }) => host)).toEqual(Array.from({ length: 100 }, (_, index) => nameOf(index)))
  expect(before.needsYouTotal).toBe(150)
  // The last one is not shown, the first one is.
  cluster.remove(DNSLoadBalancer, 'ns/c149')
  const after = step(before)
  expect(after.needsYouTotal).toBe(149)
  cluster.remove(DNSLoadBalancer, 'ns/c0')
  expect(step(after).needsYou.map(({ host }) => host)).toEqual(
    Array.from({ length: 100 }, (_, index) => nameOf(index + 1)),
  )
})

it('a change that is on its way is no verdict, and needs somebody when it takes too long', () => {
  const cluster = memoryCluster()
  const putOf = (generation: number, observedGeneration: number) =>
    cluster.put(DNSEndpoint, {
      metadata: { namespace: 'shop', name: 'web', generation },
      spec: {
        endpoints: [{ dnsName: nameOf(1), recordType: 'A', targets: [`203.0.113.${generation}`], recordTTL: 60 }],
      },
      status: { observedGeneration },
    })
  putOf(1, 1)
  const { overview, time, step } = openOverview(cluster)
  let state = overview.state()
  putOf(2, 1)
  state = step(state)
  expect(state.hosts).toMatchObject([{ state: 'degraded', reason: 'ChangePending' }])
  expect([state.needsYou, state.lastHour]).toEqual([[], []])
  putOf(2, 2)
  state = step(state)
  expect(state.hosts).toMatchObject([{ state: 'as it should be' }])
  expect([state.needsYou, state.lastHour]).toEqual([[], []])
  putOf(3, 2)
  state = step(state)
  time.nowMs += 10_000
  expect(overview.isDue()).toBe(true)
  state = step(state)
  expect(state.needsYou).toMatchObject([{ severity: 'degraded', reason: 'ChangePending' }])
})

it('a host whose deletion is held stays with what it answers, also when nothing declares it any more', () => {
  const cluster = memoryCluster()
  put(cluster, 1, '203.0.113.1')
  put(cluster, 2, '203.0.113.2')
  const { overview, step } = openOverview(cluster)
  let state = overview.state()
  for (const index of [1, 2]) cluster.remove(DNSEndpoint, `team-${index}/host-${index}`)
  state = step(state)
  expect(state.hosts).toEqual([])
  const change = {
    name: `${nameOf(1)}.`,
    type: 'A',
    op: 'delete' as const,
    code: 'ShrinkBreakerOpen' as const,
    why: '2 of 2 sources are gone',
    source: 'u1',
    key: 'k1',
    since: START_MS,
    set: '7c1f0a2b',
  }
  overview.setHeld([{ scope: 'demo.test', change }], [])
  state = step(state)
  expect(state.hosts).toMatchObject([
    {
      name: nameOf(1),
      namespace: 'team-1',
      owner: 'DNSEndpoint team-1/host-1',
      state: 'degraded',
      at: 'plan',
      reason: 'ShrinkBreakerOpen',
      answers: [{ address: '203.0.113.1', share: 1, isHeld: true }],
    },
  ])
  expect(state.needsYou.map(({ id }) => id)).toEqual(['held/7c1f0a2b'])
  expect(overview.judge(nameOf(1))?.judged.view).toEqual(state.hosts[0])
  overview.setHeld([], [])
  expect(step(state).hosts).toEqual([])
})

const READY = ['Reachable', 'Ready'].map((type) => ({
  type,
  status: 'True' as const,
  reason: 'ClusterReady',
  message: '',
  lastTransitionTime: '2026-03-01T00:00:00Z',
}))

/** One root with a leaf and an endpoint on each of the clusters. */
function putFleet(cluster: MemoryCluster, count: number): void {
  const labels = { 'seamark.io/root-uid': 'u1' }
  cluster.put(GlobalIngress, {
    metadata: { namespace: 'shop', name: 'ingress-web' },
    spec: {
      rootRef: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'web', uid: 'u1' },
      hosts: [{ host: 'shop.demo.test' }],
      strategy: 'weighted',
      ttlSeconds: 30,
    },
    status: { answered: Array.from({ length: count }, (_, index) => `10.0.0.${index}`) },
  } as GlobalIngress)
  cluster.put(DNSLoadBalancer, {
    metadata: { namespace: 'shop', name: 'web' },
    spec: { DNSName: 'shop.demo.test', ttl: 30 },
  })
  for (let index = 0; index < count; index++) putMember(cluster, index, labels, true)
}

function putMember(cluster: MemoryCluster, index: number, labels: Record<string, string>, isHealthy: boolean): void {
  const name = `c${String(index).padStart(3, '0')}`
  cluster.put(Cluster, {
    metadata: { name },
    spec: { weight: 100 },
    status: { conditions: READY },
  } as unknown as Cluster)
  cluster.put(LeafIngress, {
    metadata: { namespace: 'shop', name: `leaf-${name}`, labels },
    spec: { cluster: name, manifests: [], specHash: '', lifecycle: 'Active' },
    status: { phase: 'Active', addresses: [{ type: 'IPAddress', value: `10.0.0.${index}` }] },
  } as unknown as LeafIngress)
  cluster.put(DNSLoadBalancerEndpoint, {
    metadata: { namespace: 'shop', name: `web-${name}`, labels: { ...labels, 'seamark.io/cluster': name } },
    spec: { loadbalancer: 'web', ipaddress: `10.0.0.${index}` },
    status: {
      active: isHealthy,
      healthy: isHealthy,
      conditions: [
        {
          type: 'Active',
          status: isHealthy ? 'True' : 'False',
          reason: isHealthy ? 'EndpointSelected' : 'EndpointUnhealthy',
          message: '',
          lastTransitionTime: '2026-03-01T00:00:00Z',
        },
      ],
    },
  } as unknown as DNSLoadBalancerEndpoint)
}

describe('a fleet', () => {
  it('of 100 clusters: each has its share of what DNS servers answered', () => {
    const cluster = memoryCluster()
    putFleet(cluster, 100)
    const { clusters, hosts } = openOverview(cluster).overview.state()
    expect(clusters).toHaveLength(100)
    expect(new Set(clusters.map(({ state, share, answeredHosts }) => `${state} ${share} ${answeredHosts}`))).toEqual(
      new Set(['Serving 0.01 1']),
    )
    expect(hosts).toMatchObject([{ name: 'shop.demo.test', by: 'fleet', answersFrom: 'asked', namespace: 'shop' }])
  })

  it('the numbers of a cluster follow the hosts that are counted', () => {
    const cluster = memoryCluster()
    putFleet(cluster, 2)
    put(cluster, 1, '10.0.0.1')
    const { overview } = openOverview(cluster)
    const numbers = (namespace: string) =>
      overview
        .clustersOf(
          (host) => host.namespace === namespace,
          (leaf) => leaf.namespace === namespace,
        )
        .map(({ hosts, answeredHosts, leaves, share }) => [hosts, answeredHosts, leaves, share])
    expect(numbers('shop')).toEqual([
      [1, 1, 1, 0.5],
      [1, 1, 1, 0.5],
    ])
    expect(numbers('team-1')).toEqual([
      [0, 0, 0, 0],
      [1, 1, 0, 1],
    ])
    expect(
      overview.clustersOf(
        () => true,
        () => true,
      ),
    ).toEqual(overview.state().clusters)
  })

  it('an address of a cluster is shown as such also where another host answers it', () => {
    const cluster = memoryCluster()
    putFleet(cluster, 2)
    put(cluster, 1, '10.0.0.1')
    cluster.put(DNSEndpoint, {
      metadata: {
        namespace: 'seamark',
        name: 'wildcard',
        annotations: { 'seamark.io/owned-by': 'Cluster/seamark/c000' },
      },
      spec: { endpoints: [{ dnsName: '*.c000.demo.test', recordType: 'A', targets: ['10.9.9.9'], recordTTL: 60 }] },
    })
    const { overview, step } = openOverview(cluster)
    const state = overview.state()
    const clusterOf = (shown: State, name: string) =>
      shown.hosts.find((host) => host.name === name)?.answers[0]?.cluster
    expect(clusterOf(state, nameOf(1))).toBe('c001')
    expect(clusterOf(state, '*.c000.demo.test')).toBe('c000')
    expect(state.clusters.map(({ answeredHosts }) => answeredHosts)).toEqual([2, 2])
    cluster.remove(LeafIngress, 'shop/leaf-c001')
    expect(clusterOf(step(state), nameOf(1))).toBeUndefined()
  })

  it('an address that was withdrawn may be in caches for the TTL, and then is not', () => {
    const cluster = memoryCluster()
    putFleet(cluster, 2)
    const { overview, time, step } = openOverview(cluster)
    const states = (state: State) => state.hosts[0]?.answers.map((answer) => `${answer.address} ${answer.state}`)
    let state = overview.state()
    expect(states(state)).toEqual(['10.0.0.0 answered', '10.0.0.1 answered'])
    putMember(cluster, 1, { 'seamark.io/root-uid': 'u1' }, false)
    const global = cluster.informers.get(GlobalIngress, 'shop/ingress-web') as GlobalIngress
    cluster.put(GlobalIngress, { ...global, status: { ...global.status, answered: ['10.0.0.0'] } })
    time.nowMs = START_MS + 5_000
    state = step(state)
    expect(states(state)).toEqual(['10.0.0.0 answered', '10.0.0.1 cached'])
    expect(state.hosts[0]?.answers[1]?.cachedUntil).toBe('2026-03-01T00:00:30.000Z')
    expect(state.clusters.map((each) => each.state)).toEqual(['Serving', 'Unhealthy'])
    expect(state.needsYou.find(({ id }) => id === 'cluster/c001')?.since).toBe('2026-03-01T00:00:05.000Z')
    expect(state.needsYou.map(({ id }) => id)).toContain('cluster/c001')
    expect(state.lastHour.map(({ what, cluster: name, host }) => `${what} ${name ?? host}`)).toEqual(
      expect.arrayContaining(['verdict c001', 'verified shop.demo.test']),
    )
    expect(overview.isDue()).toBe(false)
    time.nowMs = START_MS + 30_000
    expect(overview.isDue()).toBe(true)
    expect(states(step(state))).toEqual(['10.0.0.0 answered', '10.0.0.1 unhealthy'])
  })

  it('a held change is one line with its command, and the host says what holds it', () => {
    const cluster = memoryCluster()
    put(cluster, 1, '203.0.113.1')
    const { overview, step } = openOverview(cluster)
    const before = overview.state()
    const change = {
      name: `${nameOf(1)}.`,
      type: 'A',
      op: 'delete' as const,
      code: 'ShrinkBreakerOpen' as const,
      why: '13 of 21 sources are gone',
      source: 'u1',
      key: 'k1',
      since: START_MS,
      set: '7c1f0a2b',
    }
    overview.setHeld(
      [
        { scope: 'demo.test', change },
        { scope: 'demo.test', change: { ...change, name: 'x.demo.test.' } },
      ],
      [],
    )
    const after = step(before)
    expect(after.needsYou).toMatchObject([
      {
        id: 'held/7c1f0a2b',
        what: 'held',
        reason: 'ShrinkBreakerOpen',
        command: 'seamark approve 7c1f0a2b',
        zone: 'demo.test',
      },
    ])
    expect(after.hosts[0]).toMatchObject({
      state: 'degraded',
      at: 'plan',
      held: { reason: 'ShrinkBreakerOpen', command: 'seamark approve 7c1f0a2b' },
      answers: [{ isHeld: true }],
    })
    overview.setHeld([], [])
    expect(step(after).needsYou).toEqual([])
  })
})

describe('a certificate', () => {
  const HOST = 'tls.demo.test'
  const publish = {
    ...unified,
    sources: ['HTTPProxy'] as const,
    services: [{ service: 'projectcontour/envoy' }],
    defaultIssuerName: 'ca',
  }
  const ready = (status: 'True' | 'False', message = '') => [
    { type: 'Ready', status, message, lastTransitionTime: '2026-02-28T12:00:00Z' },
  ]
  const issued = { notAfter: '2026-03-03T00:00:00Z', renewalTime: '2026-02-28T00:00:00Z' }

  function open(status: Certificate['status']) {
    const cluster = memoryCluster()
    cluster.put(HTTPProxy, {
      metadata: {
        namespace: 'shop',
        name: 'web',
        uid: 'u-web',
        creationTimestamp: '2026-01-01T00:00:00Z',
        annotations: { 'kubernetes.io/tls-acme': 'true' },
      },
      spec: { virtualhost: { fqdn: HOST, tls: { secretName: 'web-tls' } } },
    })
    cluster.put(Service, {
      metadata: { namespace: 'projectcontour', name: 'envoy' },
      spec: { type: 'LoadBalancer' },
      status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
    })
    cluster.put(DNSEndpoint, {
      metadata: {
        namespace: 'shop',
        name: 'web',
        annotations: { 'seamark.io/owned-by': 'HTTPProxy/shop/web' },
        managedFields: [
          { manager: FIELD_MANAGER, operation: 'Apply', fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': {} } },
        ],
      },
      spec: { endpoints: [{ dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'], recordTTL: 60 }] },
    })
    const put = (now: NonNullable<Certificate['status']>) =>
      cluster.put(Certificate, {
        metadata: { namespace: 'shop', name: 'web' },
        spec: { dnsNames: [HOST], secretName: 'web-tls', issuerRef: { kind: 'ClusterIssuer', name: 'ca' }, usages: [] },
        status: now,
      })
    put(status ?? {})
    return { ...openOverview(cluster, { publish }), put }
  }

  it('that could not be issued, or renewed in time, needs somebody', () => {
    const needs = (status: Certificate['status']) => open(status).overview.state().needsYou
    const object = { kind: 'Certificate', namespace: 'shop', name: 'web' }
    const command = `seamark explain ${HOST}`
    expect(needs({ conditions: ready('False', 'the issuer is not found') })).toMatchObject([
      {
        what: 'failing',
        severity: 'degraded',
        reason: 'CertificateNotReady',
        object,
        since: '2026-02-28T12:00:00Z',
        command,
      },
    ])
    expect(needs({ conditions: ready('True'), ...issued, notAfter: '2026-03-01T12:00:00Z' })).toMatchObject([
      {
        what: 'expiring',
        severity: 'degraded',
        reason: 'CertificateExpiring',
        object,
        since: '2026-02-28T18:00:00.000Z',
        command,
      },
    ])
    expect(needs({ conditions: ready('True'), ...issued, notAfter: '2026-02-28T23:00:00Z' })).toMatchObject([
      {
        what: 'expiring',
        severity: 'broken',
        reason: 'CertificateExpiring',
        since: '2026-02-28T23:00:00.000Z',
        command,
      },
    ])
    expect(needs({ conditions: ready('True'), ...issued })).toEqual([])
  })

  it('expires by time alone, and is as it should be after it was renewed', () => {
    const { overview, time, step, put } = open({ conditions: ready('True'), ...issued })
    let state = overview.state()
    const at = (now: string) => {
      time.nowMs = Date.parse(now)
      expect(overview.isDue()).toBe(true)
      return (state = step(state)).needsYou.map(({ what, severity }) => `${what} ${severity}`)
    }
    expect(overview.isDue()).toBe(false)
    expect(at('2026-03-01T12:00:00Z')).toEqual(['expiring degraded'])
    expect(at('2026-03-03T00:00:00Z')).toEqual(['expiring broken'])
    put({ conditions: ready('True'), notAfter: '2026-06-01T00:00:00Z', renewalTime: '2026-05-01T00:00:00Z' })
    expect(step(state).needsYou).toEqual([])
  })
})
