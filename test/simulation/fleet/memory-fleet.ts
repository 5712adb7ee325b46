/**
 * A simulated fleet on in-memory clusters: the whole manager with the fleet, no API server, no connection. A run takes
 * milliseconds, so that every write of a scenario can be a place to crash.
 *
 * What it leaves out is tested on API servers (fleet.test.ts): caches here are never behind, and balance is a stand-in that
 * publishes the healthy endpoints a second after a change.
 * Guarantee: the same scenario and crash give the same run. What faults do is in memory-faults.ts.
 */
import { type Client, type Clock, Ingress, IngressClass, messageOf, Namespace, Secret, Service } from '@seamark/kube'
import { type Kind, keyOf, type Obj } from '@seamark/kube/object'
import { memoryCluster, type MemoryCluster } from '@seamark/kube/testing'
import {
  Cluster,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  FleetConfig,
  GlobalIngress,
  GlobalIngressPolicy,
  HostClaim,
  LeafIngress,
  runApp,
} from '@seamark/operator'
import { maskIds, MEMBERS, NAMESPACES, type Partition, policyOf, rootOf, type SimulatedFleet } from './actions.ts'
import { maskObject } from '../mask.ts'
import { type Crash, type Life, MemoryFaults } from './memory-faults.ts'
import { memberKubeconfig } from './memory-member.ts'
import type { Write } from '../scenario.ts'
import type { Run } from '../simulation.ts'
import { VirtualClock } from '../virtual-clock.ts'

const RESTART_MS = 1_000
const PUBLISH_MS = 1_000
const POLL_MS = 1_000
const REST_STEP_MS = 20_000
const LIMIT_MS = 60 * 60_000
/** A manager that has not written for this long has come to rest: longer than any of its waits in these scenarios. */
export const MEMORY_REST_MS = 2 * 60_000

/** Kinds whose state at the end is compared. */
const HUB_KINDS: readonly Kind[] = [
  Cluster,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  GlobalIngress,
  HostClaim,
  Ingress,
  LeafIngress,
]

