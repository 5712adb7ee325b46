/**
 * The fleet: planning, the cost of one change with few and many roots, writes of a steady state, the way of a change to its
 * members while one of them does not answer, and memory.
 */
import { createApiServer, newToken, writeKubeconfig } from '@seamark/apiserver'
import {
  type Client,
  type Cluster as Connection,
  configFromText,
  connect,
  CustomResourceDefinition,
  Ingress,
  IngressClass,
  manager,
  Namespace,
  Secret,
  Service,
} from '@seamark/kube'
import { parseScenario, playFleet } from '@seamark/cli/testing'
import { memoryCluster, type MemoryCluster, startRelay } from '@seamark/kube/testing'
import {
  Cluster,
  DEFAULT_POLICY,
  FleetConfig,
  fleetCrds,
  LeafIngress,
  loadBalancerCrds,
  playgroundCrds,
  runApp,
} from '@seamark/operator'
import { ingressRoot, planRoot, proberInThisThread } from '@seamark/operator/testing'
import { answerAsMember, memberKubeconfig } from '../simulation/fleet/memory-member.ts'
import { VirtualClock } from '../simulation/virtual-clock.ts'
import type { Figure } from './figure.ts'
import { residentBytes } from './resident.ts'

const clusterOf = (index: number): Cluster => ({
  metadata: { name: `c${index}`, labels: { tier: 'prod' } },
  spec: { weight: 100, namespacePolicy: 'Require' },
  status: {
    servedKinds: ['Ingress'],
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'ClusterReady',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  },
})

const rootOf = (index: number, namespace = 'shop'): Ingress => ({
  metadata: { name: `root-${index}`, namespace, uid: `uid-${index}` },
  spec: {
    ingressClassName: 'global',
    rules: [
      {
        host: `host-${index}.example.com`,
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
        },
      },
    ],
  },
})

const seconds = (sinceMs: number): number => (performance.now() - sinceMs) / 1000

function plan(clusters: readonly Cluster[], root: Ingress) {
  return planRoot({
    root,
    kind: ingressRoot,
    policy: DEFAULT_POLICY,
    ownedHosts: [root.spec?.rules?.[0]?.host ?? ''],
    clusters,
    backendOf: () => ({ state: 'present' }),
    labelledClusters: undefined,
    previous: undefined,
    leaves: new Map(),
    hubId: 'hub',
    hubUid: 'hub',
    allowedAnnotations: [],
    canPublish: true,
    nowMs: 0,
  }).leaves
}

async function measurePlan(): Promise<number> {
  const clusters = Array.from({ length: 100 }, (_, index) => clusterOf(index))
  const roots = Array.from({ length: 1000 }, (_, index) => rootOf(index))
  const start = performance.now()
  let leaves = 0
  for (const root of roots) leaves += plan(clusters, root).length
  if (leaves !== 100_000) throw new Error(`${leaves} leaves`)
  return seconds(start)
}

interface Server {
  readonly client: Client
  readonly kubeconfig: string
  close(): Promise<void>
}

async function startServer(definitions: readonly object[]): Promise<Server> {
  const token = newToken()
  const tokens = new Map([[token, { name: 'admin', groups: ['system:masters'] }]])
  const server = createApiServer({ anonymous: 'refused', tokens })
  const { url, caPem = '' } = await server.listen({ tls: 'self-signed' })
  const kubeconfig = writeKubeconfig({ server: url, caPem, token })
  const connection = connect(configFromText(kubeconfig), { fieldManager: 'bench' })
  for (const definition of definitions)
    await connection.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
  return {
    client: connection.client,
    kubeconfig,
    close: async () => {
      await connection.close()
      await server.close()
    },
  }
}

interface TestEnvironment {
  readonly hub: Server
  readonly members: readonly Server[]
  close(): Promise<void>
}

