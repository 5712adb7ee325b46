/**
 * The clusters of the current configuration at run time: endpoints, load balancing, health and limits. State of a cluster
 * (round-robin position, requests in flight, health) outlives a new configuration that still contains it.
 */
import { createHash } from 'node:crypto'
import type { Endpoint, EndpointSource } from '../../ir/endpoint.ts'
import type { Cluster, WeightedAddress } from '../../ir/model.ts'

export interface ClusterState {
  readonly cluster: Cluster
  /** Requests whose response has not ended, and tunnels. */
  inFlight: number
  /** Octets of the header fields of those, and of the requests that wait. */
  headerBytes: number
  /** Requests that are being sent again. */
  retrying: number
  /** Sends requests that wait for a connection, oldest first. */
  readonly waiting: Set<() => void>
  next: number
  /** `host:port` of endpoints that failed their health check. */
  readonly unhealthy: Set<string>
  readonly busy: Map<string, number>
}

export class Clusters {
  #clusters: ReadonlyMap<string, Cluster> = new Map()
  /** Made for the first request, or health check. */
  readonly #states = new Map<string, ClusterState>()
  readonly #source: EndpointSource
  readonly #random: () => number

  constructor(source: EndpointSource, random: () => number = Math.random) {
    this.#source = source
    this.#random = random
  }

  /** Names contain a hash of the content: a cluster that keeps its name keeps its state. */
  update(clusters: readonly Cluster[]): void {
    this.#clusters = new Map(clusters.map((cluster) => [cluster.name, cluster]))
    for (const name of this.#states.keys()) if (!this.#clusters.has(name)) this.#states.delete(name)
  }

  get(name: string): ClusterState | undefined {
    const known = this.#states.get(name)
    if (known !== undefined) return known
    const cluster = this.#clusters.get(name)
    if (cluster === undefined) return undefined
    const state = newState(cluster)
    this.#states.set(name, state)
    return state
  }

  /** Of the current configuration. */
  all(): IterableIterator<Cluster> {
    return this.#clusters.values()
  }

  endpointsOf({ upstream }: Cluster): readonly Endpoint[] {
    switch (upstream.kind) {
      case 'endpoints':
        return this.#source(upstream.name)
      case 'dns':
        return [{ host: upstream.host, port: upstream.port }]
      case 'addresses':
        return upstream.addresses
    }
  }

  /**
   * The endpoint for the next request; undefined if there is none.
   * @param hash what the request is balanced by, for consistent hashing
   * @param avoid an endpoint that just failed this request; used again only if it is the only one
   */
  pick(state: ClusterState, hash?: string, avoid?: Endpoint): Endpoint | undefined {
    const { upstream } = state.cluster
    if (upstream.kind === 'addresses') return this.#pickAddress(upstream.addresses, state.unhealthy, avoid)
    const all = this.endpointsOf(state.cluster)
    if (all.length <= 1 && state.unhealthy.size === 0) return all[0]
    const usable = preferred(all, state.unhealthy)
    const candidates =
      avoid === undefined || usable.length === 1 ? usable : usable.filter((each) => !isSame(each, avoid))
    if (candidates.length <= 1) return candidates[0] ?? usable[0]
    switch (state.cluster.balancing) {
      case 'hash':
        return hash === undefined ? this.#any(candidates) : rendezvous(candidates, hash)
      case 'random':
        return this.#any(candidates)
      case 'leastRequest': {
        const [a, b] = [this.#any(candidates), this.#any(candidates)]
        return load(state, a) <= load(state, b) ? a : b
      }
      case 'roundRobin': {
        state.next = (state.next + 1) % candidates.length
        return candidates[state.next]
      }
    }
  }

  /** By weight, among the healthy ones of the best priority that has any; if none is healthy, among all of the first. */
  #pickAddress(
    all: readonly WeightedAddress[],
    unhealthy: ReadonlySet<string>,
    avoid: Endpoint | undefined,
  ): WeightedAddress | undefined {
    const healthy = all.filter((each) => !unhealthy.has(endpointKey(each)))
    const others = avoid === undefined ? healthy : healthy.filter((each) => !isSame(each, avoid))
    const usable = others.length > 0 ? others : healthy.length > 0 ? healthy : all
    const [first] = usable.toSorted((a, b) => a.priority - b.priority)
    const level = usable.filter(({ priority }) => priority === first?.priority)
    let at = this.#random() * level.reduce((sum, { weight }) => sum + weight, 0)
    return level.find(({ weight }) => (at -= weight) < 0) ?? level.at(-1)
  }

  #any(candidates: readonly Endpoint[]): Endpoint | undefined {
    return candidates[Math.floor(this.#random() * candidates.length)]
  }
}

export function endpointKey({ host, port }: Endpoint): string {
  return `${host}:${port}`
}

function newState(cluster: Cluster): ClusterState {
  return {
    cluster,
    inFlight: 0,
    headerBytes: 0,
    retrying: 0,
    waiting: new Set(),
    next: -1,
    unhealthy: new Set(),
    busy: new Map(),
  }
}

function isSame(a: Endpoint, b: Endpoint): boolean {
  return a.host === b.host && a.port === b.port
}

function load({ busy }: ClusterState, endpoint: Endpoint | undefined): number {
  return endpoint === undefined ? Number.POSITIVE_INFINITY : (busy.get(endpointKey(endpoint)) ?? 0)
}

/**
 * Healthy endpoints. If fewer than half of all are healthy the checks are more likely wrong than the backends, and all are
 * used, as in Envoy.
 */
function preferred(all: readonly Endpoint[], unhealthy: ReadonlySet<string>): readonly Endpoint[] {
  if (unhealthy.size === 0) return all
  const healthy = all.filter((each) => !unhealthy.has(endpointKey(each)))
  return healthy.length * 2 < all.length ? all : healthy
}

/** Rendezvous hashing: an endpoint that comes or goes moves only the requests that it gains or loses. */
function rendezvous(candidates: readonly Endpoint[], hash: string): Endpoint | undefined {
  let best: Endpoint | undefined
  let highest = -1
  for (const candidate of candidates) {
    const digest = createHash('sha1')
      .update(`${hash}|${endpointKey(candidate)}`)
      .digest()
    const score = digest.readUIntBE(0, 6)
    if (score > highest) [best, highest] = [candidate, score]
  }
  return best
}
