/** The status fields of an endpoint that the load balancer's decision owns; `validUntil` belongs to the endpoint controller. */
import type { Immutable } from '@seamark/kube'
import type { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import type { Verdict } from '../health/verdict.ts'
import { targetOf } from './endpoints.ts'

export interface EndpointStatus {
  readonly active: boolean
  readonly healthy: boolean
  readonly message?: string
}

/** Undefined when nothing changes. An unknown verdict leaves `healthy` as it was. */
export function endpointStatusOf(
  endpoint: Immutable<DNSLoadBalancerEndpoint>,
  verdict: Verdict,
  active: boolean,
): EndpointStatus | undefined {
  const before = endpoint.status
  const isUsable = targetOf(endpoint) !== undefined
  const healthy = isUsable && (verdict === 'unknown' ? before?.healthy === true : verdict === 'healthy')
  const message = isUsable ? undefined : `invalid target A(${endpoint.spec.ipaddress ?? ''})`
  if (before?.active === active && before.healthy === healthy && before.message === message) return undefined
  return { active, healthy, ...(message !== undefined && { message }) }
}
