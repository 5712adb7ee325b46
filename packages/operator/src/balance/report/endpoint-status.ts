/** The status fields of an endpoint that the load balancer's decision owns; `validUntil` belongs to the endpoint controller. */
import { type Condition, type Immutable, setCondition } from '@seamark/kube'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { Verdict } from '../../health/verdict.ts'
import { targetOf } from '../decide/endpoints.ts'

/** Since when it is healthy or not, and the result of the probe that changed it. */
export const HEALTHY_CONDITION = 'Healthy'

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

/** Undefined when nothing changes. An unknown verdict leaves `healthy` as it was. */
export function endpointStatusOf(
  endpoint: Immutable<DNSLoadBalancerEndpoint>,
  verdict: Verdict,
  active: boolean,
  health?: EndpointHealth,
): EndpointStatus | undefined {
  const before = endpoint.status
  const isUsable = targetOf(endpoint) !== undefined
  const healthy = isUsable && (verdict === 'unknown' ? before?.healthy === true : verdict === 'healthy')
  const message = isUsable ? undefined : `invalid target A(${endpoint.spec.ipaddress ?? ''})`
  const conditions = conditionsOf(endpoint, verdict, health)
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
function conditionsOf(
  { status, metadata }: Immutable<DNSLoadBalancerEndpoint>,
  verdict: Verdict,
  health: EndpointHealth | undefined,
): readonly Immutable<Condition>[] | undefined {
  const before = status?.conditions
  if (verdict === 'unknown' || health?.code === undefined || health.sinceMs === undefined) return before
  const next = verdict === 'healthy' ? 'True' : 'False'
  if (before?.find(({ type }) => type === HEALTHY_CONDITION)?.status === next) return before
  return setCondition(
    before,
    {
      type: HEALTHY_CONDITION,
      status: next,
      reason: health.code,
      message: health.detail,
      ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
    },
    health.sinceMs,
  )
}
