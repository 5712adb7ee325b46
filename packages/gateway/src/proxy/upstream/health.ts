/**
 * Active health checks of the clusters that ask for them: one GET per endpoint and interval. An endpoint changes its state
 * after the number of equal results in a row that the policy asks for; a new endpoint counts as healthy.
 *
 * Guarantee: the clusters of a namespace are probed at a bounded rate together. Beyond it their intervals become longer: one
 * HTTPProxy may have thousands of clusters, and each of them all endpoints of a Service.
 */
import { request } from 'node:http'
import { request as secureRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import type { Clock } from '@seamark/kube'
import type { Endpoint } from '../../ir/endpoint.ts'
import type { HealthCheck } from '../../ir/model.ts'
import { endpointKey, type Clusters, type ClusterState } from './clusters.ts'
import { tlsOptions } from './upstream.ts'

/** Of the clusters of one namespace. */
const PROBES_PER_SECOND = 100
/** Probes that may begin at once. */
const BURST = 100
const GAP_MS = 1_000 / PROBES_PER_SECOND

/** The probes of one namespace. */
class Pace {
  readonly #byCluster = new Map<string, number>()
  #endpoints = 0
  #nextMs = Number.NEGATIVE_INFINITY

  /** @param count of the endpoints of a cluster; 0: the cluster is gone */
  set(cluster: string, count: number): void {
    this.#endpoints += count - (this.#byCluster.get(cluster) ?? 0)
    if (count === 0) this.#byCluster.delete(cluster)
    else this.#byCluster.set(cluster, count)
  }

  get isEmpty(): boolean {
    return this.#byCluster.size === 0
  }

  /** In which every endpoint can be probed once. */
  get roundMs(): number {
    return this.#endpoints <= BURST ? 0 : this.#endpoints * GAP_MS
  }

  /** Until the next probe may begin, which is taken. */
  take(nowMs: number): number {
    this.#nextMs = Math.max(this.#nextMs, nowMs - BURST * GAP_MS) + GAP_MS
    return Math.max(0, this.#nextMs - nowMs)
  }
}

export class HealthChecks {
  readonly #clusters: Clusters
  readonly #clock: Clock
  readonly #lookup: LookupFunction
  /** By cluster name: cancels the next round. */
  readonly #rounds = new Map<string, () => void>()
  /** By cluster name and endpoint: results in a row, positive for successes, negative for failures. */
  readonly #streaks = new Map<string, Map<string, number>>()
  /** By namespace. */
  readonly #paces = new Map<string, Pace>()
  #isClosed = false

  constructor(clusters: Clusters, clock: Clock, lookup: LookupFunction) {
    this.#clusters = clusters
    this.#clock = clock
    this.#lookup = lookup
  }

  /** Starts and ends checks so that they are those of the current clusters. */
  update(): void {
    const wanted = new Set<string>()
    for (const { name, healthCheck } of this.#clusters.all()) {
      if (healthCheck === undefined) continue
      wanted.add(name)
      const state = this.#rounds.has(name) ? undefined : this.#clusters.get(name)
      if (state !== undefined) this.#round(state, healthCheck)
    }
    for (const [name, cancel] of this.#rounds) {
      if (wanted.has(name)) continue
      cancel()
      this.#rounds.delete(name)
      this.#streaks.delete(name)
      const owner = ownerOf(name)
      const pace = this.#paces.get(owner)
      pace?.set(name, 0)
      if (pace?.isEmpty === true) this.#paces.delete(owner)
    }
  }

  close(): void {
    this.#isClosed = true
    for (const cancel of this.#rounds.values()) cancel()
    this.#rounds.clear()
  }

  #round(state: ClusterState, policy: HealthCheck): void {
    const { name } = state.cluster
    const endpoints = this.#clusters.endpointsOf(state.cluster)
    const pace = this.#paceOf(name)
    pace.set(name, endpoints.length)
    this.#rounds.set(
      name,
      this.#clock.after(Math.max(policy.intervalMs, pace.roundMs), () => this.#round(state, policy)),
    )
    const known = new Set(endpoints.map(endpointKey))
    const streaks = this.#streaks.get(name) ?? new Map<string, number>()
    this.#streaks.set(name, streaks)
    // An endpoint that comes back counts as a new one.
    for (const key of state.unhealthy) if (!known.has(key)) state.unhealthy.delete(key)
    for (const key of streaks.keys()) if (!known.has(key)) streaks.delete(key)
    for (const endpoint of endpoints) {
      const begin = () => {
        if (this.#isClosed || this.#streaks.get(name) !== streaks) return
        probe(state, policy, endpoint, this.#clock, this.#lookup, (isHealthy) => {
          if (!this.#isClosed) record(state, streaks, policy, endpoint, isHealthy)
        })
      }
      const delayMs = pace.take(this.#clock.monotonic())
      if (delayMs === 0) begin()
      else this.#clock.after(delayMs, begin)
    }
  }

  #paceOf(cluster: string): Pace {
    const owner = ownerOf(cluster)
    let pace = this.#paces.get(owner)
    if (pace === undefined) this.#paces.set(owner, (pace = new Pace()))
    return pace
  }
}

/** The namespace of a cluster: of its Service, or after `global` of the GlobalIngress. */
function ownerOf(cluster: string): string {
  const [first = '', second = ''] = cluster.split('/', 2)
  return first === 'global' ? second : first
}

function record(
  state: ClusterState,
  streaks: Map<string, number>,
  policy: HealthCheck,
  endpoint: Endpoint,
  isHealthy: boolean,
): void {
  const key = endpointKey(endpoint)
  const before = streaks.get(key) ?? 0
  const streak = isHealthy ? Math.max(before, 0) + 1 : Math.min(before, 0) - 1
  streaks.set(key, streak)
  if (streak >= policy.healthyThreshold) state.unhealthy.delete(key)
  else if (-streak >= policy.unhealthyThreshold) state.unhealthy.add(key)
}

function probe(
  { cluster }: ClusterState,
  { path, host, timeoutMs, expectedStatuses }: HealthCheck,
  endpoint: Endpoint,
  clock: Clock,
  lookup: LookupFunction,
  done: (isHealthy: boolean) => void,
): void {
  const isTls = cluster.protocol === 'tls' || cluster.protocol === 'h2'
  const options = { host: endpoint.host, port: endpoint.port, path, headers: { host }, agent: false as const, lookup }
  const call = isTls ? secureRequest({ ...options, ...tlsOptions(cluster, endpoint.host) }) : request(options)
  const cancel = clock.after(timeoutMs, () => call.destroy(new Error('timeout')))
  call.on('response', (response) => {
    const { statusCode = 0 } = response
    // Its body may have no end.
    response.on('error', () => undefined).destroy()
    cancel()
    const isExpected =
      expectedStatuses.length === 0
        ? statusCode === 200
        : expectedStatuses.some(({ start, end }) => statusCode >= start && statusCode < end)
    done(isExpected)
  })
  call.on('error', () => {
    cancel()
    done(false)
  })
  call.end()
}
