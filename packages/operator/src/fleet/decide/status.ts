/**
 * Status of a root: the conditions of its GlobalIngress, the merged addresses, and one line of text. Pure.
 *
 * Guarantees: independent of the order of leaves; `lastTransitionTime` changes only with the status of a condition; a leaf
 * whose cluster cannot be read keeps its last addresses in the merge.
 */
import { type Condition, findCondition, setCondition } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { GlobalIngressSpec, GlobalIngressStatus } from '../../api/global-ingress.ts'
import type { LeafAddress, Phase } from '../../api/leaf-ingress.ts'
import { type Reason, REASONS } from '../../reasons.ts'
import type { PlacementDecision } from './placement.ts'

export interface LeafSummary {
  readonly cluster: string
  readonly phase: Phase
  readonly reason: Reason
  readonly lifecycle: 'Active' | 'NoTraffic' | 'Draining'
  readonly isApplied: boolean
  readonly isAdmitted: boolean
  readonly isStale: boolean
  readonly endpointsReady: number | undefined
  readonly addresses: readonly LeafAddress[]
  /** DNS answers an address of the leaf. */
  readonly isPublished: boolean
  /** The message of the member or its API server; '' when there is none. */
  readonly message: string
  /** What DNS servers did not show within `propagationTimeoutSeconds`; undefined: nothing is late. */
  readonly propagationFault: string | undefined
}

export interface StatusFacts {
  readonly spec: Immutable<GlobalIngressSpec>
  readonly generation: number
  /** Where the settings come from. */
  readonly policy: string
  readonly leaves: readonly LeafSummary[]
  /** Hosts that the root names and does not own, with the reason. */
  readonly refusedHosts: readonly { readonly host: string; readonly reason: Reason; readonly message: string }[]
  /** Clusters for which the leaf could not be rendered as it was asked for, with the reason. */
  readonly refusedLeaves: readonly { readonly cluster: string; readonly reason: Reason; readonly message: string }[]
  readonly placement: Pick<PlacementDecision, 'reason' | 'message' | 'rejected'>
  /** Shared hosts that no cluster serves completely. */
  readonly partialHosts: readonly string[]
  /** Undefined: DNS is not managed here, or not read yet. */
  readonly isDnsVerified: boolean | undefined
  /** What the DNS servers of the hosts answer, sorted; undefined: not known. */
  readonly answered: readonly string[] | undefined
  /** How that differs from what was published, in words; undefined: it does not, or it is not known. */
  readonly answerFault: string | undefined
  /** What the manager itself lacks to publish hosts: a kind, a right. Undefined: nothing. */
  readonly blocked: { readonly reason: Reason; readonly message: string } | undefined
  /** DNS servers that did not answer. */
  readonly silentServers: readonly string[]
  readonly previous: Immutable<Condition[]> | undefined
  readonly nowMs: number
}

export interface StatusDecision {
  readonly status: GlobalIngressStatus
  /** `ready 2/3; draining eu1`. */
  readonly summary: string
}

