/** The probe targets of a load balancer: its DNS name and each usable endpoint, with the last verdict of an earlier process. Pure. */
import type { Immutable } from '@seamark/kube'
import type { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import type { MonitoredTarget } from '../health/monitor.ts'
import type { Verdict } from '../health/verdict.ts'
import { CLUSTER_ANNOTATION } from './source/decide-source.ts'
import { candidateOf } from './decide/endpoints.ts'
import { type BalanceDefaults, probeOf, readLoadBalancer } from './load-balancer.ts'

/** The id of the DNS name itself among the targets of a load balancer; no endpoint key is empty. */
export const NAME_ID = ''

export type MonitoredTargets = ReadonlyMap<string, MonitoredTarget>

/**
 * By key of the endpoint. An invalid load balancer has no targets.
 * @param nameAddresses what the zone answers for the DNS name; undefined: unknown, and the prober asks a resolver
 */
export function probeTargetsOf(
  object: Immutable<DNSLoadBalancer>,
  endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
  defaults: BalanceDefaults,
  nameAddresses?: readonly string[],
): MonitoredTargets {
  const targets = new Map<string, MonitoredTarget>()
  const read = readLoadBalancer(object, defaults)
  if ('invalid' in read) return targets
  const { dnsName } = read.settings
  const seed = object.status?.state === 'healthy' ? 'healthy' : 'unknown'
  // Without a site: the name depends on all of its endpoints, and is no evidence about the prober's network.
  const nameTarget = probeOf(object, dnsName, dnsName.replace(/^\*\./, 'wildcard.'), '', defaults, nameAddresses)
  targets.set(NAME_ID, { target: nameTarget, seed })
  for (const endpoint of endpoints) {
    const candidate = candidateOf(endpoint)
    if (candidate === undefined) continue
    const site = endpoint.metadata.annotations?.[CLUSTER_ANNOTATION] ?? candidate.host
    const target = probeOf(object, dnsName, candidate.host, site, defaults)
    targets.set(candidate.key, { target, seed: seedOf(endpoint) })
  }
  return targets
}

function seedOf({ status }: Immutable<DNSLoadBalancerEndpoint>): Verdict {
  return status?.healthy === undefined ? 'unknown' : status.healthy ? 'healthy' : 'unhealthy'
}
