/** Makes the DNS objects of a root what decide/dns-feed.ts decided: applies what differs, deletes what is not wanted. */
import { type Context, withController } from '@seamark/kube'
import { apiVersionOf, type Immutable, type Obj } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { GlobalIngress } from '../../api/global-ingress.ts'
import type { Feed } from '../decide/dns-feed.ts'
import { ROOT_ANNOTATION, ROOT_KIND_LABEL, rootKey } from '../names.ts'
import type { RootIndexes } from '../roots/root-indexes.ts'

export async function syncFeed(
  { balancers, endpoints }: Feed,
  root: Immutable<Obj>,
  global: Immutable<GlobalIngress>,
  { balancersByRoot, endpointsByRoot }: RootIndexes,
  ctx: Context,
): Promise<void> {
  if (balancersByRoot === undefined || endpointsByRoot === undefined) return
  const owner = { apiVersion: apiVersionOf(GlobalIngress), kind: GlobalIngress.kind, ...global }
  const about = <T extends Obj>(object: T): T => ({
    ...object,
    metadata: {
      ...object.metadata,
      labels: { ...object.metadata.labels, [ROOT_KIND_LABEL]: global.spec.rootRef.kind },
      annotations: { [ROOT_ANNOTATION]: global.spec.rootRef.name },
    },
  })
  const key = rootKey(root.metadata)
  for (const balancer of balancers) await ctx.apply(DNSLoadBalancer, withController(about(balancer), owner))
  for (const endpoint of endpoints) await ctx.apply(DNSLoadBalancerEndpoint, withController(about(endpoint), owner))
  const wanted = new Set([...balancers, ...endpoints].map(({ metadata }) => metadata.name))
  for (const endpoint of ctx.by(endpointsByRoot, key))
    if (!wanted.has(endpoint.metadata.name)) await ctx.delete(DNSLoadBalancerEndpoint, endpoint)
  for (const balancer of ctx.by(balancersByRoot, key))
    if (!wanted.has(balancer.metadata.name)) await ctx.delete(DNSLoadBalancer, balancer)
}
