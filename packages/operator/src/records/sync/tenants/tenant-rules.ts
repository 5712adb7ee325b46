/**
 * What the namespace of a DNSEndpoint may request: names by grants, a number of endpoints, and annotations that adopt records or approve changes
 * only where the configuration trusts the namespace. Anyone who can write a DNSEndpoint can write its annotations, so an
 * annotation alone proves nothing. Pure.
 */
import { findGrantFault, type Grants } from '@seamark/dialects'
import { claimText } from '../../../rrset/external-dns-registry.ts'
import type { RecordsConfig } from '../../config.ts'
import type { EndpointLimits } from './tenant-limits.ts'

export interface TenantRules {
  /** Undefined when the namespace may use the name, else why not. */
  findNameFault(namespace: string, name: string): string | undefined
  /** How many endpoints are served. */
  readonly limits: EndpointLimits
  /** Namespaces without limits. */
  readonly unlimited: ReadonlySet<string>
  /** Whether `seamark.io/adopt` and `seamark.io/approve` count in this namespace. */
  isTrusted(namespace: string): boolean
  /** What the records of load balancers may adopt, because the configuration names it. @default nothing */
  readonly adoptedByLoadBalancers?: string
}

/** Objects in the manager's own namespace are its own, and always trusted. */
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
    findNameFault: (namespace, name) =>
      namespace === managerNamespace ? undefined : findGrantFault(grants, namespace, name),
    isTrusted: (namespace) => trusted.has(namespace) || trusted.has('*'),
    ...(dnslbIdentity !== '' && { adoptedByLoadBalancers: claimText({ owner: dnslbIdentity, program: 'dnslb' }) }),
  }
}
