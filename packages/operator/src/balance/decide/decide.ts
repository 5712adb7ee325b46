/**
 * What becomes of one load balancer: its records, its status, the status of its endpoints, the Events. Pure.
 *
 * Flow: facts (objects, verdicts, published records, provider) → `decide` → the shell passes `records` to the guarded
 * planner and then writes `whenApplied`, or what `whenRejected` gives for the provider's error.
 *
 * Invariants: deciding again on the result changes nothing; the order of endpoints does not matter; a name whose load
 * balancer exists loses its records only by `onAllUnhealthy: Remove` and known-bad verdicts (INV-1); at most six changes a
 * minute and name (INV-19).
 */
import { findCondition, type Immutable } from '@seamark/kube'
import { keyOf, type Kind } from '@seamark/kube/object'
import { type BalanceEvent, warning } from '../balance-event.ts'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer, type DNSLoadBalancerStatus } from '../../api/dns-load-balancer.ts'
import type { Verdict } from '../../health/verdict.ts'
import type { HostHolding } from '../../hosts/host-sources.ts'
import type { Reason } from '../../reasons.ts'
import { compareText } from '../../rrset/rrset.ts'
import type { BalancedSet } from './answer-shares.ts'
import { type Candidate, candidateOf, comparePreference, judgeEndpoint } from './endpoints.ts'
import { type EndpointHealth, type EndpointStatus, endpointStatusOf } from './endpoint-status.ts'
import {
  type Finding,
  findingOf,
  MAX_CHANGES_PER_MINUTE,
  type ProviderFact,
  READY_CONDITION,
  replacing,
  statusOf,
  type StatusFacts,
} from './finding.ts'
import { type BalanceDefaults, type BalancerSettings, readLoadBalancer } from '../load-balancer.ts'
import { type Membership, membershipOf } from './membership.ts'
import { isIn, type Lookup, recordSetsOf, sameRecords } from './record-sets.ts'
import { type JudgedCandidate, type Selection, selectEndpoints } from './select.ts'

export interface BalanceFacts extends StatusFacts {
  /** When this process began to decide: the start-up grace counts from here. Wall clock. */
  readonly startedMs: number
  readonly defaults: BalanceDefaults
  /** Key of the load balancer that holds the DNS name (claims.ts). */
  readonly holder: string | undefined
  /** Why its namespace may not use the name. */
  readonly nameFault?: string | undefined
  /** A source of publish that keeps the name from it. */
  readonly holding?: HostHolding | undefined
  /** Why its namespace may not have its health check; nothing is probed then. */
  readonly probeFault?: string | undefined
  /** Endpoints that refer to this load balancer, in any order. */
  readonly endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[]
  /** By key of the endpoint. */
  readonly verdictOf: (endpointKey: string) => Verdict
  /** The results behind the verdicts, for the conditions of endpoints. */
  readonly healthOf?: (endpointKey: string) => EndpointHealth
  /** A, AAAA and CNAME sets of the name at the provider; undefined when they could not be read. */
  readonly published: readonly BalancedSet[] | undefined
  /** The name is in a zone of our own DNS server, which answers by weight, priority and region. @default false */
  readonly answersByPolicy?: boolean
  readonly provider: ProviderFact
  readonly lookup: Lookup
  /** When the records of this name were changed lately. Wall clock. */
  readonly changesMs: readonly number[]
}

export type RecordsDecision =
  /** Publish exactly these; equal to `published` when nothing changes. */
  | {
      readonly kind: 'publish'
      readonly sets: readonly BalancedSet[]
      readonly cnames: readonly string[]
      readonly isChange: boolean
    }
  | { readonly kind: 'hold' }
  | { readonly kind: 'remove'; readonly isChange: boolean }

export interface BalanceReport {
  readonly status: DNSLoadBalancerStatus
  readonly events: readonly BalanceEvent[]
  /** For the object with the name: that this one names it, too. Once: the stored condition says that it was told. */
  readonly toHolder?: { readonly kind: Kind; readonly holder: string; readonly message: string }
  /** By endpoint key; only those that change. */
  readonly endpointStatuses: ReadonlyMap<string, EndpointStatus>
}

export interface BalanceDecision {
  readonly reason: Reason
  readonly records: RecordsDecision
  /** What to write and send once the records are as decided. */
  readonly whenApplied: BalanceReport
  /** What to write and send when the provider refused the records. */
  readonly whenRejected: (error: string, reason?: 'RecordRejected' | 'SecondWriter' | 'GuardTripped') => BalanceReport
  /** Expired endpoints; the reason says why. */
  readonly deletions: readonly { readonly key: string; readonly reason: Reason }[]
  /** Decide again after this time, even if nothing changes. */
  readonly againAfterMs: number | undefined
}

