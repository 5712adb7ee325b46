/** The DNSEndpoint in which a load balancer publishes its RRsets, and back. Pure. */
import type { Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import type { DNSEndpoint, Endpoint } from '../../api/dns-endpoint.ts'
import type { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { normalizeHost } from '@seamark/dialects'
import { policySettings, policyValue } from '../../rrset/answer-policy.ts'
import { canonicalName, isInvalid } from '../../rrset/rrset.ts'
import type { BalancedSet } from '../decide/answer-shares.ts'

/** Key of the DNSEndpoint: `<namespace>/<name>-dnslb`. */
export function recordsObjectName(loadBalancer: Immutable<DNSLoadBalancer>): string {
  return recordsObjectNameOf(keyOf(loadBalancer))
}

/** `key` is of the load balancer. */
export function recordsObjectNameOf(key: string): string {
  return `${key}-dnslb`
}

export function recordsObject(loadBalancer: Immutable<DNSLoadBalancer>, sets: readonly BalancedSet[]): DNSEndpoint {
  const { namespace = '', name = '' } = loadBalancer.metadata
  return {
    metadata: { namespace, name: `${name}-dnslb` },
    spec: {
      endpoints: sets.map(({ name: recordName, type, ttl, values, policy }) => ({
        dnsName: normalizeHost(recordName),
        recordType: type as Endpoint['recordType'],
        targets: values.map((value) => (type === 'CNAME' ? normalizeHost(value) : value)),
        recordTTL: ttl,
        ...(policy !== undefined && { providerSpecific: policySettings(policy) }),
      })),
    },
  }
}

/** The RRsets of the name that the object publishes; `foreign` when the object is not the load balancer's. */
export function publishedIn(
  object: Immutable<DNSEndpoint> | undefined,
  { metadata }: Immutable<DNSLoadBalancer>,
): { readonly sets: readonly BalancedSet[] } | { readonly foreign: string } {
  if (object === undefined) return { sets: [] }
  const owner = object.metadata.ownerReferences?.find(({ controller }) => controller === true)
  if (owner === undefined || owner.uid !== metadata.uid) {
    return {
      foreign: `DNSEndpoint ${keyOf(object)} exists and does not belong to the load balancer; delete or rename it`,
    }
  }
  return {
    sets: object.spec.endpoints.flatMap(({ dnsName, recordType, targets, recordTTL, providerSpecific }) => {
      const name = canonicalName(dnsName)
      if (isInvalid(name)) return []
      const values = targets.map((target) => (recordType === 'CNAME' ? `${normalizeHost(target)}.` : target))
      const set = { name, type: recordType, ttl: recordTTL, values }
      const policy = policyValue(providerSpecific, set)
      return [{ ...set, ...(typeof policy === 'string' && { policy }) }]
    }),
  }
}
