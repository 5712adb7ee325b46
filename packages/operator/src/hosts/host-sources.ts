/**
 * What balance has to know of the sources of publish in this process: which of them keeps a host from a load balancer.
 * Publish implements it; the rule is `mayTake` (publisher.ts).
 */
import type { Aged } from '@seamark/dialects'
import type { Change } from '@seamark/kube'
import type { Immutable, Kind, Obj } from '@seamark/kube/object'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'

export interface HostHolding {
  readonly source: Aged
  /** Its DNSEndpoint has the host. */
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
