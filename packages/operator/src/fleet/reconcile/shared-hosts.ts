/** Hosts that several roots of one namespace share: who writes their DNS objects, and where all of them serve. */
import type { Context } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { GlobalIngressSpec } from '../../api/global-ingress.ts'
import type { TtlHistory } from '../decide/published-ttl.ts'
import { balancerName, rootKey, type RootRef } from '../names.ts'
import type { RootIndexes } from '../roots/root-indexes.ts'

/** Clusters on which every other owner of a host serves; undefined: there is no other owner. */
export function sharedClusters(
  owners: readonly string[],
  { namespace, uid }: RootRef,
  { leavesByRoot }: RootIndexes,
  ctx: Context,
): ReadonlySet<string> | undefined {
  const others = owners.filter((owner) => owner !== uid)
  if (others.length === 0) return undefined
  const serving = others.map((owner) => {
    const active = ctx
      .by(leavesByRoot, rootKey({ namespace, uid: owner }))
      .filter(({ status }) => status?.phase === 'Active')
    return new Set(active.map(({ spec }) => spec.cluster))
  })
  return new Set([...(serving[0] ?? [])].filter((cluster) => serving.every((clusters) => clusters.has(cluster))))
}

/**
 * The TTLs of a root and of those that share a host with it: the first owner of a host decides its TTL, and an owner that was
 * first before may have had a higher one.
 */
export function ttlsOf(
  spec: Immutable<GlobalIngressSpec>,
  { namespace, uid = '' }: RootRef,
  ownersOf: (host: string) => readonly string[],
  { globalByRoot }: Pick<RootIndexes, 'globalByRoot'>,
  ctx: Pick<Context, 'by'>,
): readonly TtlHistory[] {
  const others = new Set(spec.hosts.flatMap(({ host }) => ownersOf(host)))
  others.delete(uid)
  return [
    spec,
    ...[...others].flatMap((owner) =>
      ctx.by(globalByRoot, rootKey({ namespace, uid: owner })).map((global) => global.spec),
    ),
  ]
}

/** Whether the DNS objects of a host belong to another owner: the first one writes them. */
export function isLedByOther([leader]: readonly string[], uid: string): boolean {
  return leader !== undefined && leader !== uid
}

/**
 * Names whose answers show the leaves of this root alone. A managed host is used for its host, which may be a CNAME to it in
 * a zone of others; the answers of a host without one may be of another root that shares it.
 */
export function unsharedHosts(
  { hosts }: Immutable<Pick<GlobalIngressSpec, 'hosts'>>,
  uid: string,
  ownersOf: (host: string) => readonly string[],
): string[] {
  return hosts.flatMap(({ host, managed }) => {
    if (managed !== undefined) return [managed]
    return ownersOf(host).every((owner) => owner === uid) ? [host] : []
  })
}

/** Endpoints of the hosts that another root leads: by them the leaves of this root are in DNS. */
export function ledEndpoints(
  owners: ReadonlyMap<string, readonly string[]>,
  { namespace, uid = '' }: RootRef,
  { globalByRoot, endpointsByRoot }: RootIndexes,
  ctx: Pick<Context, 'by'>,
): Immutable<DNSLoadBalancerEndpoint>[] {
  return [...owners].flatMap(([host, [leader]]) => {
    if (endpointsByRoot === undefined || leader === undefined || leader === uid) return []
    const key = rootKey({ namespace, uid: leader })
    const names = new Set(ctx.by(globalByRoot, key).map(({ metadata }) => balancerName(metadata.name ?? '', host)))
    return ctx.by(endpointsByRoot, key).filter(({ spec }) => names.has(spec.loadbalancer))
  })
}
