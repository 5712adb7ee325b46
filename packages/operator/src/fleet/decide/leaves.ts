/**
 * All leaves of a root at once: the facts of each, its decision (leaf-phase.ts), and a summary for statuses. Pure.
 */
import type { Immutable } from '@seamark/kube/object'
import type { SyncResult } from './sync.ts'
import type { GlobalIngressSpec } from '../../api/global-ingress.ts'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { type HostAnswers, isAnsweredEverywhere, type Presence, presenceOf, silentServers } from './dns-presence.ts'
import {
  decideLeaf,
  isServing,
  type LeafDecision,
  type LeafFacts,
  type LeafTiming,
  type LeafObservation,
} from './leaf-phase.ts'
import { highestTtlSeconds, type TtlHistory } from './published-ttl.ts'
import type { LeafSummary } from './status.ts'

export interface LeavesFacts {
  readonly spec: Immutable<GlobalIngressSpec>
  /** TTLs of all roots that publish the hosts: this one, and those that share a host with it. */
  readonly ttls: readonly TtlHistory[]
  /** The plan for each cluster; one without an entry drains. */
  readonly lifecycles: ReadonlyMap<string, LeafFacts['lifecycle']>
  readonly leaves: ReadonlyMap<string, ObservedLeaf>
  /** Undefined: the DNS servers were not asked. */
  readonly answers: readonly HostAnswers[] | undefined
  /** By cluster that drains, wall clock in ms; one without an entry has no deadline. */
  readonly drainDeadlines: ReadonlyMap<string, number>
  /** The root may use none of its hosts: its leaves go without a replacement. @default false */
  readonly isGivenUp?: boolean
  /** Whether DNS is managed here. */
  readonly hasDns: boolean
  readonly nowMs: number
}

export interface ObservedLeaf {
  readonly leaf: Immutable<LeafIngress>
  readonly seen: LeafObservation
  readonly result: SyncResult | undefined
}

/** Without probes: how long a leaf is admitted before it counts as serving. */
const WARM_MS = 5_000
const DEBOUNCE_MS = 10_000

export function decideLeaves(facts: LeavesFacts): Map<string, LeafDecision> {
  const leaves = new Map([...facts.leaves].map(([cluster, observed]) => [cluster, factsOf(cluster, observed, facts)]))
  const serving = new Set([...leaves].filter(([, leaf]) => isServing(leaf)).map(([cluster]) => cluster))
  const replacements = new Replacements(serving, facts)
  return new Map(
    [...leaves].map(([cluster, leaf]) => {
      const othersServing = serving.size - (serving.has(cluster) ? 1 : 0)
      const isReplacementAnswered = replacements.isAnswered(cluster)
      const needsReplacement = facts.isGivenUp !== true
      return [cluster, decideLeaf({ ...leaf, othersServing, isReplacementAnswered, needsReplacement })]
    }),
  )
}

/**
 * Whether the servers have to be asked: a leaf leaves and DNS is not known to have forgotten it, or the hosts were not seen
 * in DNS yet.
 */
export function needsAnswers({ leaves, lifecycles, spec }: LeavesFacts, isVerified: boolean): boolean {
  if (!spec.published || spec.hosts.length === 0) return false
  if (!isVerified && [...leaves.values()].some(({ seen }) => seen.dns === 'present')) return true
  return [...leaves].some(([cluster, { leaf }]) => {
    const isLeaving = leaf.metadata.deletionTimestamp !== undefined || lifecycles.get(cluster) !== 'Active'
    const { phase = 'Pending', drainStartedAt } = leaf.status ?? {}
    return isLeaving && drainStartedAt === undefined && !['Pending', 'Applied', 'Drained'].includes(phase)
  })
}

function factsOf(
  cluster: string,
  { leaf, seen }: ObservedLeaf,
  { spec, ttls, lifecycles, answers, hasDns, drainDeadlines, nowMs }: LeavesFacts,
): Omit<LeafFacts, 'othersServing' | 'isReplacementAnswered' | 'needsReplacement'> {
  const { status, metadata } = leaf
  const isDeleting = metadata.deletionTimestamp !== undefined
  const drainStartedMs = pastTime(status?.drainStartedAt, nowMs)
  // Relative to the withdrawal and not to now: a wait of hours must not become shorter while it lasts.
  const ttlSeconds = hasDns ? highestTtlSeconds(ttls, drainStartedMs ?? nowMs) : 0
  return {
    phase: status?.phase ?? 'Pending',
    phaseSinceMs: pastTime(status?.phaseSince, nowMs) ?? nowMs,
    lifecycle: isDeleting ? 'Draining' : (lifecycles.get(cluster) ?? 'Draining'),
    isApplied: seen.isApplied,
    isAdmitted: seen.isAdmitted,
    hasAddresses: seen.addresses.length > 0,
    endpointsReady: seen.endpointsReady,
    probe: seen.probe,
    isProbeRequired: spec.isProbeRequired && hasDns,
    dns: dnsOf(seen, answers),
    isWithdrawn: seen.isWithdrawn,
    drainStartedMs,
    drainDeadlineMs: drainDeadlines.get(cluster),
    nowMs,
    timing: timingOf(spec, ttlSeconds),
  }
}