const MINUTE_MS = 60_000

export function decide(facts: BalanceFacts): BalanceDecision {
  const read = readLoadBalancer(facts.loadBalancer, facts.defaults)
  if ('invalid' in read) {
    return rest(facts, {
      reason: read.invalid,
      message: read.message,
      isReady: false,
      state: 'Error',
      active: undefined,
      events: [],
    })
  }
  const { settings } = read
  const { holding, nameFault } = facts
  if (nameFault !== undefined)
    return refuse(facts, 'NameNotGranted', nameFault, { ...warning(nameFault), reason: 'NameNotGranted' })
  // Records follow health until the source has its own: an older object of another tenant that only names the host, and never
  // gets an address, must not keep an unhealthy endpoint in the answer.
  const isServing = holding?.isInPlace === false && (facts.published?.length ?? 0) > 0
  if (holding !== undefined && !isServing) return yieldTo(holding, facts, settings)
  if (facts.holder !== undefined && facts.holder !== settings.key) {
    const message = `DNS name '${settings.dnsName}' is already used by load balancer '${facts.holder}'`
    const refused = refuse(facts, 'NameClaimed', message, warning(message))
    return tellHolder(refused, { kind: DNSLoadBalancer, key: facts.holder }, facts, settings)
  }
  // After the claims: an older load balancer keeps its name, or a younger one would change what is published.
  if (facts.probeFault !== undefined)
    return rest(facts, {
      reason: 'HealthCheckRefused',
      message: facts.probeFault,
      isReady: false,
      state: 'Error',
      active: undefined,
      events: [warning(facts.probeFault)],
    })
  return decideValid(facts, settings)
}

/** Once: what the stored condition says was told, also by an earlier process. */
function tellHolder(
  decision: BalanceDecision,
  { kind, key }: { readonly kind: Kind; readonly key: string },
  { loadBalancer }: BalanceFacts,
  settings: BalancerSettings,
): BalanceDecision {
  const messageIn = (status: BalanceFacts['loadBalancer']['status']) =>
    findCondition(status?.conditions, READY_CONDITION)?.message
  if (messageIn(loadBalancer.status) === messageIn(decision.whenApplied.status)) return decision
  const message = `DNSLoadBalancer ${settings.key} names host ${settings.dnsName}, too; it belongs to this object, which is older`
  return { ...decision, whenApplied: { ...decision.whenApplied, toHolder: { kind, holder: key, message } } }
}

/** It may not have its name. */
function refuse(
  facts: BalanceFacts,
  reason: 'NameClaimed' | 'NameNotGranted',
  message: string,
  event: BalanceEvent,
): BalanceDecision {
  return rest(facts, { reason, message, isReady: false, state: 'Error', active: [], events: [event] })
}

/**
 * It publishes nothing, and removes what it has when the DNSEndpoint of the source has the name. Publish tells its sources with
 * an Event, so that only a root is told here.
 */
function yieldTo(
  { source: { kind, namespace, name, createdAt }, root, isInPlace, forMs }: HostHolding,
  facts: BalanceFacts,
  settings: BalancerSettings,
): BalanceDecision {
  const { dnsName } = settings
  const holder = `${kind} ${namespace}/${name}`
  const isPending = forMs !== undefined
  const decision = rest(facts, {
    reason: isPending ? 'ClaimPending' : 'ClaimHeldByOther',
    message: isPending
      ? `DNS name '${dnsName}' was released by ${holder} less than 30 s ago; it is published after that`
      : `DNS name '${dnsName}' belongs to ${holder} since ${createdAt}, and ${root === undefined ? 'publish publishes' : 'the fleet places'} it`,
    isReady: false,
    state: 'Error',
    active: isInPlace ? [] : undefined,
    events: [],
  })
  const isChange = (facts.published?.length ?? 0) > 0
  const yielded: BalanceDecision = {
    ...decision,
    ...(isInPlace && { records: { kind: 'remove', isChange } }),
    againAfterMs: forMs,
  }
  if (root === undefined) return yielded
  return tellHolder(yielded, { kind: root, key: `${namespace}/${name}` }, facts, settings)
}

