/** Which load balancer may publish a DNS name: the oldest valid one; the others report that (INV-14). Pure. */
import { byAge } from '@seamark/dialects'
import type { Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { type BalanceDefaults, readLoadBalancer } from '../load-balancer.ts'

const compare = byAge(DNSLoadBalancer)

/** Record name → key of its holder. Objects that are being deleted, or held back by a source of publish, claim nothing. */
export function claimNames(
  loadBalancers: readonly Immutable<DNSLoadBalancer>[],
  defaults: BalanceDefaults,
  isHeldBack: (object: Immutable<DNSLoadBalancer>) => boolean = () => false,
): ReadonlyMap<string, string> {
  const holders = new Map<string, Immutable<DNSLoadBalancer>>()
  for (const object of loadBalancers) {
    if (object.metadata.deletionTimestamp !== undefined || isHeldBack(object)) continue
    const read = readLoadBalancer(object, defaults)
    if ('invalid' in read) continue
    const { recordName } = read.settings
    const holder = holders.get(recordName)
    if (holder === undefined || compare(object, holder) < 0) holders.set(recordName, object)
  }
  return new Map([...holders].map(([name, object]) => [name, keyOf(object)]))
}
