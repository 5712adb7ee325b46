/**
 * A large fleet in memory and in virtual time: a manager that leads, its hub and any number of members, with every root on every
 * member. Counts the writes to hub and members, other than Events and Leases.
 *
 * Place in the flow: the steady state of a fleet, as a test with few members and as a figure with a hundred. Balance is a stand-in
 * that publishes every endpoint; DNS servers are not asked. Faults and crashes are simulated by memory-fleet.ts.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  type Cluster as Connection,
  configFromText,
  Ingress,
  IngressClass,
  manager,
  Namespace,
  Secret,
  Service,
} from '@seamark/kube'
import { memoryCluster, type MemoryCluster } from '@seamark/kube/testing'
import { Cluster, DNSLoadBalancerEndpoint, FleetConfig, LeafIngress, runApp } from '@seamark/operator'
import { keyOf } from '@seamark/kube/object'
import { VirtualClock } from '../virtual-clock.ts'
import { answerAsMember, memberKubeconfig } from './memory-member.ts'

export interface LargeFleetSize {
  readonly members: number
  readonly roots: number
}

const MINUTE_MS = 60_000
/** Without a write for this long the fleet has converged. */
const REST_MS = MINUTE_MS
const CONVERGE_LIMIT_MS = 60 * MINUTE_MS
const PUBLISH_MS = 1_000
const STEP_MS = 5_000
const FIRST_STEP_MS = 100
/** Real time. */
const POLL_MS = 5
const TRACE = 'tracing:seamark:kube:reconcile:start'

/** Loads what a manager loads at its first use: real time must not pass in virtual time. Call it before the first fleet. */
export async function loadManager(): Promise<void> {
  await manager({ config: configFromText(memberKubeconfig('none')) })
}

export class LargeFleet implements AsyncDisposable {
  readonly clock = new VirtualClock()
  readonly hub = memoryCluster('hub', 'contour-plus', this.clock)
  readonly members = new Map<string, MemoryCluster>()
  /** Sent so far. */
  writes = 0
  /** Reconciles of roots so far. */
  rootReconciles = 0
  readonly #size: LargeFleetSize
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  #failure: Error | undefined
  #lastWriteMs = 0

  constructor(size: LargeFleetSize) {
    this.#size = size
    this.hub.put(Namespace, { metadata: { name: 'kube-system', uid: 'hub' } })
    this.hub.put(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
    for (let index = 0; index < size.members; index++) this.#addMember(`m${index}`, `192.0.2.${index}`)
    for (let index = 0; index < size.roots; index++) this.hub.put(Ingress, rootOf(index))
    this.#publishEndpoints()
    subscribe(TRACE, this.#count)
    this.#running = this.#start().catch((error: unknown) => {
      this.#failure = new Error('the manager ended', { cause: error })
    })
  }

  /** Until nothing was written for a minute. Throws unless every leaf is Active then. */
  async converge(): Promise<void> {
    // What is loaded at the first use takes real time, which virtual time does not wait for.
    while (this.writes === 0 && this.#failure === undefined) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      await this.clock.advance(FIRST_STEP_MS)
    }
    while (this.clock.monotonic() - this.#lastWriteMs < REST_MS) {
      if (this.#failure !== undefined) throw this.#failure
      if (this.clock.monotonic() > CONVERGE_LIMIT_MS) throw new Error('the fleet does not come to rest')
      await this.clock.advance(STEP_MS)
    }
    const { members, roots } = this.#size
    const active = this.hub.informers.list(LeafIngress).filter(({ status }) => status?.phase === 'Active')
    if (active.length !== members * roots) throw new Error(`${active.length} of ${members * roots} leaves are Active`)
  }

  /** Ten minutes with contacts every 10 s, renewals of the lease, a sweep of every member, and two complete relists. */
  async passTenMinutes(): Promise<void> {
    for (const minutes of [2, 5, 3]) {
      await this.clock.advance(minutes * MINUTE_MS)
      if (minutes !== 3) this.#relist()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    unsubscribe(TRACE, this.#count)
    this.#stopping.abort()
    await this.clock.advance(MINUTE_MS)
    await this.#running
  }

  readonly #count = (message: unknown): void => {
    if ((message as { controller?: string }).controller === 'fleet-ingresses') this.rootReconciles += 1
  }

  async #start(): Promise<void> {
    return runApp(
      {
        cluster: this.#connect(this.hub),
        connectMember: (_config, options) => this.#connect(this.members.get(options?.name ?? '') ?? this.hub),
        clock: this.clock,
        namespace: 'manager',
        mode: 'enforce',
        leader: { lease: 'seamark', namespace: 'manager' },
        fleet: { ...FleetConfig.parse({}), verifyDns: false },
      },
      this.#stopping.signal,
    )
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

  /** As balance reports an endpoint that is healthy and answered, a second after it appeared. */
  #publishEndpoints(): void {
    const unpublished = new Set<string>()
    const publish = (): void => {
      for (const key of unpublished) {
        const endpoint = this.hub.informers.get(DNSLoadBalancerEndpoint, key) as DNSLoadBalancerEndpoint | undefined
        if (endpoint !== undefined)
          this.hub.put(DNSLoadBalancerEndpoint, { ...endpoint, status: { active: true, healthy: true } })
      }
      unpublished.clear()
    }
    this.hub.informers.informer(DNSLoadBalancerEndpoint).subscribe((change) => {
      if (change.type === 'deleted' || change.object.status !== undefined) return
      if (unpublished.size === 0) this.clock.after(PUBLISH_MS, publish)
      unpublished.add(keyOf(change.object))
    })
  }

  #connect(cluster: MemoryCluster): Connection {
    cluster.intercept = ({ verb, kind }) => {
      this.clock.activity += 1
      cluster.requests.length = 0
      if (verb === 'get' || verb === 'list' || /^(Event|Lease)\./.test(kind)) return
      this.writes += 1
      this.#lastWriteMs = this.clock.monotonic()
    }
    return { ...cluster, client: { ...cluster.client, request: async ({ path }) => answerAsMember(path) } }
  }

  /** As if every watch had been lost: every object is reported again. */
  #relist(): void {
    for (const cluster of [this.hub, ...this.members.values()]) cluster.relist()
  }
}

function rootOf(index: number): Ingress {
  const backend = { service: { name: 'web', port: { number: 80 } } }
  return {
    metadata: { name: `root-${index}`, namespace: 'shop', uid: `uid-${index}` },
    spec: {
      ingressClassName: 'global',
      rules: [{ host: `host-${index}.example.com`, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  }
}