function decideValid(facts: BalanceFacts, settings: BalancerSettings): BalanceDecision {
  const { usable, deletions, againAfterMs } = triage(facts)
  const published = facts.published
  const candidates = usable.map((candidate) => judge(candidate, usable, facts))
  const byKey = new Map(candidates.map((candidate) => [candidate.key, candidate]))
  const selection = selectEndpoints({
    settings,
    candidates,
    isNamePublished: published === undefined ? hasActive(facts) : published.length > 0,
    answersByPolicy: facts.answersByPolicy === true,
    currentKeys: currentOf(candidates, facts, settings),
  })
  const { records, reason, waitMs } = recordsOf(selection, facts, settings)
  const active = activeOf(records, selection, candidates)
  const finding = findingOf({
    provider: facts.provider,
    settings,
    candidates,
    records,
    reason,
    active,
    selection,
    maxChangesPerMinute: mostChanges(facts.defaults),
  })
  const applied = statusOf(facts, finding)
  const events = [
    ...finding.events,
    ...(finding.isReady && applied.state === 'healthy' && isNews(facts, records)
      ? [{ type: 'Normal' as const, message: 'healthy again' }]
      : []),
    ...deletions.map(({ key }) => ({ type: 'Normal' as const, message: `dns load balancer endpoint ${key} deleted` })),
  ]
  const deleted = new Set(deletions.map(({ key }) => key))
  const statusesFor = (of: Finding, activeKeys: ReadonlySet<string>) => {
    const whole = { type: settings.type, finding: of }
    return endpointStatuses(facts, deleted, (key) => membershipOf(byKey.get(key), activeKeys.has(key), whole))
  }
  return {
    reason: finding.reason,
    records,
    whenApplied: {
      status: applied,
      events,
      endpointStatuses: statusesFor(finding, new Set((finding.active ?? []).map(({ key }) => key))),
    },
    whenRejected(error, rejected = 'RecordRejected') {
      const message = `${replacing(settings, active)}: ${error}`
      const rejection: Finding = { reason: rejected, message, isReady: false, active: undefined, events: [] }
      return {
        status: statusOf(facts, rejection),
        events: [warning(message)],
        endpointStatuses: statusesFor(rejection, activeBefore(facts)),
      }
    },
    deletions,
    againAfterMs: earliest(againAfterMs, waitMs),
  }
}

/** Whether the status does not contain it already: a restart on a converged state sends no Event. */
function isNews({ loadBalancer: { status } }: BalanceFacts, records: RecordsDecision): boolean {
  const isReady = status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True')
  return status?.state !== 'healthy' || isReady !== true || (records.kind === 'publish' && records.isChange)
}

/** A load balancer that publishes nothing of its own; what is published in its name stays. */
function rest(facts: BalanceFacts, finding: Finding): BalanceDecision {
  const activeKeys = finding.active === undefined ? activeBefore(facts) : new Set<string>()
  const applied = {
    status: statusOf(facts, finding),
    events: finding.events,
    endpointStatuses: endpointStatuses(facts, new Set(), (key) => ({
      isActive: activeKeys.has(key),
      reason: finding.reason,
      message: finding.message,
    })),
  }
  return {
    reason: finding.reason,
    records: { kind: 'hold' },
    whenApplied: applied,
    whenRejected: () => applied,
    deletions: [],
    againAfterMs: undefined,
  }
}

function triage(facts: BalanceFacts) {
  const usable: Candidate[] = []
  const deletions: { key: string; reason: Reason }[] = []
  let againAfterMs: number | undefined
  for (const endpoint of facts.endpoints) {
    if (endpoint.metadata.deletionTimestamp !== undefined) continue
    const judged = judgeEndpoint(endpoint, true, facts.startedMs, facts.nowMs)
    if (judged.fate === 'delete') deletions.push({ key: keyOf(endpoint), reason: judged.reason })
    if (judged.fate !== 'use' && judged.fate !== 'grace') continue
    if (judged.fate === 'grace') againAfterMs = earliest(againAfterMs, judged.forMs)
    const validUntilMs = Date.parse(endpoint.status?.validUntil ?? '')
    if (judged.fate === 'use' && !Number.isNaN(validUntilMs))
      againAfterMs = earliest(againAfterMs, validUntilMs - facts.nowMs)
    const candidate = candidateOf(endpoint)
    if (candidate !== undefined) usable.push(candidate)
  }
  usable.sort(comparePreference)
  deletions.sort((a, b) => compareText(a.key, b.key))
  return { usable, deletions, againAfterMs }
}

