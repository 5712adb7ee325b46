/**
 * What balance has to know of the sources of publish and of the roots of the fleet in this process: which of them keeps a host
 * from a load balancer. Publish implements it with the rule `mayTake` (publisher.ts), and claimed-hosts.ts for roots.
 */
import type { Aged } from '@seamark/dialects'
import type { Change } from '@seamark/kube'
import type { Immutable, Kind, Obj } from '@seamark/kube/object'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'

export interface HostHolding {
  readonly source: Aged
  /** The source is a root of this kind, and has the host. */
  readonly root?: Kind
  /** Its DNSEndpoint, or that of a load balancer of the root, has the host. */
  readonly isInPlace: boolean
  /** The source is gone, and its host stays reserved for so long. */
  readonly forMs?: number
}

export interface HostSources {
  /** The changes after which `holdingOf` may differ for a load balancer of one of the hosts. */
  readonly watches: readonly {
    readonly kind: Kind
    readonly when: (change: Change<Obj>) => boolean
    readonly hostsOf: (object: Immutable<Obj>) => readonly string[]
  }[]
  /** Undefined: the load balancer may publish its host. */
  holdingOf(loadBalancer: Immutable<DNSLoadBalancer>): HostHolding | undefined
}

/** The first of them that holds a host decides. */
export function joinHostSources(all: readonly HostSources[]): HostSources {
  return {
    watches: all.flatMap(({ watches }) => watches),
    holdingOf(loadBalancer): HostHolding | undefined {
      for (const each of all) {
        const holding = each.holdingOf(loadBalancer)
        if (holding !== undefined) return holding
      }
      return undefined
    },
  }
}
