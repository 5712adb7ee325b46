/**
 * Placement: on which member clusters a root has leaves. Pure and deterministic.
 *
 * Steps: eligible clusters (ready, served, selected, not tainted, not draining, with the root's Services) → clusters of the
 * previous decision first → affinity groups, spread, weight, name → at most `maxClusters`.
 * Guarantees: the result does not depend on the order of its input. Movement is minimal: a placed cluster stays while it is
 * eligible and within `maxClusters`; a placed cluster that is not ready, or whose Services are unknown, stays too (API
 * unreachable is not data plane down). A cluster that leaves becomes Draining, never absent.
 */
import type { GlobalIngressPolicySpec } from '../../api/global-ingress-policy.ts'
import type { Reason } from '../../reasons.ts'

export interface ClusterFact {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly location: { readonly geo?: string; readonly region?: string; readonly zone?: string }
  readonly weight: number
  readonly isReady: boolean
  readonly isDeleting: boolean
  readonly isDraining: boolean
  readonly taints: readonly {
    readonly key: string
    readonly value?: string
    readonly effect: 'NoPlace' | 'NoTraffic'
  }[]
  /** Undefined: every namespace. */
  readonly allowedNamespaces: readonly string[] | undefined
  /** Undefined: not known yet. */
  readonly servedKinds: readonly string[] | undefined
}

/** Whether the Services of the root exist on a cluster. */
export type BackendFact =
  | { readonly state: 'present' }
  | { readonly state: 'missing'; readonly services: readonly string[]; readonly isAnyPresent: boolean }
  | { readonly state: 'unknown' }

export interface PlacementFacts {
  readonly root: { readonly kind: string; readonly namespace: string }
  readonly policy: GlobalIngressPolicySpec['placement']
  readonly clusters: readonly ClusterFact[]
  readonly backendOf: (cluster: string) => BackendFact
  /** Clusters named by the labels of the root's Services on the hub; undefined: none has such a label. */
  readonly labelledClusters: ReadonlySet<string> | undefined
  /** Names of the clusters of the last decision, without those that drain. */
  readonly previous: ReadonlySet<string>
  /** Clusters that still have a leaf. */
  readonly existing: ReadonlySet<string>
}

interface Placed {
  readonly name: string
  readonly state: 'Active' | 'NoTraffic' | 'Draining'
}

interface Rejection {
  readonly cluster: string
  readonly reason: Reason
  readonly message: string
}

export interface PlacementDecision {
  /** Sorted by name. */
  readonly placed: readonly Placed[]
  /** Why clusters that the policy names or selects have no leaf; sorted by name. */
  readonly rejected: readonly Rejection[]
  readonly reason: Extract<Reason, 'Placed' | 'NotEnoughClusters'>
  readonly message: string
}

export function placeRoot(facts: PlacementFacts): PlacementDecision {
  const rejected: Rejection[] = []
  const eligible: ClusterFact[] = []
  for (const cluster of facts.clusters) {
    const rejection = findRejection(cluster, facts)
    if (rejection === undefined) eligible.push(cluster)
    else if (rejection !== 'not selected') rejected.push({ cluster: cluster.name, ...rejection })
  }
  const chosen = choose(eligible, facts)
  const names = new Set(chosen.map(({ name }) => name))
  for (const { name } of eligible)
    if (!names.has(name))
      rejected.push({
        cluster: name,
        reason: 'PlacementLimitReached',
        message: 'eligible, but maxClusters or the spread leaves no room',
      })
  const placed: Placed[] = [
    ...chosen.map(({ name, taints }) => ({ name, state: hasEffect(taints, 'NoTraffic') ? NO_TRAFFIC : ACTIVE })),
    ...[...facts.existing].filter((name) => !names.has(name)).map((name) => ({ name, state: DRAINING })),
  ]
  const { minClusters } = facts.policy
  const isEnough = chosen.length >= minClusters
  return {
    placed: placed.sort(byName),
    rejected: rejected.sort((a, b) => compareNames(a.cluster, b.cluster)),
    reason: isEnough ? 'Placed' : 'NotEnoughClusters',
    message: isEnough
      ? `on ${chosen.length} of ${facts.clusters.length} clusters`
      : `${chosen.length} of at least ${minClusters} clusters are eligible${describe(rejected)}`,
  }
}

const ACTIVE = 'Active' as const
const NO_TRAFFIC = 'NoTraffic' as const
const DRAINING = 'Draining' as const

type Finding = Omit<Rejection, 'cluster'>

function findRejection(cluster: ClusterFact, facts: PlacementFacts): Finding | 'not selected' | undefined {
  const { policy, root, labelledClusters } = facts
  const { name } = cluster
  if (policy.clusters !== undefined && !policy.clusters.includes(name)) return 'not selected'
  if (!matches(policy.clusterSelector?.matchLabels, cluster.labels)) return 'not selected'
  if (labelledClusters !== undefined && !labelledClusters.has(name)) return 'not selected'
  if (cluster.isDeleting || cluster.isDraining)
    return { reason: 'ClusterDraining', message: 'it is being drained or removed' }
  if (cluster.allowedNamespaces !== undefined && !cluster.allowedNamespaces.includes(root.namespace))
    return { reason: 'NamespaceNotAllowed', message: `spec.allowedNamespaces does not contain ${root.namespace}` }
  const taint = cluster.taints.find(
    ({ effect, key, value }) => effect === 'NoPlace' && !isTolerated(policy.tolerations ?? [], key, value),
  )
  if (taint !== undefined) return { reason: 'ClusterTainted', message: `taint ${taint.key} is not tolerated` }
  const wasPlaced = facts.previous.has(name)
  if (!cluster.isReady && !wasPlaced) return { reason: 'ClusterNotReady', message: 'it is not ready' }
  if (cluster.servedKinds !== undefined && !cluster.servedKinds.includes(root.kind))
    return { reason: 'CRDNotInstalled', message: `it does not serve ${root.kind}` }
  return labelledClusters === undefined ? findBackendRejection(facts, name, wasPlaced) : undefined
}

