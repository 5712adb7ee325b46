/**
 * The cluster in which endpoints are written, for the controller of endpoint sources: the manager's own cluster. The sources
 * are in the same cluster, or in a member of the manager's fleet.
 *
 * For a source in another cluster nothing is decided before both kinds were read once (`isReadable`), and writes stop with
 * the source's reconcile.
 */
import {
  type Client,
  type Cluster,
  type Context,
  createLearnedDefaults,
  createWriter,
  fencedClient,
  type Index,
  type Informer,
  type Manager,
  type Reader,
  type Writer,
} from '@seamark/kube'
import { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { SOURCE_ANNOTATION } from './decide-source.ts'

/** A source cluster other than the manager's own: a member of its fleet. */
export interface OtherSource {
  readonly cluster: Cluster
  /** Its identity: part of the names of its endpoints. */
  readonly id: string
  /** Field manager of endpoints; that of the manager's own cluster, whose caches keep its fields. */
  readonly fieldManager: string
}

export interface EndpointTarget {
  /** Identity of the source cluster; '' when it is the target cluster. */
  readonly sourceCluster: string
  readonly reader: Reader
  readonly byMark: Index<DNSLoadBalancerEndpoint>
  /** Created when they are first used, after the manager configured its caches. */
  readonly balancers: () => Informer<DNSLoadBalancer>
  readonly endpoints: () => Informer<DNSLoadBalancerEndpoint>
  /** False until both kinds were listed. */
  readonly isReadable: () => boolean
  /** Of one reconcile. */
  readonly writer: (context: Context) => Pick<Writer, 'apply' | 'delete'> & { readonly client: Client }
}

export function targetOf(mgr: Manager, source: OtherSource | undefined): EndpointTarget {
  const { informers } = mgr.cluster
  const byMark = mgr.index(DNSLoadBalancerEndpoint, 'source', ({ metadata }) =>
    [metadata.annotations?.[SOURCE_ANNOTATION]].filter((mark) => mark !== undefined),
  )
  const balancers = () => informers.informer(DNSLoadBalancer)
  const endpoints = () => informers.informer(DNSLoadBalancerEndpoint)
  const defaults = createLearnedDefaults()
  return {
    sourceCluster: source?.id ?? '',
    reader: informers,
    byMark,
    balancers,
    endpoints,
    isReadable: () => source === undefined || (balancers().hasSynced && endpoints().hasSynced),
    writer(context) {
      if (source === undefined) return context
      const fence = { check: () => context.signal.throwIfAborted() }
      const { signal } = context
      const writer = createWriter({ cluster: mgr.cluster, fieldManager: source.fieldManager, fence, defaults, signal })
      return {
        apply: (kind, intent, options) => writer.apply(kind, intent, options),
        delete: (kind, of, options) => writer.delete(kind, of, options),
        client: fencedClient(mgr.client, fence, signal),
      }
    },
  }
}
