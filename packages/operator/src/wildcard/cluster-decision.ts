/**
 * Everything about the wildcard of one cluster: whether it may be published at all, its DNSEndpoint as desired, and the
 * reason for whatever is held. Pure; the controller acts on it, `explain` may read it.
 *
 * Order of the gates: name, kubeconfig, owner of the object, nodes readable, limits, then the nodes themselves (decide.ts).
 */
import type { Node } from '@seamark/kube'
import type { Immutable, LabelPredicate } from '@seamark/kube/object'
import type { DNSEndpoint } from '../api/dns-endpoint.ts'
import { type Finding, warning } from '../finding.ts'
import { decideWildcard } from './decide.ts'
import { MAX_NODE_ADDRESSES, MAX_TARGETS } from './limits.ts'
import type { MassLimits } from '../safety/mass-limits.ts'
import type { NodeReading } from './member.ts'
import { hasTooManyAddresses, readNode } from './node-fact.ts'
import type { WildcardOptions } from './options.ts'
import { OWNED_BY, wildcardEndpoint, wildcardName, type WildcardOwner } from './wildcard-endpoint.ts'

/** What damping keeps between two decisions. A restart loses it, which delays a removal and never hastens one. */
export interface DampingState {
  readonly lostSince: ReadonlyMap<string, number>
  readonly lastWriteMs: number | undefined
}

export interface ClusterFacts {
  readonly owner: WildcardOwner
  readonly zone: string
  /** The DNSEndpoint as observed. */
  readonly live: Immutable<DNSEndpoint> | undefined
  /** The kubeconfig was refused. */
  readonly refusal: Finding | undefined
  readonly reading: NodeReading
  readonly damping: DampingState
  readonly nowMs: number
}

export interface ClusterDecision {
  readonly action:
    | { readonly state: 'apply'; readonly desired: DNSEndpoint }
    | { readonly state: 'keep' }
    | { readonly state: 'delete' }
  /** Published after the action. */
  readonly targets: readonly string[]
  readonly findings: readonly Finding[]
  readonly lostSince: ReadonlyMap<string, number>
  /** Decide again at this time even if nothing changes. */
  readonly againAtMs?: number
  /** Many targets would leave: read the nodes past the cache and decide again before acting. */
  readonly needsConfirmation: boolean
}

const UNREADABLE_RETRY_MS = 5_000

export function decideCluster(
  facts: ClusterFacts,
  options: WildcardOptions & { readonly massLimits?: MassLimits },
  isSelected: LabelPredicate,
): ClusterDecision {
  const { owner, zone, live, refusal, reading, damping, nowMs } = facts
  const published = [...new Set(live?.spec.endpoints.flatMap((endpoint) => endpoint.targets) ?? [])]
  const keep = (...findings: Finding[]): ClusterDecision => ({
    action: { state: 'keep' },
    targets: published,
    findings,
    lostSince: damping.lostSince,
    needsConfirmation: false,
  })
  const named = wildcardName(owner.cluster, zone)
  if ('fault' in named) return keep(warning('ZoneInvalid', named.fault))
  if (refusal !== undefined) return keep(refusal)
  const foreign = findForeignOwner(live, owner)
  if (foreign !== undefined) return keep(foreign)
  if (reading.state === 'syncing') return { ...keep(), againAtMs: nowMs + UNREADABLE_RETRY_MS }
  if (reading.state === 'unreadable') {
    const message = `the nodes of cluster ${owner.cluster} cannot be read: ${reading.message}; its published targets are unchanged`
    return { ...keep(warning(reading.reason, message)), againAtMs: nowMs + UNREADABLE_RETRY_MS }
  }
  const nodes = reading.nodes.flatMap((node) => readNode(node, isSelected, options) ?? [])
  const excess = findExcess(owner, reading.nodes, nodes)
  if (excess !== undefined) return keep(excess)
  const { action, ...rest } = decideWildcard({ nodes, published, ...damping, nowMs }, options)
  if (action.state !== 'publish') return { ...rest, action, targets: published }
  const desired = wildcardEndpoint(owner, named.name, action, options)
  return { ...rest, action: { state: 'apply', desired }, targets: [...action.v4, ...action.v6] }
}

/** The member sends more than one wildcard may have; part of it would be a wrong answer. */
function findExcess(
  { cluster }: WildcardOwner,
  nodes: readonly Immutable<Node>[],
  facts: readonly { readonly v4: readonly string[]; readonly v6: readonly string[] }[],
): Finding | undefined {
  const large = nodes.find(hasTooManyAddresses)
  if (large !== undefined) {
    const name = JSON.stringify(large.metadata.name?.slice(0, 253) ?? '')
    return warning(
      'ClusterOverLimit',
      `node ${name} of cluster ${cluster} has more than ${MAX_NODE_ADDRESSES} addresses; the published targets of the cluster are unchanged`,
    )
  }
  const targets = facts.reduce((sum, { v4, v6 }) => sum + v4.length + v6.length, 0)
  if (targets <= MAX_TARGETS) return undefined
  const message = `cluster ${cluster} has ${targets} addresses, the limit is ${MAX_TARGETS}; its published targets are unchanged. Select fewer nodes with nodeSelector`
  return warning('ClusterOverLimit', message)
}

function findForeignOwner(live: Immutable<DNSEndpoint> | undefined, owner: WildcardOwner): Finding | undefined {
  if (live === undefined) return undefined
  const { annotations, ownerReferences, name } = live.metadata
  const controller = ownerReferences?.find((reference) => reference.controller === true)
  const isOurs = annotations?.[OWNED_BY] === `Cluster/${owner.namespace}/${owner.cluster}`
  if (isOurs && (controller === undefined || controller.uid === owner.secret?.uid)) return undefined
  return warning(
    'ForeignObject',
    `DNSEndpoint ${owner.namespace}/${name} exists and was not made for this registration; it is left as it is. Delete it, or set namePrefix`,
  )
}
