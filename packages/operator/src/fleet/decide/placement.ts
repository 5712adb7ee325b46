/**
 * Placement: on which member clusters a root has leaves. Pure and deterministic.
 *
 * Steps: eligible clusters (ready, served, selected, not tainted, not draining, with the root's Services) → clusters of the
 * previous decision first → affinity groups, spread, weight, name → at most `maxClusters`.
 * Guarantees: the result does not depend on the order of its input. Movement is minimal: a placed cluster stays while it is
 * eligible and within `maxClusters`; a placed cluster that is not ready, or whose Services are unknown, stays too (API
 * unreachable is not data plane down). A cluster that leaves becomes Draining, never absent. Every cluster is placed or has a
 * reason why not, with what to change.
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
  /** Why each of the other clusters has no leaf; sorted by name. */
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
    else rejected.push({ cluster: cluster.name, ...rejection })
  }
  const chosen = choose(eligible, facts)
  const names = new Set(chosen.map(({ name }) => name))
  const surplus = surplusFinding(chosen.length, facts.policy)
  for (const { name } of eligible) if (!names.has(name)) rejected.push({ cluster: name, ...surplus })
  const placed: Placed[] = [
    ...chosen.map(({ name, taints }) => ({ name, state: hasEffect(taints, 'NoTraffic') ? NO_TRAFFIC : ACTIVE })),
    ...[...facts.existing].filter((name) => !names.has(name)).map((name) => ({ name, state: DRAINING })),
  ]
  const { minClusters } = facts.policy
  const hasMinimum = chosen.length >= minClusters
  // Fewer because somebody asked for a drain is as it was asked for, as long as something is left.
  const drained = hasMinimum || chosen.length === 0 ? [] : drainedClusters(facts)
  const isEnough = chosen.length + drained.length >= minClusters
  const count = `on ${chosen.length} of ${facts.clusters.length} clusters`
  return {
    placed: placed.sort(byName),
    rejected: rejected.sort((a, b) => compareNames(a.cluster, b.cluster)),
    reason: isEnough ? 'Placed' : 'NotEnoughClusters',
    message: hasMinimum
      ? `${count}${describe(rejected)}`
      : isEnough
        ? `${count}: fewer than minClusters ${minClusters} while ${drained.join(', ')} is drained${describe(rejected)}`
        : `${chosen.length} of at least ${minClusters} clusters are eligible${describe(rejected)}`,
  }
}

/** Clusters that would be eligible without their drain. */
function drainedClusters(facts: PlacementFacts): string[] {
  return facts.clusters
    .filter((cluster) => cluster.isDraining && !cluster.isDeleting)
    .filter((cluster) => findRejection({ ...cluster, isDraining: false }, facts) === undefined)
    .map(({ name }) => name)
    .sort(compareNames)
}

function surplusFinding(chosen: number, { maxClusters, spread = [] }: PlacementFacts['policy']): Finding {
  if (maxClusters !== undefined && chosen >= maxClusters)
    return {
      reason: 'PlacementLimitReached',
      message: `it is eligible, and placement.maxClusters is ${maxClusters}; raise it to use more`,
    }
  const rules = spread.map(({ topologyKey, maxSkew }) => `${topologyKey}, maxSkew ${maxSkew}`).join('; ')
  return {
    reason: 'SpreadLimitReached',
    message: `it is eligible, and placement.spread (${rules}) leaves no room; raise maxSkew, or add clusters in other domains`,
  }
}

const ACTIVE = 'Active' as const
const NO_TRAFFIC = 'NoTraffic' as const
const DRAINING = 'Draining' as const

type Finding = Omit<Rejection, 'cluster'>

