/**
 * The state machine of a leaf: from what is known about it to its phase and its place in DNS. Pure.
 *
 *   Pending → Applied → Admitted → Warming → Active ⇄ Unhealthy;  any of these → Draining → Drained → (deleted)
 *
 * Guarantees:
 * - A leaf that serves is withdrawn only while another leaf serves (`othersServing`): health and drains never make a host
 *   unreachable. A leaf without replacement stays, and says so (NoReplacement).
 * - A leaf that drains is withdrawn only when every DNS server answers one of those that take over.
 * - Draining ends only after DNS was verified not to answer the leaf, and the wait that starts at that time. A leaf that was
 *   never in DNS needs no wait. A deadline shortens the wait to what caches need, and never withdraws or deletes a leaf that
 *   DNS answers.
 * - The phase is stored in the status of the LeafIngress and everything else is observed, so that a restart continues where
 *   the last process stopped.
 */
import type { LeafAddress, Phase } from '../../api/leaf-ingress.ts'
import type { Reason } from '../../reasons.ts'
import type { Presence } from './dns-presence.ts'

export interface LeafFacts {
  readonly phase: Phase
  /** Wall clock, ms, when the phase began. */
  readonly phaseSinceMs: number
  /** What the plan requests: traffic, the leaf without traffic, or the leaf gone. */
  readonly lifecycle: 'Active' | 'NoTraffic' | 'Draining'
  /** The member has the current manifests. Undefined: unknown, as the member cannot be read. */
  readonly isApplied: boolean | undefined
  /** Undefined: unknown. */
  readonly isAdmitted: boolean | undefined
  readonly hasAddresses: boolean
  /** Undefined: unknown or not fresh. */
  readonly endpointsReady: number | undefined
  /** Verdict of the probes. */
  readonly probe: 'healthy' | 'unhealthy' | 'unknown'
  /** Whether a successful probe is required before the leaf serves. */
  readonly isProbeRequired: boolean
  /** Leaves of the same root, other than this one, that serve and go on doing so (`isServing`). */
  readonly othersServing: number
  /** Whether DNS answers an address of the leaf. `unknown`: it could not be verified. */
  readonly dns: Presence
  /** Whether the leaf is already left out of DNS: its endpoints have `drain: true`, or there are none. */
  readonly isWithdrawn: boolean
  /**
   * Whether every DNS server answers a leaf that can take over. False also while it could not be verified; undefined: not
   * to be verified, as with one address for all of DNS (failover).
   */
  readonly isReplacementAnswered: boolean | undefined
  /** False: the root may not have its hosts, so that a leaf that drains need not serve until another one does. @default true */
  readonly needsReplacement?: boolean
  /** Wall clock, ms, when DNS was verified not to answer the leaf. */
  readonly drainStartedMs: number | undefined
  /** Wall clock, ms, by which the drain of its cluster should be over (`Cluster.spec.drain.deadline`). */
  readonly drainDeadlineMs: number | undefined
  readonly nowMs: number
  readonly timing: LeafTiming
}

/** What is known about a leaf from the caches of its member and of the hub. */
export interface LeafObservation {
  /** Undefined: the member cannot be read. */
  readonly isApplied: boolean | undefined
  /** Undefined: the member cannot be read. */
  readonly isAdmitted: boolean | undefined
  /** The last known ones while the member cannot be read. */
  readonly addresses: readonly LeafAddress[]
  /** Undefined: unknown. */
  readonly endpointsReady: number | undefined
  /** The member cannot be read, and was tried. */
  readonly isStale: boolean
  readonly remote: { readonly uid: string; readonly generation: number | undefined } | undefined
  readonly probe: LeafFacts['probe']
  /** By what balance published. */
  readonly dns: LeafFacts['dns']
  /** No endpoint of the leaf is offered to DNS. */
  readonly isWithdrawn: boolean
  readonly message: string
}

export interface LeafTiming {
  /** Without probes: how long a leaf is admitted before it serves. */
  readonly warmMs: number
  /** From verified withdrawal to deletion. */
  readonly drainMs: number
  /** How long resolvers and clients may keep a withdrawn answer: the part of `drainMs` that a deadline does not shorten. */
  readonly cacheMs: number
  /** Least time in Unhealthy. */
  readonly minHoldMs: number
  /** How long admission must be lost before the leaf is withdrawn. */
  readonly debounceMs: number
  /** Within this time DNS servers should show a change. */
  readonly propagationMs: number
}