export function decideStatus(facts: StatusFacts): StatusDecision {
  const leaves = [...facts.leaves].sort((a, b) => (a.cluster < b.cluster ? -1 : 1))
  const wanted = leaves.filter(({ lifecycle }) => lifecycle !== 'Draining')
  const serving = leaves.filter(({ phase, lifecycle }) => phase === 'Active' && lifecycle === 'Active')
  const admitted = wanted.filter(({ isAdmitted }) => isAdmitted)
  let conditions: Immutable<Condition[]> = facts.previous ?? []
  const set = (type: string, isTrue: boolean, reason: Reason, message: string): void => {
    const next = { type, status: isTrue ? 'True' : 'False', reason, message: cap(message) } as const
    conditions = setCondition(conditions, { ...next, observedGeneration: facts.generation }, facts.nowMs)
  }
  const isAccepted = facts.spec.hosts.length > 0
  const refused = facts.refusedHosts.map(({ message }) => message).join('; ')
  set(
    'HostsOwned',
    isAccepted,
    isAccepted ? 'HostsOwned' : (facts.refusedHosts[0]?.reason ?? 'HostMissing'),
    refused || (isAccepted ? 'every host is owned' : REASONS.HostMissing),
  )
  const { placement } = facts
  set('Placed', placement.reason === 'Placed', placement.reason, placement.message)
  const unsynced = wanted.filter(({ isApplied }) => !isApplied)
  // Nothing is applied, admitted or serving because there is no leaf: why is what there is to say.
  const absence = wanted.length === 0 ? absenceOf(leaves, facts) : undefined
  if (absence === undefined) {
    set(
      'Synced',
      unsynced.length === 0,
      unsynced.length === 0 ? 'LeavesApplied' : 'ApplyPending',
      listOf(unsynced, 'every leaf is applied'),
    )
    const unadmitted = wanted.filter(({ isAdmitted }) => !isAdmitted)
    set(
      'Admitted',
      admitted.length > 0,
      admitted.length > 0 ? 'LeavesAdmitted' : 'AdmissionPending',
      `${admitted.length}/${wanted.length} leaves are admitted${unadmitted.length === 0 ? '' : `; ${listOf(unadmitted, '')}`}`,
    )
  } else for (const type of ['Synced', 'Admitted']) set(type, false, absence.reason, absence.message)
  const silence =
    facts.silentServers.length === 0 ? '' : `; no answer: ${facts.silentServers.join(', ')}; see fleet.dnsServers`
  const isWritten = facts.spec.published && facts.isDnsVerified !== false
  const isPublished = isWritten && facts.answerFault === undefined
  if (facts.answerFault !== undefined)
    set('DNSPublished', false, 'AnswerDiffers', `${facts.answerFault}; seamark explain HOST shows who wrote it`)
  else if (!isPublished && absence !== undefined)
    set('DNSPublished', false, absence.reason, `nothing is published: ${absence.message}`)
  else if (!isPublished && facts.blocked !== undefined)
    set('DNSPublished', false, facts.blocked.reason, facts.blocked.message)
  else
    set(
      'DNSPublished',
      isPublished,
      isPublished ? 'Published' : 'NotYetPropagated',
      isPublished ? 'DNS answers the hosts' : `DNS does not answer the hosts yet${silence}`,
    )
  const degraded = degradations(leaves, facts)
  set(
    'Degraded',
    degraded.length > 0,
    degraded[0]?.reason ?? 'Serving',
    degraded.map(({ message }) => message).join('; ') || 'nothing is degraded',
  )
  const isReady = isAccepted && serving.length > 0 && isPublished
  // What the manager lacks matters once there is something that it could publish.
  const cause = absence ?? (admitted.length > 0 ? facts.blocked : undefined)
  const served = `${serving.length}/${wanted.length} leaves serve`
  const fault = cause ?? firstFault(wanted, placement.reason, findCondition(conditions, 'DNSPublished'))
  set(
    'Ready',
    isReady,
    isReady ? 'Serving' : isAccepted ? fault.reason : 'HostsNotOwned',
    absence?.message ?? (isReady ? served : `${served}: ${fault.message}`),
  )
  const draining = leaves.filter(({ phase }) => phase === 'Draining').map(({ cluster }) => cluster)
  const spares = placement.rejected.filter(({ reason }) => SPARE.has(reason)).slice(0, MAX_SPARES)
  const notPlaced = groupByReason(placement.rejected)
  return {
    status: {
      observedGeneration: facts.generation,
      policy: facts.policy,
      leaves: leaves.map((leaf) => ({
        cluster: leaf.cluster,
        phase: leaf.phase,
        reason: leaf.reason,
        admitted: leaf.isAdmitted,
        ...(leaf.isStale && { stale: true }),
        ...(leaf.endpointsReady !== undefined && { endpointsReady: leaf.endpointsReady }),
        addresses: leaf.addresses.map(({ value }) => value),
        published: leaf.isPublished,
      })),
      addresses: mergeAddresses(leaves).map(({ value }) => value),
      ...(facts.answered !== undefined && { answered: [...facts.answered] }),
      ...(spares.length > 0 && { spareClusters: spares.map(({ cluster }) => cluster) }),
      ...(notPlaced.length > 0 && { notPlaced }),
      conditions: conditions as Condition[],
    },
    summary: [
      `ready ${serving.length}/${wanted.length}`,
      ...(absence === undefined ? [] : [absence.reason]),
      ...(draining.length === 0 ? [] : [`draining ${draining.join(', ')}`]),
    ].join('; '),
  }
}

/** For the status of the root: the managed hosts once DNS answers them, else the merged addresses. */
export function statusAddresses(
  { hosts, statusMode }: Immutable<Pick<GlobalIngressSpec, 'hosts' | 'statusMode'>>,
  leaves: readonly LeafSummary[],
  isAnswered: boolean,
): LeafAddress[] {
  const managed = hosts.flatMap((host) => (host.managed === undefined ? [] : [host.managed]))
  if (statusMode !== 'Merged' && managed.length > 0 && isAnswered)
    return managed.map((value) => ({ type: 'Hostname', value }))
  return statusMode === 'ManagedHost' ? [] : mergeAddresses(leaves)
}

/**
 * The union over leaves that take traffic: IPv4 numerically, then IPv6, then host names. A leaf that drains without a
 * replacement is still in it.
 */
export function mergeAddresses(
  leaves: readonly Pick<LeafSummary, 'phase' | 'reason' | 'isAdmitted' | 'addresses'>[],
): LeafAddress[] {
  const taking = leaves.filter(
    ({ phase, reason, isAdmitted }) =>
      isAdmitted && (reason === 'NoReplacement' || (phase !== 'Draining' && phase !== 'Drained')),
  )
  const unique = new Map(taking.flatMap(({ addresses }) => addresses).map((address) => [address.value, address]))
  const ordered = [...unique.values()].map((address) => ({ address, order: orderOf(address) }))
  return ordered.sort((a, b) => compareText(a.order, b.order)).map(({ address }) => address)
}

