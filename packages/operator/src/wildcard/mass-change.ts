/**
 * Which writes of a wildcard the mass guard counts: those after which nothing is left of what is published. A wrong selector or
 * zone does that to every cluster at once. Losing some of the nodes does not: an outage of one zone of a provider takes nodes from
 * many clusters at the same time, and has to be followed without anybody's approval. Pure.
 */
import { type Immutable, keyOf } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import type { MassRequest } from '../safety/mass-guard.ts'
import type { ClusterDecision } from './cluster-decision.ts'

/** Undefined: the write is not counted. */
export function massRequestOf(
  live: Immutable<DNSEndpoint> | undefined,
  action: ClusterDecision['action'],
): MassRequest | undefined {
  if (live === undefined || action.state === 'keep') return undefined
  const about = { kind: DNSEndpoint.kind, name: keyOf(live) }
  if (action.state === 'delete') return { change: 'prune', ...about }
  const { endpoints } = action.desired.spec
  const names = new Set(endpoints.map(({ dnsName }) => dnsName))
  const targets = new Set(endpoints.flatMap((endpoint) => endpoint.targets))
  const published = live.spec.endpoints
  const isRenamed = published.some(({ dnsName }) => !names.has(dnsName))
  const hasTargets = published.some((endpoint) => endpoint.targets.length > 0)
  const isReplaced = hasTargets && !published.some((each) => each.targets.some((target) => targets.has(target)))
  if (!isRenamed && !isReplaced) return undefined
  return { change: 'retarget', ...about, content: JSON.stringify(endpoints) }
}

/** Both requests that the DNSEndpoint of a cluster can have. */
export function massRequestsFor(name: string): readonly Pick<MassRequest, 'change' | 'kind' | 'name'>[] {
  return (['prune', 'retarget'] as const).map((change) => ({ change, kind: DNSEndpoint.kind, name }))
}
