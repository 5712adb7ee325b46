/** The generated objects of a root, by `rootKey`. */
import type { Index, Manager } from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { GlobalIngress } from '../../api/global-ingress.ts'
import { LeafIngress } from '../../api/leaf-ingress.ts'
import { rootKey } from '../names.ts'
import { ROOT_UID_LABEL } from '../../hosts/root.ts'

export interface RootIndexes {
  readonly leavesByRoot: Index<LeafIngress>
  readonly globalByRoot: Index<GlobalIngress>
  /** Undefined: DNS is not managed. */
  readonly endpointsByRoot: Index<DNSLoadBalancerEndpoint> | undefined
  readonly balancersByRoot: Index<DNSLoadBalancer> | undefined
}

export function createRootIndexes(manager: Manager, hasDns: boolean): RootIndexes {
  const uidOf = ({ metadata }: Immutable<Obj>): string[] => {
    const uid = metadata.labels?.[ROOT_UID_LABEL]
    return uid === undefined ? [] : [rootKey({ ...metadata, uid })]
  }
  return {
    leavesByRoot: manager.index(LeafIngress, 'root', uidOf),
    globalByRoot: manager.index(GlobalIngress, 'root', uidOf),
    endpointsByRoot: hasDns ? manager.index(DNSLoadBalancerEndpoint, 'root', uidOf) : undefined,
    balancersByRoot: hasDns ? manager.index(DNSLoadBalancer, 'root', uidOf) : undefined,
  }
}