function findBackendRejection(facts: PlacementFacts, name: string, wasPlaced: boolean): Finding | undefined {
  const { backendAffinity } = facts.policy
  if (backendAffinity === 'Ignore') return undefined
  const backend = facts.backendOf(name)
  if (backend.state === 'present') return undefined
  if (backend.state === 'unknown')
    return wasPlaced ? undefined : { reason: 'BackendUnknown', message: 'its Services are not known yet' }
  if (backendAffinity === 'Any' && backend.isAnyPresent) return undefined
  return { reason: 'BackendMissing', message: `Service ${backend.services.join(', ')} does not exist there` }
}

function choose(eligible: readonly ClusterFact[], { policy, previous }: PlacementFacts): ClusterFact[] {
  const limit = policy.maxClusters ?? eligible.length
  const ordered = [...eligible].sort(
    (a, b) =>
      Number(previous.has(b.name)) - Number(previous.has(a.name)) ||
      groupOf(a, policy) - groupOf(b, policy) ||
      b.weight - a.weight ||
      compareNames(a.name, b.name),
  )
  if ((policy.spread ?? []).length === 0) return ordered.slice(0, limit)
  const chosen: ClusterFact[] = []
  const rest = new Set(ordered)
  // Repeated, because a choice in one domain makes room in the others.
  while (chosen.length < limit) {
    const next = ordered.find((cluster) => rest.has(cluster) && fitsSpread(cluster, chosen, rest, policy, previous))
    if (next === undefined) break
    chosen.push(next)
    rest.delete(next)
  }
  return chosen
}

/** A placed cluster always fits: a spread decides where leaves go, and moves none. */
function fitsSpread(
  cluster: ClusterFact,
  chosen: readonly ClusterFact[],
  rest: ReadonlySet<ClusterFact>,
  { spread = [] }: GlobalIngressPolicySpec['placement'],
  previous: ReadonlySet<string>,
): boolean {
  if (previous.has(cluster.name)) return true
  return spread.every(({ topologyKey, maxSkew }) => {
    const counts = new Map<string, number>()
    for (const each of rest) counts.set(domainOf(each, topologyKey), 0)
    for (const each of chosen) counts.set(domainOf(each, topologyKey), 0)
    for (const each of chosen)
      counts.set(domainOf(each, topologyKey), (counts.get(domainOf(each, topologyKey)) ?? 0) + 1)
    const own = (counts.get(domainOf(cluster, topologyKey)) ?? 0) + 1
    const least = Math.min(...[...counts].filter(([domain]) => hasRoom(domain, rest, topologyKey)).map(([, n]) => n))
    return own - least <= maxSkew
  })
}

/** A domain without further clusters cannot grow, and does not limit the others. */
function hasRoom(domain: string, rest: ReadonlySet<ClusterFact>, key: string): boolean {
  for (const cluster of rest) if (domainOf(cluster, key) === domain) return true
  return false
}

function domainOf({ labels, location }: ClusterFact, key: string): string {
  if (key === 'geo' || key === 'region' || key === 'zone') return location[key] ?? labels[key] ?? ''
  return labels[key] ?? ''
}

function groupOf({ labels }: ClusterFact, { affinityGroups = [] }: GlobalIngressPolicySpec['placement']): number {
  const index = affinityGroups.findIndex(({ matchLabels }) => matches(matchLabels, labels))
  return index < 0 ? affinityGroups.length : index
}

function matches(
  wanted: Readonly<Record<string, string>> | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  return wanted === undefined || Object.entries(wanted).every(([key, value]) => labels[key] === value)
}

function isTolerated(
  tolerations: readonly { key?: string | undefined; value?: string | undefined }[],
  key: string,
  value: string | undefined,
): boolean {
  return tolerations.some(
    (each) =>
      (each.key === undefined || each.key === key) && (each.value === undefined || each.value === (value ?? '')),
  )
}

function hasEffect(taints: ClusterFact['taints'], effect: 'NoPlace' | 'NoTraffic'): boolean {
  return taints.some((taint) => taint.effect === effect)
}

/** Messages are capped: a root may select 200 clusters. */
const MAX_MESSAGE = 1024

function describe(rejected: readonly Rejection[]): string {
  if (rejected.length === 0) return ''
  const text = [...rejected]
    .sort((a, b) => compareNames(a.cluster, b.cluster))
    .map(({ cluster, message }) => `${cluster}: ${message}`)
    .join('; ')
  return `; ${text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text}`
}

function byName(a: Placed, b: Placed): number {
  return compareNames(a.name, b.name)
}

/** By code unit, independent of the locale of the machine. */
function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
