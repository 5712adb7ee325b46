/**
 * What the namespace of a DNSEndpoint may request: names by grants, a number of endpoints, and annotations that adopt records or approve changes
 * only where the configuration trusts the namespace. Anyone who can write a DNSEndpoint can write its annotations, so an
 * annotation alone proves nothing. Pure.
 */
import { type Grants, type NameRule, nameRule } from '@seamark/dialects'
import { keyOf } from '@seamark/kube/object'
import type { DNSLoadBalancer } from '../../../api/dns-load-balancer.ts'
import { claimText } from '../../../rrset/external-dns-registry.ts'
import type { RecordsConfig } from '../../config.ts'
import { holderOf, nameOfBalancer } from './balanced-names.ts'
import type { EndpointLimits } from './tenant-limits.ts'

export interface TenantRules {
  readonly findNameFault: NameRule
  /** How many endpoints are served. */
  readonly limits: EndpointLimits
  /** Namespaces without limits. */
  readonly unlimited: ReadonlySet<string>
  /** Whether `seamark.io/adopt` and `seamark.io/approve` count in this namespace. */
  isTrusted(namespace: string): boolean
  /** What the records of load balancers may adopt, because the configuration names it. @default nothing */
  readonly adoptedByLoadBalancers?: string
  /**
   * The DNS name that the load balancer with this key and UID has; undefined when there is none, it is not known, or the name is
   * another one's. @default none
   */
  readonly nameOfLoadBalancer?: (key: string, uid: string) => string | undefined
}

/** For commands, which list the load balancers. */
export function nameAmong(
  balancers: readonly DNSLoadBalancer[],
  findNameFault: NameRule,
): NonNullable<TenantRules['nameOfLoadBalancer']> {
  const byName = new Map<string, DNSLoadBalancer[]>()
  for (const each of balancers) {
    const name = nameOfBalancer(each)
    if (name !== undefined) byName.set(name, [...(byName.get(name) ?? []), each])
  }
  const held = new Map(
    [...byName].map(([name, list]) => {
      const holder = holderOf(name, list, findNameFault)
      return [holder === undefined ? '' : `${keyOf(holder)} ${holder.metadata.uid}`, name]
    }),
  )
  return (key, uid) => held.get(`${key} ${uid}`)
}

/**
 * Objects in the manager's own namespace are its own, and always trusted.
 * @param grants of the process
 */
export function tenantRules(
  {
    dnsEndpoints: { trustedNamespaces, maxPerObject, maxPerNamespace },
    registry: { dnslbIdentity },
  }: Pick<RecordsConfig, 'dnsEndpoints' | 'registry'>,
  grants: Grants,
  managerNamespace: string,
): TenantRules {
  const trusted = new Set([...trustedNamespaces, managerNamespace])
  return {
    limits: { perObject: maxPerObject, perNamespace: maxPerNamespace },
    unlimited: new Set([managerNamespace]),
    findNameFault: nameRule(grants),
    isTrusted: (namespace) => trusted.has(namespace) || trusted.has('*'),
    ...(dnslbIdentity !== '' && { adoptedByLoadBalancers: claimText({ owner: dnslbIdentity, program: 'dnslb' }) }),
  }
}