function orderOf({ type, value }: LeafAddress): string {
  if (type === 'Hostname') return `3 ${value}`
  if (value.includes(':')) return `2 ${value}`
  return `1 ${value
    .split('.')
    .map((part) => part.padStart(3, '0'))
    .join('.')}`
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

interface Degradation {
  readonly reason: Reason
  readonly message: string
}

/** Why a root has no leaf that is wanted: the first that somebody can act on. */
function absenceOf(
  leaves: readonly LeafSummary[],
  { refusedHosts, refusedLeaves, placement }: StatusFacts,
): Degradation {
  const kept = leaves.filter(({ reason }) => reason === 'NoReplacement').map(({ cluster }) => cluster)
  const rest = kept.length === 0 ? '' : `; ${kept.join(', ')} goes on serving`
  const [leaf] = refusedLeaves
  if (leaf !== undefined)
    return { reason: leaf.reason, message: `no leaf: ${refusedLeaves.map(({ message }) => message).join('; ')}${rest}` }
  if (placement.reason !== 'Placed')
    return { reason: placement.reason, message: `no leaf: ${placement.message}${rest}` }
  const [host] = refusedHosts
  if (host !== undefined) return { reason: host.reason, message: `no leaf: ${host.message}${rest}` }
  return { reason: 'ApplyPending', message: `no leaf yet${rest}` }
}

/** Eligible, and not used. */
const SPARE: ReadonlySet<Reason> = new Set(['PlacementLimitReached', 'SpreadLimitReached'])

/** Clusters with one reason in one entry: a root may leave 200 clusters out. */
function groupByReason(rejected: StatusFacts['placement']['rejected']): NonNullable<GlobalIngressStatus['notPlaced']> {
  const groups = new Map<string, { reason: string; message: string; clusters: string[] }>()
  for (const { cluster, reason, message } of rejected) {
    const key = `${reason} ${message}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { reason, message, clusters: [cluster] })
    else group.clusters.push(cluster)
  }
  return [...groups.values()]
}

function degradations(
  leaves: readonly LeafSummary[],
  { refusedHosts, refusedLeaves, placement, partialHosts, blocked }: StatusFacts,
): Degradation[] {
  const found: Degradation[] = blocked === undefined ? [] : [blocked]
  if (placement.reason !== 'Placed') found.push(placement)
  for (const { reason, message } of [...refusedHosts, ...refusedLeaves]) found.push({ reason, message })
  for (const host of partialHosts)
    found.push({ reason: 'PartialPaths', message: `host ${host}: no cluster serves all roots that share it` })
  for (const { cluster, phase, reason, isStale, propagationFault, message } of leaves) {
    if (propagationFault !== undefined)
      found.push({ reason: 'PropagationTimeout', message: `${cluster}: ${propagationFault}` })
    else if (phase === 'Unhealthy' || reason === 'NoReplacement')
      found.push({ reason, message: `${cluster}: ${message || REASONS[reason]}` })
    else if (isStale) found.push({ reason: 'ClusterUnreachable', message: `${cluster}: its API server cannot be read` })
  }
  return found
}

/** Why a root with leaves is not ready: none is admitted, none serves, or DNS. The message is about what the reason names. */
function firstFault(
  wanted: readonly LeafSummary[],
  placement: Reason,
  dns: Pick<Condition, 'reason' | 'message'> | undefined,
): Degradation {
  const idle = wanted.filter(({ phase, lifecycle }) => phase !== 'Active' || lifecycle !== 'Active')
  if (!wanted.some(({ isAdmitted }) => isAdmitted))
    return { reason: placement === 'Placed' ? 'AdmissionPending' : placement, message: listOf(wanted, '') }
  if (idle.length < wanted.length)
    return { reason: (dns?.reason ?? 'NotYetPropagated') as Reason, message: dns?.message ?? '' }
  // One that fails its checks before one that has not passed them yet.
  const first = idle.find(({ phase }) => phase === 'Unhealthy') ?? idle.find(({ isAdmitted }) => isAdmitted)
  return { reason: first?.reason ?? 'ProbePending', message: listOf(idle, '') }
}

function listOf(leaves: readonly LeafSummary[], otherwise: string): string {
  if (leaves.length === 0) return otherwise
  return leaves.map(({ cluster, reason, message }) => `${cluster}: ${message || REASONS[reason]}`).join('; ')
}

/** Enough to choose from; a root may select 200 clusters. */
const MAX_SPARES = 20
/** 1 KiB. */
const MAX_MESSAGE = 1024

function cap(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message
}