/**
 * `none`: no DNS object; `offer`: a target that may serve when it is healthy; `withdraw`: a target that serves only while
 * no other can.
 */
export type DnsRole = 'none' | 'offer' | 'withdraw'

export interface LeafDecision {
  readonly phase: Phase
  readonly reason: Reason
  readonly dns: DnsRole
  /** New value; undefined clears it. */
  readonly drainStartedMs: number | undefined
  /** Decide again at this time, even without a change. */
  readonly againAtMs: number | undefined
}

/** Active, wanted, and nothing known against it: such a leaf can take over from others. */
export function isServing(
  leaf: Pick<LeafFacts, 'phase' | 'lifecycle' | 'isAdmitted' | 'endpointsReady' | 'probe'>,
): boolean {
  const isUp = leaf.endpointsReady !== 0 && leaf.probe !== 'unhealthy' && leaf.isAdmitted !== false
  return leaf.phase === 'Active' && leaf.lifecycle === 'Active' && isUp
}

export function decideLeaf(facts: LeafFacts): LeafDecision {
  if (facts.phase === 'Drained') {
    // A leaf that is planned again before it was deleted starts over; nothing of it is in DNS.
    if (facts.lifecycle === 'Draining') return result('Drained', 'DrainCompleted', 'none')
    return decideLeaf({ ...facts, phase: 'Pending', phaseSinceMs: facts.nowMs, drainStartedMs: undefined })
  }
  if (facts.lifecycle !== 'Active') return decideWithdrawal(facts)
  // Planned again while it was draining: it is still applied, and serves as soon as it is healthy.
  if (facts.phase === 'Draining') return decideForward({ ...facts, phase: 'Active', phaseSinceMs: facts.nowMs })
  return decideForward(facts)
}

/** Towards Active. */
function decideForward(facts: LeafFacts): LeafDecision {
  const { phase } = facts
  const hasServed = phase === 'Active' || phase === 'Unhealthy'
  // The member cannot be read: what is known stays, and the probes decide.
  const isAdmitted = facts.isAdmitted ?? hasReached(phase, 'Admitted')
  if (!isAdmitted) return hasServed ? decideLostAdmission(facts) : decideUnadmitted(facts)
  if (hasServed) return decideHealth(facts)
  return decideWarming(facts)
}

function decideUnadmitted(facts: LeafFacts): LeafDecision {
  const isApplied = facts.isApplied ?? hasReached(facts.phase, 'Applied')
  return isApplied ? result('Applied', 'AdmissionPending', 'none') : result('Pending', 'ApplyPending', 'none')
}

function decideLostAdmission(facts: LeafFacts): LeafDecision {
  const { nowMs, phaseSinceMs, phase, timing, othersServing } = facts
  if (othersServing === 0) return result(phase, 'NoReplacement', 'offer')
  // The debounce is the phase Unhealthy: already withdrawn, and back as soon as the address returns.
  if (phase === 'Active')
    return { ...result('Unhealthy', 'AdmissionLost', 'withdraw'), againAtMs: nowMs + timing.debounceMs }
  const untilMs = phaseSinceMs + timing.debounceMs
  if (nowMs < untilMs) return { ...result('Unhealthy', 'AdmissionLost', 'withdraw'), againAtMs: untilMs }
  return decideUnadmitted(facts)
}

function decideWarming(facts: LeafFacts): LeafDecision {
  const { probe, isProbeRequired, nowMs, phase, phaseSinceMs, timing } = facts
  const since = phase === 'Admitted' || phase === 'Warming' ? phaseSinceMs : nowMs
  if (facts.endpointsReady === 0) return result('Admitted', 'NoReadyEndpoints', 'none')
  if (probe === 'healthy') return result('Active', 'Serving', 'offer')
  if (isProbeRequired || probe === 'unhealthy') return result('Warming', 'ProbePending', 'offer')
  const untilMs = since + timing.warmMs
  if (phase === 'Warming' || phase === 'Admitted') {
    if (nowMs >= untilMs) return result('Active', 'Serving', 'offer')
    return { ...result(phase, 'ProbePending', 'offer'), againAtMs: untilMs }
  }
  return { ...result('Admitted', 'ProbePending', 'offer'), againAtMs: untilMs }
}

