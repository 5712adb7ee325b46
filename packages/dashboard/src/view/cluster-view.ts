/** The clusters of the overview: their state, from the Cluster, its leaves and the health of its addresses. Pure. */
import { findCondition, type Immutable } from '@seamark/kube'
import type { Cluster, LeafIngress } from '@seamark/operator'
import type { ClusterState, ClusterView, TrafficView } from '../api/state.ts'
import { rounded } from './bands.ts'

/** What all hosts together show about the addresses of one cluster. */
export interface ClusterTotals {
  /** Sum of the shares of answers of its addresses, over all hosts. */
  readonly shares: number
  readonly hosts: number
  readonly answeredHosts: number
  /** Of these, those that the fleet places. */
  readonly answeredRoots: number
  readonly healthy: number
  readonly unhealthy: number
  readonly addresses: ReadonlyMap<string, number>
}

export interface ClusterFacts {
  readonly cluster: Immutable<Cluster>
  readonly leaves: readonly Immutable<LeafIngress>[]
  readonly totals: ClusterTotals
  /** Hosts that are answered at all. */
  readonly answeredHosts: number
  readonly traffic?: TrafficView
}

interface Judged {
  readonly state: ClusterState
  readonly text: string
  readonly reason?: string | undefined
  readonly since?: string | undefined
}

export function clusterView(facts: ClusterFacts): ClusterView {
  const { cluster, leaves, totals, answeredHosts, traffic } = facts
  const { spec, status, metadata } = cluster
  const { state, text, reason, since } = judge(facts)
  // Other hosts, such as the wildcard of the cluster, stay as they are in a drain.
  const isAskedFor = state === 'Draining' || state === 'Drained'
  const answersStill = state !== 'Serving' && (isAskedFor ? totals.answeredRoots : totals.answeredHosts) > 0
  const location = [spec.location?.region, spec.location?.zone, spec.location?.geo].find((each) => each !== undefined)
  return {
    name: metadata.name ?? '',
    state,
    text,
    ...(reason !== undefined && { reason }),
    ...(since !== undefined && { since }),
    answersStill,
    ...numbersOf(totals, answeredHosts),
    leaves: leaves.length,
    ...(traffic !== undefined && { traffic }),
    ...(spec.weight !== undefined && { weight: spec.weight }),
    ...(location !== undefined && { location }),
    ...(status?.version !== undefined && { version: status.version }),
    ...(spec.drain?.deadline !== undefined && { until: spec.drain.deadline }),
  }
}

/** What is counted over hosts. */
export function numbersOf(
  totals: ClusterTotals,
  answeredHosts: number,
): Pick<ClusterView, 'share' | 'hosts' | 'answeredHosts' | 'addresses'> {
  return {
    share: rounded(answeredHosts === 0 ? 0 : totals.shares / answeredHosts),
    hosts: totals.hosts,
    answeredHosts: totals.answeredHosts,
    addresses: [...totals.addresses.keys()].sort(),
  }
}

/** The first that holds: Unreachable > Draining > Drained > Unhealthy > Serving. */
function judge({ cluster, leaves, totals }: ClusterFacts): Judged {
  const conditions = cluster.status?.conditions
  const [reachable, draining, ready] = ['Reachable', 'Draining', 'Ready'].map((type) => findCondition(conditions, type))
  const since = (condition: typeof ready) => condition?.lastTransitionTime
  if (reachable?.status === 'False')
    return {
      state: 'Unreachable',
      text: reachable.message ?? 'the API server does not answer',
      reason: reachable.reason,
      since: since(reachable),
    }
  const isAskedFor = cluster.spec.drain?.enabled === true || cluster.metadata.deletionTimestamp !== undefined
  if (isAskedFor) {
    // A leaf that keeps its traffic, for want of another one, is not drained.
    const isDrained = leaves.length === 0 && totals.answeredRoots === 0
    const text = isDrained
      ? 'no leaf is left, and DNS answers none of its addresses for a host of the fleet'
      : (draining?.message ?? 'drain')
    const reason = isDrained ? 'DrainCompleted' : (draining?.reason ?? 'ClusterDraining')
    const at = cluster.metadata.deletionTimestamp ?? (draining?.status === 'True' ? since(draining) : undefined)
    return { state: isDrained ? 'Drained' : 'Draining', text, reason, since: at }
  }
  if (ready?.status === 'False')
    return { state: 'Unhealthy', text: ready.message ?? '', reason: ready.reason, since: since(ready) }
  if (totals.unhealthy > 0 && totals.healthy === 0)
    return { state: 'Unhealthy', text: 'none of its addresses passes a health check', reason: 'EndpointUnhealthy' }
  if (ready?.status !== 'True')
    return { state: 'Unhealthy', text: ready?.message ?? 'it has not answered yet', reason: ready?.reason }
  return { state: 'Serving', text: ready.message ?? '', reason: ready.reason, since: since(ready) }
}
