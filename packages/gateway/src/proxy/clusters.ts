/**
 * The clusters of the current configuration at run time: endpoints, load balancing, health and limits. State of a cluster
 * (round-robin position, requests in flight, health) outlives a new configuration that still contains it.
 */
import { createHash } from 'node:crypto'
import type { Cluster } from '../ir/model.ts'

export interface Endpoint {
  readonly host: string
  readonly port: number
  /** @default 1 */
  readonly weight?: number
  /** Lower is preferred; endpoints of higher numbers are used when none of the lower ones is healthy. @default 0 */
  readonly priority?: number
}

/** Endpoints of Services by `namespace/service/portName`; absent: none. */
export type EndpointSource = (name: string) => readonly Endpoint[]

export interface ClusterState {
  readonly cluster: Cluster
  /** Requests that wait for a response. */
  inFlight: number
  next: number
  /** `host:port` of endpoints that failed their health check. */
  readonly unhealthy: Set<string>
  readonly busy: Map<string, number>
}

export class Clusters {
  #states = new Map<string, ClusterState>()
  readonly #source: EndpointSource
  readonly #random: () => number

  constructor(source: EndpointSource, random: () => number = Math.random) {
    this.#source = source
    this.#random = random
  }

  /** Names contain a hash of the content: a cluster that keeps its name keeps its state. */
  update(clusters: readonly Cluster[]): void {
    this.#states = new Map(
      clusters.map((cluster) => [cluster.name, this.#states.get(cluster.name) ?? newState(cluster)]),
    )
  }

  get(name: string): ClusterState | undefined {
    return this.#states.get(name)
  }

  all(): IterableIterator<ClusterState> {
    return this.#states.values()
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
    const all = this.endpointsOf(state.cluster)
    if (all.length <= 1 && state.unhealthy.size === 0) return all[0]
    const usable = preferred(all, state.unhealthy)
    const candidates =
      avoid === undefined || usable.length === 1 ? usable : usable.filter((each) => !isSame(each, avoid))
    if (candidates.length <= 1) return candidates[0] ?? usable[0]
    switch (state.cluster.balancing) {
      case 'hash':
        return hash === undefined ? this.#weighted(candidates) : rendezvous(candidates, hash)
      case 'random':
        return this.#weighted(candidates)
      case 'leastRequest': {
        const [a, b] = [this.#weighted(candidates), this.#weighted(candidates)]
        return load(state, a) <= load(state, b) ? a : b
      }
      case 'roundRobin': {
        if (candidates.some(({ weight = 1 }) => weight !== 1)) return this.#weighted(candidates)
        state.next = (state.next + 1) % candidates.length
        return candidates[state.next]
      }
    }
  }

  #weighted(candidates: readonly Endpoint[]): Endpoint | undefined {
    const total = candidates.reduce((sum, { weight = 1 }) => sum + weight, 0)
    let at = this.#random() * total
    for (const candidate of candidates) {
      at -= candidate.weight ?? 1
      if (at < 0) return candidate
    }
    return candidates.at(-1)
  }
}

export function endpointKey({ host, port }: Endpoint): string {
  return `${host}:${port}`
}

function newState(cluster: Cluster): ClusterState {
  return { cluster, inFlight: 0, next: -1, unhealthy: new Set(), busy: new Map() }
}

function isSame(a: Endpoint, b: Endpoint): boolean {
  return a.host === b.host && a.port === b.port
}

function load({ busy }: ClusterState, endpoint: Endpoint | undefined): number {
  return endpoint === undefined ? Number.POSITIVE_INFINITY : (busy.get(endpointKey(endpoint)) ?? 0)
}

/**
 * Healthy endpoints of the lowest priority that has any. If fewer than half of all endpoints are healthy the checks are more
 * likely wrong than the backends, and all are used, as in Envoy.
 */
function preferred(all: readonly Endpoint[], unhealthy: ReadonlySet<string>): readonly Endpoint[] {
  const hasPriorities = all.some(({ priority = 0 }) => priority !== 0)
  if (unhealthy.size === 0 && !hasPriorities) return all
  const healthy = all.filter((each) => !unhealthy.has(endpointKey(each)))
  if (!hasPriorities) return healthy.length * 2 < all.length ? all : healthy
  const lowest = Math.min(...(healthy.length === 0 ? all : healthy).map(({ priority = 0 }) => priority))
  return (healthy.length === 0 ? all : healthy).filter(({ priority = 0 }) => priority === lowest)
}

/** Rendezvous hashing: an endpoint that comes or goes moves only the requests that it gains or loses. */
function rendezvous(candidates: readonly Endpoint[], hash: string): Endpoint | undefined {
  let best: Endpoint | undefined
  let highest = -1
  for (const candidate of candidates) {
    const digest = createHash('sha1')
      .update(`${hash}|${endpointKey(candidate)}`)
      .digest()
    const score = digest.readUIntBE(0, 6) * (candidate.weight ?? 1)
    if (score > highest) [best, highest] = [candidate, score]
  }
  return best
}