function decideHealth(facts: LeafFacts): LeafDecision {
  const { phase, probe, endpointsReady, nowMs, phaseSinceMs, timing, othersServing } = facts
  const isDown = endpointsReady === 0 || probe === 'unhealthy'
  const reason: Reason = endpointsReady === 0 ? 'NoReadyEndpoints' : 'ProbeFailed'
  if (phase === 'Active') {
    if (!isDown) return result('Active', 'Serving', 'offer')
    return result('Unhealthy', reason, othersServing > 0 ? 'withdraw' : 'offer')
  }
  if (isDown) return result('Unhealthy', reason, othersServing > 0 ? 'withdraw' : 'offer')
  const untilMs = phaseSinceMs + timing.minHoldMs
  // Alone, a leaf that recovered serves at once.
  if (nowMs >= untilMs || othersServing === 0) return result('Active', 'Serving', 'offer')
  return { ...result('Unhealthy', 'HoldingDown', 'withdraw'), againAtMs: untilMs }
}

/** Out of DNS, and for a leaf that is no longer planned to its end. */
function decideWithdrawal(facts: LeafFacts): LeafDecision {
  const { phase, othersServing, dns, nowMs, timing, lifecycle, drainStartedMs } = facts
  if (!hasReached(phase, 'Admitted')) {
    // Never offered to DNS.
    if (lifecycle === 'NoTraffic') return decideUnadmitted(facts)
    return result('Drained', 'DrainCompleted', 'none')
  }
  // Nothing can take over: it continues to serve, also when the replacement failed in the meantime.
  const needsReplacement = facts.needsReplacement !== false
  if (needsReplacement && othersServing === 0) return result('Draining', 'NoReplacement', 'offer')
  if (needsReplacement && facts.isReplacementAnswered === false && !facts.isWithdrawn)
    return { ...result('Draining', 'ReplacementNotAnswered', 'offer'), againAtMs: verifyAtMs(facts) }
  if (dns !== 'absent') return { ...result('Draining', 'WaitingForDns', 'withdraw'), againAtMs: verifyAtMs(facts) }
  const startedMs = drainStartedMs ?? nowMs
  const fullMs = startedMs + timing.drainMs
  const untilMs = Math.min(fullMs, Math.max(startedMs + timing.cacheMs, facts.drainDeadlineMs ?? fullMs))
  if (lifecycle === 'NoTraffic')
    return { ...result('Draining', 'NoTrafficTaint', 'withdraw'), drainStartedMs: startedMs }
  if (nowMs < untilMs)
    return { ...result('Draining', 'DrainWait', 'withdraw'), drainStartedMs: startedMs, againAtMs: untilMs }
  const reason = untilMs < fullMs ? 'DrainDeadlineReached' : 'DrainCompleted'
  return { ...result('Drained', reason, 'none'), drainStartedMs: startedMs }
}

/** Between two verifications of DNS: while a change should show, and later. */
const VERIFY_MS = 2_000
const LATE_VERIFY_MS = 30_000

function verifyAtMs({ nowMs, phase, phaseSinceMs, timing }: LeafFacts): number {
  const isLate = phase === 'Draining' && nowMs - phaseSinceMs > timing.propagationMs
  return nowMs + (isLate ? LATE_VERIFY_MS : VERIFY_MS)
}

const ORDER: Readonly<Record<Phase, number>> = {
  Pending: 0,
  Applied: 1,
  Admitted: 2,
  Warming: 3,
  Active: 4,
  Unhealthy: 4,
  Draining: 5,
  Drained: 6,
}

function hasReached(phase: Phase, least: Phase): boolean {
  return ORDER[phase] >= ORDER[least]
}

function result(phase: Phase, reason: Reason, dns: DnsRole): LeafDecision {
  return { phase, reason, dns, drainStartedMs: undefined, againAtMs: undefined }
}
