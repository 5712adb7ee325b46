/** The status fields of an endpoint that the load balancer's decision owns; `validUntil` belongs to the endpoint controller. */
import { type Condition, type Immutable, setCondition } from '@seamark/kube'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { Verdict } from '../../health/verdict.ts'
import { targetOf } from './endpoints.ts'
import type { Membership } from './membership.ts'

/** Since when it is healthy or not, and the result of the probe that changed it. */
export const HEALTHY_CONDITION = 'Healthy'
/** Since when it is in the records or not, and why. */
export const ACTIVE_CONDITION = 'Active'

export interface EndpointStatus {
  readonly active: boolean
  readonly healthy: boolean
  readonly message?: string
  readonly conditions?: Condition[]
}

/** The result behind a verdict. Wall clock. */
export interface EndpointHealth {
  readonly code?: string
  readonly detail: string
  readonly sinceMs?: number
}

export interface EndpointFindings {
  readonly nowMs: number
  readonly verdict: Verdict
  readonly membership: Membership
  readonly health?: EndpointHealth | undefined
}

/** Undefined when nothing changes. An unknown verdict leaves `healthy` as it was. */
export function endpointStatusOf(
  endpoint: Immutable<DNSLoadBalancerEndpoint>,
  findings: EndpointFindings,
): EndpointStatus | undefined {
  const { verdict, membership } = findings
  const active = membership.isActive
  const before = endpoint.status
  const isUsable = targetOf(endpoint) !== undefined
  const healthy = isUsable && (verdict === 'unknown' ? before?.healthy === true : verdict === 'healthy')
  const message = isUsable ? undefined : `invalid target A(${endpoint.spec.ipaddress ?? ''})`
  const conditions = withActive(endpoint, withHealthy(endpoint, findings), findings)
  const isSame = before?.active === active && before.healthy === healthy && before.message === message
  if (isSame && conditions === before.conditions) return undefined
  return {
    active,
    healthy,
    ...(message !== undefined && { message }),
    ...(conditions !== undefined && { conditions: conditions as Condition[] }),
  }
}

/** Written when the verdict changes, not for each new result: steady state writes nothing. */
function withHealthy(
  { status, metadata }: Immutable<DNSLoadBalancerEndpoint>,
  { verdict, health }: EndpointFindings,
): Conditions {
  const before = status?.conditions
  if (verdict === 'unknown' || health?.code === undefined || health.sinceMs === undefined) return before
  const next = verdict === 'healthy' ? 'True' : 'False'
  if (before?.find(({ type }) => type === HEALTHY_CONDITION)?.status === next) return before
  const condition = { type: HEALTHY_CONDITION, status: next, reason: health.code, message: health.detail } as const
  return setCondition(before, { ...condition, ...observed(metadata) }, health.sinceMs)
}

/**
 * Written when the endpoint enters or leaves the records, or is in or out for another reason. An unknown verdict, as after a
 * restart, is no other reason.
 */
function withActive(
  { status, metadata }: Immutable<DNSLoadBalancerEndpoint>,
  conditions: Conditions,
  { nowMs, verdict, membership: { isActive, reason, message } }: EndpointFindings,
): Conditions {
  const before = status?.conditions?.find(({ type }) => type === ACTIVE_CONDITION)
  const next = isActive ? 'True' : 'False'
  if (before?.status === next && (before.reason === reason || verdict === 'unknown')) return conditions
  const condition = { type: ACTIVE_CONDITION, status: next, reason, message } as const
  return setCondition(conditions, { ...condition, ...observed(metadata) }, nowMs)
}

type Conditions = readonly Immutable<Condition>[] | undefined

function observed({ generation }: Immutable<DNSLoadBalancerEndpoint>['metadata']): { observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation }
}
