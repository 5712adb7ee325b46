/** Which load balancer may publish a DNS name: the oldest valid one with a grant; the others report that (INV-14). Pure. */
import { byAge, type NameRule } from '@seamark/dialects'
import type { Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { type BalanceDefaults, readLoadBalancer } from '../load-balancer.ts'

const compare = byAge(DNSLoadBalancer)

export interface ClaimRules {
  /** A source of publish keeps its name from it. @default none */
  readonly isHeldBack?: (object: Immutable<DNSLoadBalancer>) => boolean
  /** @default every namespace may use every name */
  readonly findNameFault?: NameRule
}

/** Record name → key of its holder. Objects that are being deleted, held back or without a grant claim nothing. */
export function claimNames(
  loadBalancers: readonly Immutable<DNSLoadBalancer>[],
  defaults: BalanceDefaults,
  { isHeldBack = () => false, findNameFault = () => undefined }: ClaimRules = {},
): ReadonlyMap<string, string> {
  const holders = new Map<string, Immutable<DNSLoadBalancer>>()
  for (const object of loadBalancers) {
    if (object.metadata.deletionTimestamp !== undefined || isHeldBack(object)) continue
    const read = readLoadBalancer(object, defaults)
    if ('invalid' in read) continue
    const { recordName, namespace } = read.settings
    if (findNameFault(namespace, recordName) !== undefined) continue
    const holder = holders.get(recordName)
    if (holder === undefined || compare(object, holder) < 0) holders.set(recordName, object)
  }
  return new Map([...holders].map(([name, object]) => [name, keyOf(object)]))
}
