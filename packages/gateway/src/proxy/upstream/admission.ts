/**
 * How many requests and tunnels a cluster has at a time: its circuit breakers, with the defaults of Envoy where an object sets none, and
 * the octets of their header fields. So a backend that does not answer costs the proxy, and other clusters, a bounded part.
 */
import type { Endpoint } from '../../ir/endpoint.ts'
import { endpointKey, type ClusterState } from './clusters.ts'

/** Of one cluster. The first three are Envoy's. */
export const CLUSTER_LIMITS = {
  maxConnections: 1_024,
  maxPendingRequests: 1_024,
  maxRequests: 1_024,
  maxHeaderBytes: 8 * 1_048_576,
} as const

/** What the client of a request beyond the limits is told, as by Envoy. */
export const OVERFLOW = 'upstream connect error or disconnect/reset before headers. reset reason: overflow'

/** Frees what a request holds, or its place among those that wait. */
type Release = () => void

/**
 * Whether a request may be sent now. `release` is called once, when its answer has ended or it does not wait any more.
 *
 * @param bytes of its header fields
 * @param later called when a request that waited may be sent: it asks again. Without it, a request does not wait
 */
export function admit(
  state: ClusterState,
  endpoint: Endpoint,
  bytes: number,
  later?: () => void,
): { readonly isSent: boolean; readonly release: Release } | 'overflow' {
  const { circuitBreakers = {}, protocol } = state.cluster
  const { maxConnections, maxPendingRequests, maxRequests } = { ...CLUSTER_LIMITS, ...circuitBreakers }
  if (state.headerBytes + bytes > CLUSTER_LIMITS.maxHeaderBytes) return 'overflow'
  // A connection of HTTP/2 carries many requests.
  const isShared = protocol === 'h2' || protocol === 'h2c'
  if (!isShared && state.inFlight >= maxConnections) {
    if (later === undefined || state.waiting.size >= maxPendingRequests) return 'overflow'
    return { isSent: false, release: wait(state, bytes, later) }
  }
  return state.inFlight >= maxRequests ? 'overflow' : { isSent: true, release: occupy(state, endpoint, bytes) }
}

/** The request that waits for longest gets its turn. */
export function admitNext(state: ClusterState): void {
  for (const next of state.waiting) return next()
}

function wait(state: ClusterState, bytes: number, later: () => void): Release {
  state.headerBytes += bytes
  const leave = () => {
    if (state.waiting.delete(turn)) state.headerBytes -= bytes
  }
  const turn = () => {
    leave()
    later()
  }
  state.waiting.add(turn)
  return leave
}

function occupy(state: ClusterState, endpoint: Endpoint, bytes: number): Release {
  const key = endpointKey(endpoint)
  const counts = state.cluster.balancing === 'leastRequest'
  state.inFlight++
  state.headerBytes += bytes
  if (counts) state.busy.set(key, (state.busy.get(key) ?? 0) + 1)
  return () => {
    state.inFlight--
    state.headerBytes -= bytes
    if (counts) {
      const left = (state.busy.get(key) ?? 1) - 1
      if (left > 0) state.busy.set(key, left)
      else state.busy.delete(key)
    }
    admitNext(state)
  }
}
