/** The load balancer that publishes a host, with the health of its endpoints as the manager reported it in their status. */
import { type Cluster, Forbidden, NotFound } from '@seamark/kube'
import { keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { claimNames } from '../balance/decide/claims.ts'
import { HEALTHY_CONDITION } from '../balance/report/endpoint-status.ts'
import { targetOf } from '../balance/decide/endpoints.ts'
import { BALANCE_DEFAULTS, readLoadBalancer } from '../balance/load-balancer.ts'
import { canonicalName, compareText, isInvalid } from '../rrset/rrset.ts'
import type { BalanceFact } from './chain.ts'

export async function findBalanceFact(
  host: string,
  cluster: Cluster,
  signal: AbortSignal,
): Promise<BalanceFact | undefined> {
  const name = canonicalName(host)
  if (isInvalid(name)) return undefined
  const balancers = await listServed(DNSLoadBalancer, cluster, signal)
  const holder = claimNames(balancers, BALANCE_DEFAULTS).get(name)
  const balancer = balancers.find((object) => keyOf(object) === holder)
  if (balancer === undefined) return undefined
  const { namespace = '', name: objectName = '' } = balancer.metadata
  const read = readLoadBalancer(balancer, BALANCE_DEFAULTS)
  const endpoints = await listServed(DNSLoadBalancerEndpoint, cluster, signal)
  const ready = balancer.status?.conditions?.find(({ type }) => type === 'Ready')
  return {
    name: keyOf(balancer),
    ttl: 'settings' in read ? read.settings.ttlSeconds : BALANCE_DEFAULTS.ttlSeconds,
    ...(ready !== undefined && {
      selection: {
        isReady: ready.status === 'True',
        reason: ready.reason,
        message: ready.message,
        since: ready.lastTransitionTime,
      },
    }),
    endpoints: endpoints
      .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.loadbalancer === objectName)
      .sort((a, b) => compareText(keyOf(a), keyOf(b)))
      .map(factOf),
  }
}

function factOf(endpoint: DNSLoadBalancerEndpoint): BalanceFact['endpoints'][number] {
  const { status, spec, metadata } = endpoint
  const condition = status?.conditions?.find(({ type }) => type === HEALTHY_CONDITION)
  const isKnown = status?.healthy !== undefined && targetOf(endpoint) !== undefined
  return {
    name: metadata.name ?? '',
    host: spec.cname ?? spec.ipaddress ?? '',
    health: isKnown ? (status.healthy === true ? 'healthy' : 'unhealthy') : 'unknown',
    detail: status?.message ?? condition?.message ?? '',
    isActive: status?.active === true,
    ...(condition !== undefined && { since: condition.lastTransitionTime }),
  }
}

/** Empty when the kind is not installed, or may not be read: then there is no load balancer to explain. */
async function listServed<T extends Obj>(kind: Kind<T>, { client }: Cluster, signal: AbortSignal): Promise<T[]> {
  try {
    return (await client.list(kind, { signal })).items
  } catch (error) {
    if (error instanceof NotFound || error instanceof Forbidden) return []
    throw error
  }
}