const POLL_MS = 5

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const start = performance.now()
  while (!(await isSo())) {
    if (seconds(start) > 300) throw new Error(`${what} takes more than 300 s`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

async function startEnvironment(
  memberCount: number,
  reach: (kubeconfig: string, index: number) => Promise<string> = async (text) => text,
): Promise<TestEnvironment> {
  const hub = await startServer([...fleetCrds(), ...loadBalancerCrds(), ...playgroundCrds()])
  const members = await Promise.all(Array.from({ length: memberCount }, async () => startServer([])))
  for (const name of ['manager', 'shop']) await hub.client.create(Namespace, { metadata: { name } })
  await hub.client.create(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
  const kubeconfigs = await Promise.all(members.map(async ({ kubeconfig }, index) => reach(kubeconfig, index)))
  for (const [index, kubeconfig] of kubeconfigs.entries()) {
    await hub.client.create(Secret, {
      metadata: { namespace: 'manager', name: `m${index}`, labels: { 'seamark.io/cluster': `m${index}` } },
      data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
    })
    await hub.client.create(Cluster, { metadata: { name: `m${index}` } } as Cluster)
  }
  for (const { client } of members) {
    await client.create(Namespace, { metadata: { name: 'shop' } })
    await client.create(Service, { metadata: { namespace: 'shop', name: 'web' }, spec: { ports: [{ port: 80 }] } })
  }
  const cluster = connect(configFromText(hub.kubeconfig), { name: 'hub', fieldManager: 'contour-plus' })
  const stopping = new AbortController()
  const running = runApp(
    {
      cluster,
      namespace: 'manager',
      mode: 'enforce',
      allowLoopback: true,
      fleet: { ...FleetConfig.parse({}), dns: false },
    },
    stopping.signal,
  )
  running.catch(() => undefined)
  await until('registration', async () => {
    const { items } = await hub.client.list(Cluster)
    const ready = items.filter(({ status }) =>
      status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
    )
    return ready.length >= memberCount
  })
  return {
    hub,
    members,
    close: async () => {
      stopping.abort()
      await running
      await cluster.close()
      await Promise.all([hub, ...members].map(async (server) => server.close()))
    },
  }
}

/** Creates roots and waits until each has a leaf with a phase on every member. */
async function addRoots(
  environment: TestEnvironment,
  from: number,
  to: number,
  annotations: Record<string, string> = {},
): Promise<void> {
  for (let index = from; index < to; index += 50)
    await Promise.all(
      Array.from({ length: Math.min(50, to - index) }, async (_, offset) => {
        const { metadata, ...rest } = rootOf(index + offset)
        const { uid: _uid, ...own } = metadata
        await environment.hub.client.create(Ingress, { metadata: { ...own, annotations }, ...rest })
      }),
    )
  await until(`${to} roots`, async () => {
    const { items } = await environment.hub.client.list(Ingress, {
      limit: 500,
      namespace: 'shop',
      fieldSelector: `metadata.name=root-${to - 1}`,
    })
    const isPlanned = items.every(({ metadata }) => metadata.annotations?.['seamark.io/summary'] !== undefined)
    if (!isPlanned || annotations['seamark.io/clusters'] !== undefined) return isPlanned
    const leaves = await environment.hub.client.list(LeafIngress)
    return (
      leaves.items.length >= to * environment.members.length &&
      leaves.items.every(({ status }) => status?.phase === 'Applied')
    )
  })
}

/** From a change of a root to its leaf on each of the members, seconds. */
async function changeRoot(environment: TestEnvironment, index: number, path: string): Promise<number> {
  const start = performance.now()
  await environment.hub.client.patch(Ingress, `shop/root-${index}`, 'json', [
    { op: 'replace', path: '/spec/rules/0/http/paths/0/path', value: path },
  ])
  await Promise.all(
    environment.members.map(async ({ client }) =>
      until(
        'the change',
        async () => (await client.find(Ingress, `shop/root-${index}`))?.spec?.rules?.[0]?.http?.paths[0]?.path === path,
      ),
    ),
  )
  return seconds(start)
}

async function measureSync(): Promise<number> {
  const relays: Awaited<ReturnType<typeof startRelay>>[] = []
  const environment = await startEnvironment(10, async (kubeconfig, index) => {
    if (index > 0) return kubeconfig
    const port = /https:\/\/127\.0\.0\.1:(\d+)/.exec(kubeconfig)?.[1] ?? ''
    const relay = await startRelay(Number(port))
    relays.push(relay)
    return kubeconfig.replace(`127.0.0.1:${port}`, `127.0.0.1:${relay.port}`)
  })
  try {
    await addRoots(environment, 0, 20)
    for (const relay of relays) relay.freeze()
    const reachable = { ...environment, members: environment.members.slice(1) }
    const times: number[] = []
    for (let change = 0; change < 100; change++) times.push(await changeRoot(reachable, change % 20, `/v${change}`))
    return times.sort((a, b) => a - b)[98] ?? Number.NaN
  } finally {
    for (const relay of relays) await relay.close()
    await environment.close()
  }
}

/** 4 000 leaves converge in less than half a minute; SEAMARK_STEADY=100x1000 tries another size. */
const [STEADY_CLUSTERS = 0, STEADY_ROOTS = 0] = (process.env['SEAMARK_STEADY'] ?? '20x200').split('x').map(Number)
const MINUTE_MS = 60_000
/** Without a write for this long the fleet has converged. */
const REST_MS = MINUTE_MS
const CONVERGE_LIMIT_MS = 60 * MINUTE_MS

/** A manager that leads, its hub and its members in memory and in virtual time; counts writes other than Events and Leases. */
class MemoryEnvironment {
  readonly clock = new VirtualClock()
  readonly hub = memoryCluster('hub', 'contour-plus', this.clock)
  readonly members = new Map<string, MemoryCluster>()
  writes = 0
  #lastWriteMs = 0

  constructor() {
    this.hub.put(Namespace, { metadata: { name: 'kube-system', uid: 'hub' } })
    this.hub.put(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
    for (let index = 0; index < STEADY_CLUSTERS; index++) this.#addMember(`m${index}`, `192.0.2.${index}`)
    for (let index = 0; index < STEADY_ROOTS; index++) this.hub.put(Ingress, rootOf(index))
  }

  #addMember(name: string, address: string): void {
    const member = memoryCluster(name, 'contour-plus', this.clock)
    member.put(Namespace, { metadata: { name: 'kube-system', uid: name } })
    member.put(Service, { metadata: { namespace: 'shop', name: 'web' }, spec: { ports: [{ port: 80 }] } })
    this.members.set(name, member)
    this.hub.put(Secret, {
      metadata: { namespace: 'manager', name, labels: { 'seamark.io/cluster': name } },
      data: { kubeconfig: Buffer.from(memberKubeconfig(name)).toString('base64') },
    })
    const ingress = { addressOverride: [address] }
    this.hub.put(Cluster, { metadata: { name }, spec: { weight: 100, namespacePolicy: 'Require', ingress } })
  }

  connect(cluster: MemoryCluster): Connection {
    cluster.intercept = ({ verb, kind }) => {
      this.clock.activity += 1
      cluster.requests.length = 0
      if (verb === 'get' || verb === 'list' || /^(Event|Lease)\./.test(kind)) return
      this.writes += 1
      this.#lastWriteMs = this.clock.monotonic()
    }
    return { ...cluster, client: { ...cluster.client, request: async ({ path }) => answerAsMember(path) } }
  }

  async converge(): Promise<void> {
    // What is loaded at the first use takes real time, which virtual time does not wait for.
    await until('the first write', async () => {
      await this.clock.advance(100)
      return this.writes > 0
    })
    while (this.clock.monotonic() - this.#lastWriteMs < REST_MS) {
      if (this.clock.monotonic() > CONVERGE_LIMIT_MS) throw new Error('the fleet does not come to rest')
      await this.clock.advance(5_000)
    }
    const active = this.hub.informers.list(LeafIngress).filter(({ status }) => status?.phase === 'Active')
    if (active.length !== STEADY_CLUSTERS * STEADY_ROOTS) throw new Error(`${active.length} leaves are Active`)
  }

  /** As if every watch had been lost: every object is reported again. */
  relist(): void {
    for (const cluster of [this.hub, ...this.members.values()]) cluster.relist()
  }
}

/**
 * Ten minutes with contacts every 10 s, renewals of the lease, a sweep of every member, and two complete relists of hub and
 * members.
 */
async function measureSteady(): Promise<number> {
  // Loads what a manager loads at its first use: real time must not pass in virtual time.
  await manager({ config: configFromText(memberKubeconfig('none')) })
  const environment = new MemoryEnvironment()
  const stopping = new AbortController()
  const running = runApp(
    {
      cluster: environment.connect(environment.hub),
      connectMember: (_config, options) =>
        environment.connect(environment.members.get(options?.name ?? '') ?? environment.hub),
      clock: environment.clock,
      namespace: 'manager',
      mode: 'enforce',
      leader: { lease: 'seamark', namespace: 'manager' },
      fleet: { ...FleetConfig.parse({}), dns: false },
    },
    stopping.signal,
  )
  running.catch(() => undefined)
  await environment.converge()
  const before = environment.writes
  for (const minutes of [2, 5, 3]) {
    await environment.clock.advance(minutes * MINUTE_MS)
    if (minutes !== 3) environment.relist()
  }
  stopping.abort()
  return environment.writes - before
}

async function measureGrowth(): Promise<number> {
  const environment = await startEnvironment(1)
  const cost = async (): Promise<number> => {
    const before = process.cpuUsage()
    for (let change = 0; change < 40; change++) await changeRoot(environment, change, `/g${Math.random()}`)
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  try {
    await addRoots(environment, 0, 100)
    await cost()
    const few = await cost()
    // Without leaves: a member takes 20 writes a second, and the roots are what the cost could depend on.
    await addRoots(environment, 100, 10_000, { 'seamark.io/clusters': 'none' })
    await cost()
    return (await cost()) / few
  } finally {
    await environment.close()
  }
}

const WEB_ROOT = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { namespace: 'shop', name: 'shop' },
  spec: {
    ingressClassName: 'global',
    rules: [
      {
        host: 'shop.fleet.test',
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
        },
      },
    ],
  },
}

const policyOn = (clusters: readonly string[]) => ({
  apiVersion: 'seamark.io/v1alpha1',
  kind: 'GlobalIngressPolicy',
  metadata: { namespace: 'shop', name: 'shop' },
  spec: {
    targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
    placement: { clusters },
    traffic: { ttlSeconds: 5 },
    health: { port: 'GATEWAY_PORT', intervalSeconds: 1, timeoutSeconds: 1, rise: 2, fall: 3 },
    migration: { drainSeconds: 5 },
  },
})

/** A client sends each request to one address of the answer, which it keeps for its TTL, and tries no other. */
async function measureDrain(): Promise<number> {
  const host = 'shop.fleet.test'
  const { sent, failed } = await playFleet(
    parseScenario({
      title: 'drain and move',
      clusters: ['eu1', 'us1', 'ap1'],
      steps: [
        { deploy: 'shop/web' },
        { apply: [policyOn(['eu1', 'us1']), WEB_ROOT] },
        { expect: { answers: { [host]: ['eu1', 'us1'] } } },
        { requests: { host, perSecond: 10, tries: 'one' } },
        { drain: 'us1' },
        { expect: { leaves: { 'shop/shop': 'eu1 Active' }, answers: { [host]: ['eu1'] } } },
        { apply: [policyOn(['ap1'])] },
        { expect: { leaves: { 'shop/shop': 'ap1 Active' }, answers: { [host]: ['ap1'] } } },
        { requests: 'end' },
      ],
    }),
    { line: () => undefined },
    new AbortController().signal,
    proberInThisThread(1),
  )
  if (sent < 100) throw new Error(`only ${sent} requests were sent`)
  return failed
}

/** The LeafIngresses of 1 000 roots on 100 clusters, as a cache has them. */
async function measureMemory(): Promise<number> {
  const clusters = Array.from({ length: 100 }, (_, index) => clusterOf(index))
  const leaves: unknown[] = []
  for (let index = 0; index < 1000; index++) {
    for (const leaf of plan(clusters, rootOf(index)))
      leaves.push(
        JSON.parse(
          JSON.stringify({
            metadata: { name: leaf.name, namespace: 'shop', uid: `${index}` },
            spec: leaf.spec,
            status: { phase: 'Active', addresses: [{ type: 'IPAddress', value: '192.0.2.1' }] },
          }),
        ),
      )
  }
  globalThis.gc?.()
  const bytes = residentBytes('VmRSS')
  if (leaves.length !== 100_000) throw new Error(`${leaves.length} leaves`)
  return bytes / 2 ** 20
}

export const figures: Figure[] = [
  {
    name: 'fleet.plan',
    what: '100 clusters × 1 000 roots planned',
    unit: 's',
    bound: { max: 1 },
    against: '-',
    measure: measurePlan,
  },
  {
    name: 'fleet.growth',
    what: 'CPU of one root change with 10 000 roots ÷ with 100',
    unit: 'ratio',
    bound: { max: 1.2 },
    against: '100 roots',
    runs: 1,
    measure: measureGrowth,
  },
  {
    name: 'fleet.steady.writes',
    what: 'writes to hub and members in 10 min of steady state, 200 roots on 20 clusters, with contacts, lease renewals, sweeps and two complete relists, in virtual time',
    unit: 'writes',
    bound: { max: 0 },
    against: '-',
    runs: 1,
    measure: measureSteady,
  },
  {
    name: 'fleet.sync',
    what: 'root change → applied on every reachable member, p99 of 100, 10 members, one black-holed',
    unit: 's',
    bound: { max: 2 },
    against: '-',
    runs: 1,
    measure: measureSync,
  },
  {
    name: 'fleet.drain.failed',
    what: 'failed requests while a cluster is drained and while a host moves: 10 requests/s, a resolver that honours the TTL',
    unit: 'requests',
    bound: { max: 0 },
    against: '-',
    runs: 1,
    measure: measureDrain,
  },
  {
    name: 'fleet.memory',
    what: 'resident with 100 000 leaves as objects',
    unit: 'MB',
    bound: { max: 1024 },
    against: '-',
    runs: 1,
    measure: measureMemory,
  },
]