function findRejection(cluster: ClusterFact, facts: PlacementFacts): Finding | undefined {
  const { policy, root, labelledClusters } = facts
  const { name } = cluster
  const unselected = findUnselected(cluster, facts)
  if (unselected !== undefined) return { reason: 'ClusterNotSelected', message: unselected }
  if (cluster.isDeleting) return { reason: 'ClusterDraining', message: 'it is being removed' }
  if (cluster.isDraining)
    return { reason: 'ClusterDraining', message: 'it is being drained; seamark undrain ends that' }
  if (cluster.allowedNamespaces !== undefined && !cluster.allowedNamespaces.includes(root.namespace))
    return {
      reason: 'NamespaceNotAllowed',
      message: `spec.allowedNamespaces of the Cluster does not contain ${root.namespace}; add it there`,
    }
  const taint = cluster.taints.find(
    ({ effect, key, value }) => effect === 'NoPlace' && !isTolerated(policy.tolerations ?? [], key, value),
  )
  if (taint !== undefined)
    return {
      reason: 'ClusterTainted',
      message: `taint ${taint.key}${taint.value === undefined ? '' : `=${taint.value}`} is not tolerated; add it to placement.tolerations, or remove it from the Cluster`,
    }
  const wasPlaced = facts.previous.has(name)
  if (!cluster.isReady && !wasPlaced)
    return { reason: 'ClusterNotReady', message: 'it is not ready; seamark cluster list shows why' }
  if (cluster.servedKinds !== undefined && !cluster.servedKinds.includes(root.kind))
    return { reason: 'CRDNotInstalled', message: `it does not serve ${root.kind}; install the CRD there` }
  return labelledClusters === undefined ? findBackendRejection(facts, name, wasPlaced) : undefined
}

/** Why the policy, or the labels of Services, do not select the cluster, and what would. */
function findUnselected(
  { name, labels }: ClusterFact,
  { policy, labelledClusters }: PlacementFacts,
): string | undefined {
  if (policy.clusters !== undefined && !policy.clusters.includes(name))
    return `placement.clusters is ${listOf(policy.clusters)}; add the cluster to it`
  const wanted = Object.entries(policy.clusterSelector?.matchLabels ?? {})
  const missing = wanted.find(([key, value]) => labels[key] !== value)
  if (missing !== undefined) {
    const [key, value] = missing
    const has = labels[key]
    return `placement.clusterSelector asks for the label ${key}=${value}, and the Cluster has ${has === undefined ? 'none' : `${key}=${has}`}; change one of them`
  }
  if (labelledClusters !== undefined && !labelledClusters.has(name))
    return `the label kcp.dev/cluster of the Services is ${listOf([...labelledClusters])}; change it, or remove it`
  return undefined
}

function findBackendRejection(facts: PlacementFacts, name: string, wasPlaced: boolean): Finding | undefined {
  const { backendAffinity } = facts.policy
  if (backendAffinity === 'Ignore') return undefined
  const backend = facts.backendOf(name)
  if (backend.state === 'present') return undefined
  if (backend.state === 'unknown')
    return wasPlaced ? undefined : { reason: 'BackendUnknown', message: 'its Services are not known yet' }
  if (backendAffinity === 'Any' && backend.isAnyPresent) return undefined
  return {
    reason: 'BackendMissing',
    message: `Service ${backend.services.join(', ')} does not exist there in namespace ${facts.root.namespace}; create it, or set placement.backendAffinity`,
  }
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

/** In a condition and an Event; `seamark tree` and `seamark explain` show all. */
const SHOWN_REJECTIONS = 3
/** Names in one message. */
const SHOWN_NAMES = 5

/** Clusters that the policy selects come first: most often it is one of these that should have a leaf. */
function describe(rejected: readonly Rejection[]): string {
  if (rejected.length === 0) return ''
  const rank = ({ reason }: Rejection): number => (reason === 'ClusterNotSelected' ? 1 : 0)
  const shown = [...rejected]
    .sort((a, b) => rank(a) - rank(b) || compareNames(a.cluster, b.cluster))
    .slice(0, SHOWN_REJECTIONS)
    .map(({ cluster, message }) => `not on ${cluster}: ${message}`)
  const more = rejected.length - shown.length
  return `; ${shown.join('; ')}${more === 0 ? '' : `; and ${more} more, which seamark tree lists`}`
}

function listOf(names: readonly string[]): string {
  const sorted = [...names].sort(compareNames)
  const more = sorted.length - SHOWN_NAMES
  return more <= 0 ? sorted.join(', ') : `${sorted.slice(0, SHOWN_NAMES).join(', ')} and ${more} more`
}

function byName(a: Placed, b: Placed): number {
  return compareNames(a.name, b.name)
}

/** By code unit, independent of the locale of the machine. */
function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
