/**
 * Which load balancer has a DNS name, for what its records may adopt: of those with the name in namespaces that may use it, the
 * oldest (INV-14). An older one keeps the name also while it is not valid: it may have published it. Pure.
 */
import { byAge, type NameRule } from '@seamark/dialects'
import type { Immutable } from '@seamark/kube'
import { DNSLoadBalancer } from '../../../api/dns-load-balancer.ts'
import { canonicalName, isInvalid } from '../../../rrset/rrset.ts'

type Balancer = Immutable<DNSLoadBalancer>

const compare = byAge(DNSLoadBalancer)

/** The canonical name that a load balancer asks for. */
export function nameOfBalancer({ spec }: Balancer): string | undefined {
  // A CRD of others may lack the schema.
  const name = canonicalName(typeof spec?.DNSName === 'string' ? spec.DNSName : '')
  return isInvalid(name) ? undefined : name
}

/** @param balancers those that ask for this name, in any order */
export function holderOf(name: string, balancers: Iterable<Balancer>, findNameFault: NameRule): Balancer | undefined {
  let holder: Balancer | undefined
  for (const each of balancers) {
    const { namespace = '', deletionTimestamp } = each.metadata
    if (deletionTimestamp !== undefined || findNameFault(namespace, name) !== undefined) continue
    if (holder === undefined || compare(each, holder) < 0) holder = each
  }
  return holder
}