export class MemoryFleet implements SimulatedFleet {
  readonly client: Client
  readonly health: SimulatedFleet['health']
  readonly #clock = new VirtualClock()
  readonly #hub = memoryCluster('hub', 'contour-plus', this.#clock)
  readonly #members = new Map(
    Object.keys(MEMBERS).map((name) => [name, memoryCluster(name, 'contour-plus', this.#clock)]),
  )
  readonly #faults: MemoryFaults
  readonly #unhealthy = new Set<string>()
  readonly #history: Write[] = []
  readonly #violations: Run['violations'][number][] = []
  readonly #ends: string[] = []
  #life: Life | undefined
  #lastWriteMs = 0
  #published: readonly string[] = []
  #isPublishing = false

  constructor(crash: Crash | undefined, { clusters = ['eu1', 'us1'], hasRival = false } = {}) {
    this.#faults = new MemoryFaults(this.#clock, crash, () => this.#restart())
    this.client = this.#userClient(this.#hub)
    this.health = {
      set: (address, verdict) => {
        if (verdict === 'unhealthy') this.#unhealthy.add(address)
        else this.#unhealthy.delete(address)
        this.#publishSoon()
      },
    }
    this.#prepare(clusters, hasRival)
    for (const kind of HUB_KINDS) this.#record(this.#hub, kind, kind.kind, '')
    for (const [name, member] of this.#members) this.#record(member, Ingress, 'Leaf', `${name}/`)
    for (const kind of [DNSLoadBalancer, DNSLoadBalancerEndpoint])
      this.#hub.informers.informer<Obj>(kind).subscribe(() => this.#publishSoon())
  }

  run(): AsyncDisposable {
    this.#start()
    return {
      [Symbol.asyncDispose]: async () => {
        for (let waitedMs = 0; this.#quietMs() < MEMORY_REST_MS && waitedMs < LIMIT_MS; waitedMs += REST_STEP_MS)
          await this.pass(REST_STEP_MS)
        this.#kill()
      },
    }
  }

  /** Numbers of the writes that no server got. */
  get undelivered(): ReadonlySet<number> {
    return this.#faults.undelivered
  }

  member(name: string): Client {
    return this.#userClient(this.#memberOf(name))
  }

  partition(name: string, how: Partition): () => void {
    return this.#faults.partition(name === 'hub' ? this.#hub : this.#memberOf(name), how)
  }

  async pass(ms: number): Promise<void> {
    await this.#clock.advance(ms)
  }

  async published(): Promise<readonly string[]> {
    return this.#published
  }

  async eventually(what: string, isSo: () => Promise<boolean>): Promise<void> {
    for (let waitedMs = 0; !(await isSo()); waitedMs += POLL_MS) {
      if (waitedMs >= LIMIT_MS) throw new Error(`never: ${what}`)
      await this.pass(POLL_MS)
    }
  }

  /** What became of the run; `failure` is what the scenario found wrong. */
  result(failure: string | undefined): Run {
    this.#kill()
    const hub = HUB_KINDS.flatMap((kind) =>
      this.#hub.informers
        .list(kind)
        .map((object): [string, string] => [
          maskIds(`${kind.kind} ${keyOf(object)}`),
          maskIds(maskObject(object as Obj)),
        ]),
    )
    const leaves = [...this.#members].map(([name, { informers }]): [string, string] => [
      `leaves on ${name}`,
      informers.list(Ingress).map(keyOf).sort().join(', '),
    ])
    const count = this.#history.length
    return {
      extent: { sentWrites: this.#faults.sentWrites, lists: 0, events: 0, writes: count },
      history: this.#history,
      endState: new Map([...hub, ...leaves]),
      violations: this.#violations,
      quietMs: this.#quietMs(),
      failure: failure === undefined ? undefined : [failure, ...new Set(this.#ends)].join('; the manager ended: '),
    }
  }

  #prepare(clusters: readonly string[], hasRival: boolean): void {
    for (const name of ['kube-system', 'manager', ...NAMESPACES])
      this.#hub.put(Namespace, { metadata: { name, uid: `hub-${name}` } })
    this.#hub.put(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
    for (const [name, member] of this.#members) {
      for (const namespace of ['kube-system', ...NAMESPACES])
        member.put(Namespace, { metadata: { name: namespace, uid: `${name}-${namespace}` } })
      for (const namespace of NAMESPACES)
        member.put(Service, { metadata: { namespace, name: 'web' }, spec: { ports: [{ port: 80 }] } })
      this.#hub.put(Secret, {
        metadata: { namespace: 'manager', name, labels: { 'seamark.io/cluster': name } },
        data: { kubeconfig: Buffer.from(memberKubeconfig(name)).toString('base64') },
      })
      this.#hub.put(Cluster, { metadata: { name }, spec: { weight: 100, namespacePolicy: 'Require' } })
    }
    this.#hub.put(GlobalIngressPolicy, policyOf(clusters))
    const roots = [rootOf('shop', 'shop'), ...(hasRival ? [rootOf('other', 'rival')] : [])]
    for (const [index, { metadata, spec }] of roots.entries()) {
      const creationTimestamp = `2029-12-31T00:00:0${index}Z`
      this.#hub.put(Ingress, {
        metadata: { ...metadata, uid: `root-${metadata.name}`, creationTimestamp },
        ...(spec !== undefined && { spec }),
      })
    }
  }

  #memberOf(name: string): MemoryCluster {
    const member = this.#members.get(name)
    if (member === undefined) throw new Error(`no cluster ${name}`)
    return member
  }