function judge(candidate: Candidate, all: readonly Candidate[], facts: BalanceFacts): JudgedCandidate {
  // A status may be older than the records: it counts only where another endpoint explains the address in them.
  const isOfAnother = candidate.wasLeftOut && all.some((other) => !other.wasLeftOut && isSameTarget(other, candidate))
  const isPublished =
    facts.published === undefined
      ? (facts.loadBalancer.status?.active ?? []).some(({ name }) => name === candidate.name)
      : !isOfAnother && isIn(candidate, facts.published, facts.lookup)
  return { ...candidate, verdict: facts.verdictOf(candidate.key), isPublished }
}

function isSameTarget(a: Candidate, b: Candidate): boolean {
  return a.target.type === b.target.type && a.target.value === b.target.value
}

function hasActive(facts: BalanceFacts): boolean {
  return (facts.loadBalancer.status?.active ?? []).length > 0
}

/** Exclusive stickiness is stored in DNS, so it survives restarts; the status is used when the records cannot be read. */
function currentOf(
  candidates: readonly JudgedCandidate[],
  { published, lookup }: BalanceFacts,
  { recordName, ttlSeconds }: BalancerSettings,
): ReadonlySet<string> {
  const isCurrent = (each: JudgedCandidate) =>
    published === undefined
      ? each.isPublished
      : sameRecords(recordSetsOf(recordName, ttlSeconds, [each], lookup).sets, published)
  return new Set(candidates.filter(isCurrent).map(({ key }) => key))
}

function recordsOf(
  selection: Selection,
  { published, lookup, provider, changesMs, nowMs, answersByPolicy, defaults }: BalanceFacts,
  { recordName, ttlSeconds }: BalancerSettings,
): { records: RecordsDecision; reason: Reason; waitMs?: number } {
  const { reason } = selection
  const held = (why: Reason = reason, waitMs?: number) => ({
    records: { kind: 'hold' as const },
    reason: why,
    ...(waitMs !== undefined && { waitMs }),
  })
  // A provider that is missing or broken takes no record away.
  if (provider.state !== 'ready' || selection.kind === 'hold') return held()
  const recent = changesMs.filter((atMs) => nowMs - atMs < MINUTE_MS).sort((a, b) => a - b)
  const tooMany = recent.length >= mostChanges(defaults)
  const retryMs = (recent[0] ?? nowMs) + MINUTE_MS - nowMs
  if (selection.kind === 'remove') {
    const isChange = published === undefined || published.length > 0
    if (isChange && tooMany) return held('ChangeRateLimited', retryMs)
    return { records: { kind: 'remove', isChange }, reason }
  }
  const { sets, cnames } = recordSetsOf(
    recordName,
    ttlSeconds,
    selection.chosen,
    lookup,
    answersByPolicy === true ? (published ?? []) : undefined,
  )
  if (sets.length === 0) return held('TargetUnresolved')
  const isChange = published === undefined || !sameRecords(sets, published, true)
  if (isChange && tooMany && published !== undefined) return held('ChangeRateLimited', retryMs)
  return { records: { kind: 'publish', sets, cnames, isChange }, reason }
}

function mostChanges({ maxChangesPerMinute = MAX_CHANGES_PER_MINUTE }: BalanceDefaults): number {
  return maxChangesPerMinute
}

function activeOf(
  records: RecordsDecision,
  selection: Selection,
  candidates: readonly JudgedCandidate[],
): readonly JudgedCandidate[] {
  switch (records.kind) {
    case 'publish':
      return selection.kind === 'serve' ? selection.chosen : []
    case 'hold':
      return candidates.filter(({ isPublished }) => isPublished)
    case 'remove':
      return []
  }
}

function activeBefore({ endpoints }: BalanceFacts): ReadonlySet<string> {
  return new Set(endpoints.filter(({ status }) => status?.active === true).map(keyOf))
}

function endpointStatuses(
  facts: BalanceFacts,
  deleted: ReadonlySet<string>,
  membershipOfKey: (key: string) => Membership,
): ReadonlyMap<string, EndpointStatus> {
  const { nowMs, verdictOf, healthOf } = facts
  const changed = new Map<string, EndpointStatus>()
  for (const endpoint of facts.endpoints) {
    const key = keyOf(endpoint)
    if (deleted.has(key)) continue
    const findings = { nowMs, verdict: verdictOf(key), membership: membershipOfKey(key), health: healthOf?.(key) }
    const next = endpointStatusOf(endpoint, findings)
    if (next !== undefined) changed.set(key, next)
  }
  return changed
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return Math.min(a, b)
}
