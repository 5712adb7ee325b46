/**
 * The proof of a domain: what a check of its TXT record changes, and when to check again. Pure.
 *
 * A proof is revoked only after at least three failed checks over 72 hours: a zone that is broken for a day takes no host
 * away. A server that cannot be asked is no failed check. Steady state writes nothing: a check that confirms the status is
 * not recorded.
 */
import { timestamp } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { DomainVerificationStatus } from '../../api/domain-verification.ts'
import type { Reason } from '../../reasons.ts'

/** Undefined: the servers of the zone could not be asked. */
export type TxtAnswer = readonly string[] | undefined

export interface DomainFacts {
  readonly status: Immutable<DomainVerificationStatus> | undefined
  /** A new random token, used when there is none yet. */
  readonly newToken: string
  readonly answer: TxtAnswer
  readonly nowMs: number
  /** When checking began for this process, ms: the first checks are frequent. */
  readonly sinceMs: number
}

export interface DomainDecision {
  readonly status: DomainVerificationStatus
  readonly afterMs: number
}

/** Of the condition Verified. */
export function reasonOf({ verified }: DomainVerificationStatus): Reason {
  return verified === true ? 'DomainVerified' : 'DomainUnverified'
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const REVOKE_AFTER_MS = 72 * HOUR_MS
const REVOKE_FAILURES = 3
const FIRST_MS = 5_000
const LAST_MS = 10 * 60_000

export function decideDomain({ status, newToken, answer, nowMs, sinceMs }: DomainFacts): DomainDecision {
  const token = status?.token ?? newToken
  const kept = { ...(status as DomainVerificationStatus | undefined), token }
  // From 5 s to 10 min, growing with the time that has passed.
  const soonMs = Math.min(LAST_MS, Math.max(FIRST_MS, (nowMs - sinceMs) / 4))
  if (answer === undefined) return { status: kept, afterMs: soonMs }
  const isVerified = answer.includes(token)
  if (isVerified) {
    const { failingSince: _since, failures: _failures, ...rest } = kept
    if (status?.verified === true && status.failingSince === undefined) return { status: kept, afterMs: DAY_MS }
    return { status: { ...rest, verified: true, lastChecked: timestamp(nowMs) }, afterMs: DAY_MS }
  }
  if (status?.verified !== true) return { status: { ...kept, verified: false }, afterMs: soonMs }
  const failures = (status.failures ?? 0) + 1
  const failingSince = status.failingSince ?? timestamp(nowMs)
  const isRevoked = failures >= REVOKE_FAILURES && nowMs - Date.parse(failingSince) >= REVOKE_AFTER_MS
  return {
    status: { ...kept, verified: !isRevoked, failures, failingSince, lastChecked: timestamp(nowMs) },
    afterMs: isRevoked ? LAST_MS : DAY_MS,
  }
}

/** Where the TXT record is expected. */
export function challengeName(domain: string): string {
  return `_seamark-challenge.${domain}`
}
