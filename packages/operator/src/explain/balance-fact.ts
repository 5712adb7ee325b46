/** The load balancer that publishes a host, with the health of its endpoints as the manager reported it in their status. */
import { type Cluster, Forbidden, NotFound } from '@seamark/kube'
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { claimNames } from '../balance/decide/claims.ts'
import { ACTIVE_CONDITION, HEALTHY_CONDITION } from '../balance/decide/endpoint-status.ts'
import { targetOf } from '../balance/decide/endpoints.ts'
import { recordsObjectName } from '../balance/write/records-object.ts'
import { BALANCE_DEFAULTS, readLoadBalancer } from '../balance/load-balancer.ts'
import { canonicalName, compareText, isInvalid } from '../rrset/rrset.ts'
import type { BalanceFact } from './facts.ts'

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
  const endpoints = await listServed(DNSLoadBalancerEndpoint, cluster, signal)
  const own = endpoints.filter(
    ({ metadata, spec }) => metadata.namespace === namespace && spec.loadbalancer === objectName,
  )
  return balanceFactOf(balancer, own, await findServed(DNSEndpoint, recordsObjectName(balancer), cluster, signal))
}

/** @param endpoints those of the load balancer. @param published the DNSEndpoint with its records, where the cluster has it. Pure. */
export function balanceFactOf(
  balancer: Immutable<DNSLoadBalancer>,
  endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
  published: Immutable<DNSEndpoint> | undefined,
): BalanceFact {
  const own = endpoints.toSorted((a, b) => compareText(keyOf(a), keyOf(b)))
  const read = readLoadBalancer(balancer, BALANCE_DEFAULTS)
  const ready = balancer.status?.conditions?.find(({ type }) => type === 'Ready')
  const changedAt = lastChange(own)
  const name = 'settings' in read ? read.settings.recordName : undefined
  const records = published?.spec.endpoints.find(({ dnsName }) => canonicalName(dnsName) === name)
  return {
    name: keyOf(balancer),
    // What is published, where this cluster contains it: the default is a setting of the manager.
    ttl: records?.recordTTL ?? ('settings' in read ? read.settings : BALANCE_DEFAULTS).ttlSeconds,
    ...(changedAt !== undefined && { changedAt }),
    ...(ready !== undefined && {
      selection: {
        isReady: ready.status === 'True',
        reason: ready.reason,
        message: ready.message,
        since: ready.lastTransitionTime,
      },
    }),
    endpoints: own.map(factOf),
  }
}

/** When an endpoint last entered or left the records: times of the API have one form, and compare as texts. */
function lastChange(endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[]): string | undefined {
  return endpoints
    .flatMap(({ status }) => conditionOf(status, ACTIVE_CONDITION)?.lastTransitionTime ?? [])
    .sort(compareText)
    .at(-1)
}

function conditionOf(status: Immutable<DNSLoadBalancerEndpoint>['status'], wanted: string) {
  return status?.conditions?.find(({ type }) => type === wanted)
}

function factOf(endpoint: Immutable<DNSLoadBalancerEndpoint>): BalanceFact['endpoints'][number] {
  const { status, spec, metadata } = endpoint
  const condition = conditionOf(status, HEALTHY_CONDITION)
  const active = conditionOf(status, ACTIVE_CONDITION)
  const isKnown = status?.healthy !== undefined && targetOf(endpoint) !== undefined
  return {
    name: metadata.name ?? '',
    host: spec.cname ?? spec.ipaddress ?? '',
    health: isKnown ? (status.healthy ? 'healthy' : 'unhealthy') : 'unknown',
    detail: status?.message ?? condition?.message ?? '',
    isActive: status?.active === true,
    ...(condition !== undefined && { since: condition.lastTransitionTime }),
    ...(active !== undefined && { membership: { since: active.lastTransitionTime, message: active.message } }),
  }
}

async function findServed<T extends Obj>(kind: Kind<T>, key: string, { client }: Cluster, signal: AbortSignal) {
  try {
    return await client.find(kind, key, { signal })
  } catch (error) {
    if (error instanceof NotFound || error instanceof Forbidden) return undefined
    throw error
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