/** `ttlSeconds`: the highest that an answer with the leaf may have. */
function timingOf(spec: Immutable<GlobalIngressSpec>, ttlSeconds: number): LeafTiming {
  // Resolvers may have cached an answer for one TTL when it was withdrawn, and their clients for another.
  const cacheMs = 2 * ttlSeconds * 1000
  return {
    warmMs: WARM_MS,
    debounceMs: DEBOUNCE_MS,
    propagationMs: spec.propagationTimeoutSeconds * 1000,
    minHoldMs: spec.minHoldSeconds * 1000,
    cacheMs,
    drainMs: Math.max(cacheMs, spec.drainSeconds * 1000),
  }
}

/** Balance reports what it published; the servers show what is answered. */
function dnsOf({ dns, addresses }: LeafObservation, answers: readonly HostAnswers[] | undefined): Presence {
  if (dns !== 'absent' || answers === undefined) return dns
  // Addresses of host names are resolved by balance: its word is what there is.
  const fixed = addresses.filter(({ type }) => type === 'IPAddress')
  return fixed.length === 0 ? dns : presenceOf(fixed, answers)
}

/** What DNS servers answer of a leaf that serves. `unverifiable`: it has no fixed address to look for. */
type ServingAnswer = 'everywhere' | 'not everywhere' | 'unverifiable'

/** The leaves that can take over, counted once for all leaves: each asks about the others. */
class Replacements {
  readonly #answers = new Map<string, ServingAnswer>()
  readonly #counts = { everywhere: 0, 'not everywhere': 0, unverifiable: 0 }
  readonly #isVerified: boolean

  constructor(serving: ReadonlySet<string>, { answers, leaves, spec }: LeavesFacts) {
    this.#isVerified = answers !== undefined && spec.strategy !== 'failover'
    if (answers === undefined || !this.#isVerified) return
    const weights = new Map(spec.clusters.map(({ name, weight }) => [name, weight]))
    for (const cluster of serving) {
      // With weight 0 it is answered only when nothing else is.
      if (weights.get(cluster) === 0) continue
      const fixed = (leaves.get(cluster)?.seen.addresses ?? []).filter(({ type }) => type === 'IPAddress')
      const isFound = fixed.length > 0 && isAnsweredEverywhere(fixed, answers)
      const answer = fixed.length === 0 ? 'unverifiable' : isFound ? 'everywhere' : 'not everywhere'
      this.#answers.set(cluster, answer)
      this.#counts[answer] += 1
    }
  }

  /** Whether every server answers one of the leaves that can replace that of the cluster. Undefined: not to be verified. */
  isAnswered(cluster: string): boolean | undefined {
    const own = this.#answers.get(cluster)
    const others = this.#answers.size - (own === undefined ? 0 : 1)
    if (!this.#isVerified || others === 0) return undefined
    if (this.#counts.unverifiable - (own === 'unverifiable' ? 1 : 0) > 0) return undefined
    return this.#counts.everywhere - (own === 'everywhere' ? 1 : 0) > 0
  }
}

/** Whether DNS answers the hosts: by the servers when they were queried, else by the report of balance. */
export function isHostAnswered({ leaves, answers }: LeavesFacts): boolean {
  const published = [...leaves.values()].filter(({ seen }) => seen.dns === 'present')
  if (answers === undefined) return published.length > 0
  return published.some(({ seen: { addresses } }) => {
    const fixed = addresses.filter(({ type }) => type === 'IPAddress')
    return fixed.length === 0 || isAnsweredEverywhere(fixed, answers)
  })
}

export function summarizeLeaf(
  { leaf: { spec, status }, seen, result }: ObservedLeaf,
  { phase, reason }: LeafDecision,
  { spec: global, answers, nowMs }: LeavesFacts,
): LeafSummary {
  const sinceMs = pastTime(status?.phaseSince, nowMs) ?? nowMs
  const isWaiting = reason === 'WaitingForDns' || reason === 'ReplacementNotAnswered'
  const isLate = isWaiting && nowMs - sinceMs > global.propagationTimeoutSeconds * 1000
  return {
    cluster: spec.cluster,
    phase,
    reason,
    lifecycle: spec.lifecycle,
    isApplied: seen.isApplied ?? status?.appliedHash === spec.specHash,
    isAdmitted: seen.isAdmitted ?? status?.admitted === true,
    isStale: seen.isStale,
    endpointsReady: seen.isApplied === undefined ? status?.endpointsReady : seen.endpointsReady,
    addresses: seen.addresses,
    isPublished: seen.dns === 'present',
    message: result?.message || (phase === 'Pending' || phase === 'Applied' ? seen.message : ''),
    propagationFault:
      isLate && status?.phase === 'Draining' ? propagationFault(reason, silentServers(answers ?? [])) : undefined,
  }
}

function propagationFault(reason: LeafDecision['reason'], silent: readonly string[]): string {
  if (silent.length > 0)
    return `DNS servers do not answer: ${silent.join(', ')}; see fleet.dnsServers and fleet.verifyDns`
  return reason === 'WaitingForDns'
    ? 'DNS servers still answer the withdrawn leaf'
    : 'not every DNS server answers the leaf that takes over'
}

/** A stored time. One in the future was written by a clock that is ahead, and counts as now. */
function pastTime(text: string | undefined, nowMs: number): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : Math.min(ms, nowMs)
}
