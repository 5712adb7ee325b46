/** Why an endpoint is in the records of its load balancer or not, for its `Active` condition. Pure. */
import type { Reason } from '../../reasons.ts'
import type { Finding } from './finding.ts'
import type { JudgedCandidate } from './select.ts'

export interface Membership {
  readonly isActive: boolean
  readonly reason: Reason
  readonly message: string
}

type Judged = Pick<JudgedCandidate, 'verdict' | 'isDraining' | 'weight'>

/** What was decided about the load balancer as a whole. */
interface Whole {
  readonly type: 'Balanced' | 'Exclusive'
  readonly finding: Pick<Finding, 'reason' | 'message' | 'isReady'>
}

/** These say that endpoints are not healthy, which each endpoint says itself. */
const HEALTH_REASONS: ReadonlySet<Reason> = new Set(['AllUnhealthy', 'HealthUnknown'])

/** `candidate` is undefined for an endpoint without a usable target. */
export function membershipOf(candidate: Judged | undefined, isActive: boolean, whole: Whole): Membership {
  const is = (reason: Reason, message: string): Membership => ({ isActive, reason, message })
  if (candidate === undefined) return is('EndpointInvalid', 'neither spec.cname nor spec.ipaddress is a usable target')
  const { finding } = whole
  if (isActive) {
    if (candidate.verdict === 'healthy') return is('EndpointSelected', 'it is healthy')
    const state =
      candidate.verdict === 'unknown' ? 'its health is not known' : 'it is not healthy, and neither is another'
    return is('EndpointKept', `${state}; it stays as it was published`)
  }
  if (!finding.isReady && !HEALTH_REASONS.has(finding.reason)) return is(finding.reason, finding.message)
  if (candidate.verdict === 'unhealthy') return is('EndpointUnhealthy', 'it does not pass its health check')
  if (candidate.verdict === 'unknown') return is('EndpointUnproven', 'it has not passed its health check yet')
  if (candidate.isDraining) return is('EndpointDraining', 'spec.drain is set, and another endpoint can serve')
  if (candidate.weight === 0) return is('EndpointDraining', 'spec.weight is 0, and another endpoint can serve')
  const isExclusive = whole.type === 'Exclusive'
  return is(
    'EndpointLessPreferred',
    isExclusive
      ? 'the load balancer is Exclusive, and publishes another endpoint'
      : 'an endpoint with a lower spec.priority is healthy',
  )
}
