/** Endpoints whose load balancer does not exist: deleted after the start-up grace, unless their source still renews them. */
import type { Context, Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { judgeEndpoint, STARTUP_GRACE_MS } from './endpoints.ts'

/** Returns after how many ms to look again; undefined: nothing is left to do. */
export async function deleteOrphanedEndpoints(
  loadBalancerKey: string,
  endpoints: readonly Immutable<DNSLoadBalancerEndpoint>[],
  startedMs: number,
  ctx: Context,
): Promise<number | undefined> {
  const nowMs = ctx.clock.now()
  const graceMs = startedMs + STARTUP_GRACE_MS - nowMs
  let isWaiting = false
  for (const endpoint of endpoints) {
    const judged = judgeEndpoint(endpoint, false, startedMs, nowMs)
    if (judged.fate === 'ignore') isWaiting = true
    // A list that came back short is no deletion: the load balancer is read once more.
    if (judged.fate !== 'delete' || (await ctx.client.find(DNSLoadBalancer, loadBalancerKey)) !== undefined) continue
    ctx.log.info({ endpoint: keyOf(endpoint), reason: judged.reason }, 'endpoint deleted')
    await ctx.delete(DNSLoadBalancerEndpoint, endpoint)
  }
  return isWaiting && graceMs > 0 ? graceMs : undefined
}