  #start(): void {
    const life: Life = { isDead: false, stop: new AbortController(), ends: [] }
    this.#life = life
    const clock: Clock = {
      now: () => this.#clock.now(),
      monotonic: () => this.#clock.monotonic(),
      after: (ms, task) => this.#clock.after(ms, () => (life.isDead ? undefined : task())),
    }
    runApp(
      {
        cluster: this.#faults.connect(this.#hub, life),
        connectMember: (_config, options) => this.#faults.connect(this.#memberOf(options?.name ?? ''), life),
        clock,
        namespace: 'manager',
        mode: 'enforce',
        hasPause: false,
        fleet: { ...FleetConfig.parse({}), verifyDns: false },
      },
      life.stop.signal,
    ).catch((error: unknown) => {
      if (!life.isDead) this.#ends.push(messageOf(error))
    })
  }

  #kill(): void {
    const life = this.#life
    if (life === undefined || life.isDead) return
    life.isDead = true
    for (const end of life.ends) end()
    life.stop.abort()
  }

  /** The process dies, and another one starts. */
  #restart(): void {
    this.#kill()
    this.#clock.after(RESTART_MS, () => this.#start())
  }

  /** Requests of users never fail. The deletion of a namespace deletes what is in it, in parallel. */
  #userClient(cluster: MemoryCluster): Client {
    const { client } = cluster
    return {
      ...client,
      delete: async (kind, key, options) => {
        this.#clock.activity += 1
        if (kind.kind !== 'Namespace') return client.delete(kind, key, options)
        this.#faults.endingNamespaces.add(key)
        for (const each of HUB_KINDS)
          for (const object of cluster.informers.list(each, key)) await client.delete(each, keyOf(object))
        const end = (): void => {
          const isEmpty = HUB_KINDS.every((each) => cluster.informers.list(each, key).length === 0)
          if (isEmpty) cluster.remove(Namespace, key)
          else this.#clock.after(RESTART_MS, end)
        }
        return end()
      },
    }
  }

  #quietMs(): number {
    return this.#clock.monotonic() - this.#lastWriteMs
  }

  #record(cluster: MemoryCluster, kind: Kind, name: string, prefix: string): void {
    cluster.informers.informer(kind).subscribe((change) => {
      if (change.type === 'added' && change.initial) return
      const type = change.type === 'added' ? 'create' : change.type === 'updated' ? 'update' : 'delete'
      const key = maskIds(`${prefix}${keyOf(change.object)}`)
      this.#lastWriteMs = this.#clock.monotonic()
      const index = this.#history.length + 1
      this.#history.push({ index, type, kind: name, key, before: undefined, after: undefined, isByController: true })
      if (name !== 'Leaf' || type !== 'delete') return
      const { status } = change.object as Ingress
      const addresses = (status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip ?? '')
      if (addresses.some((address) => this.#published.includes(address)))
        this.#violate(`${key} was deleted while DNS answers it`)
    })
  }

  #violate(message: string): void {
    this.#violations.push({ invariant: 'DNS', write: this.#history.length, message })
  }

  #publishSoon(): void {
    if (this.#isPublishing) return
    this.#isPublishing = true
    this.#clock.after(PUBLISH_MS, () => {
      this.#isPublishing = false
      this.#publish()
    })
  }

  /** Healthy endpoints that do not drain; else healthy ones; else those of before. */
  #publish(): void {
    const endpoints = this.#hub.informers.list(DNSLoadBalancerEndpoint)
    const balancers = new Set(this.#hub.informers.list(DNSLoadBalancer).map(keyOf))
    const balancerOf = ({ metadata, spec }: (typeof endpoints)[number]) => `${metadata.namespace}/${spec.loadbalancer}`
    const published = new Set<string>()
    for (const balancer of new Set(endpoints.map(balancerOf))) {
      const group = endpoints.filter((endpoint) => balancerOf(endpoint) === balancer)
      const healthy = group.filter(({ spec }) => !this.#unhealthy.has(spec.ipaddress ?? ''))
      const offered = healthy.filter(({ spec }) => spec.drain !== true)
      const last = group.filter(({ status }) => status?.active === true)
      const chosen = offered.length > 0 ? offered : healthy.length > 0 ? healthy : last
      for (const endpoint of group) {
        const active = balancers.has(balancer) && chosen.includes(endpoint)
        if (active) published.add(endpoint.spec.ipaddress ?? '')
        const status = { active, healthy: healthy.includes(endpoint) }
        if (endpoint.status?.active !== active || endpoint.status.healthy !== status.healthy)
          this.#hub.put(DNSLoadBalancerEndpoint, { ...(endpoint as DNSLoadBalancerEndpoint), status })
      }
    }
    const root = this.#hub.informers.get(Ingress, 'shop/shop')
    const isLive = root !== undefined && root.metadata.deletionTimestamp === undefined
    if (published.size === 0 && this.#published.length > 0 && isLive) this.#violate('the root has no address in DNS')
    this.#published = [...published].sort()
  }
}
