import { expect, it } from 'vitest'
import type { Cluster } from '../../ir/model.ts'
import { admit, CLUSTER_LIMITS } from './admission.ts'
import { Clusters, type ClusterState } from './clusters.ts'

const endpoint = { host: '192.0.2.1', port: 80 }

function stateOf(more: Partial<Cluster>): ClusterState {
  const clusters = new Clusters(() => [endpoint])
  const upstream = { kind: 'endpoints', name: 'one' } as const
  const cluster = { name: 'one', upstream, protocol: 'http1', balancing: 'leastRequest', connectTimeoutMs: 1 } as const
  clusters.update([{ ...cluster, ...more }])
  const state = clusters.get('one')
  if (state === undefined) throw new Error('no cluster')
  return state
}

/** Asks until a request is refused; how many were sent and how many wait. */
function fill(state: ClusterState, bytes: number) {
  const releases: (() => void)[] = []
  let [sent, waiting] = [0, 0]
  const askOnce = (): boolean => {
    const admitted = admit(state, endpoint, bytes, () => (waiting--, askOnce()))
    if (admitted === 'overflow') return false
    if (admitted.isSent) sent++
    else waiting++
    if (admitted.isSent) releases.push(admitted.release)
    return true
  }
  while (askOnce());
  return { counts: () => [sent, waiting], releases }
}

it.each([
  ['http1', {}, [1_024, 1_024]],
  ['tls', { maxPendingRequests: 2 }, [1_024, 2]],
  ['h2c', {}, [1_024, 0]],
  ['h2', { maxRequests: 3_000 }, [3_000, 0]],
  ['http1', { maxConnections: 3_000 }, [1_024, 0]],
  ['http1', { maxConnections: 3_000, maxRequests: 3_000, maxPendingRequests: 0 }, [3_000, 0]],
] as const)('a cluster over %s with %o has as many requests as with Envoy', (protocol, circuitBreakers, expected) => {
  const state = stateOf({ protocol, circuitBreakers })
  expect(fill(state, 0).counts()).toEqual(expected)
})

it('the header fields of all requests of a cluster, sent or waiting, have a limit', () => {
  const state = stateOf({})
  const bytes = CLUSTER_LIMITS.maxHeaderBytes / 1_100
  const { counts, releases } = fill(state, bytes)
  expect(counts()).toEqual([1_024, 76])
  for (const release of releases) release()
  // Those that waited were sent as there was room.
  expect(counts()).toEqual([1_100, 0])
  expect([state.inFlight, state.waiting.size, Math.round(state.headerBytes)]).toEqual([0, 0, 0])
})

it('a request that does not wait takes nothing when there is no connection', () => {
  const state = stateOf({ circuitBreakers: { maxConnections: 1 } })
  expect(admit(state, endpoint, 10)).not.toBe('overflow')
  expect(admit(state, endpoint, 10)).toBe('overflow')
  expect([state.inFlight, state.waiting.size, state.headerBytes]).toEqual([1, 0, 10])
})
