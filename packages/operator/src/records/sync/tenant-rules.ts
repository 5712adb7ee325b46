/**
 * What the namespace of a DNSEndpoint may ask for: names by grants, and annotations that take records over or approve
 * changes only where the configuration trusts the namespace. Whoever can write a DNSEndpoint can write its annotations, so
 * an annotation alone proves nothing. Pure.
 */
import { findGrantFault, type Grants } from '../../process/grants.ts'
import type { RecordsConfig } from '../config.ts'

export interface TenantRules {
  /** Undefined when the namespace may use the name, else why not. */
  findNameFault(namespace: string, name: string): string | undefined
  /** `seamark.io/adopt` and `seamark.io/approve` count in this namespace. */
  isTrusted(namespace: string): boolean
}

/** The objects of the manager's own namespace are its own, and always trusted. */
export function tenantRules(
  { dnsEndpoints: { trustedNamespaces } }: Pick<RecordsConfig, 'dnsEndpoints'>,
  grants: Grants,
  managerNamespace: string,
): TenantRules {
  const trusted = new Set([...trustedNamespaces, managerNamespace])
  return {
    findNameFault: (namespace, name) =>
      namespace === managerNamespace ? undefined : findGrantFault(grants, namespace, name),
    isTrusted: (namespace) => trusted.has(namespace) || trusted.has('*'),
  }
}
