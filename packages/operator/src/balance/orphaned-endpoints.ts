/** Endpoints whose load balancer does not exist: deleted after the start-up grace, unless their source still renews them. */
import type { Context, Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { DNSLoadBalancerEndpoint } from '../api/dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { judgeEndpoint, STARTUP_GRACE_MS } from './decide/endpoints.ts'

type Endpoint = Immutable<DNSLoadBalancerEndpoint>

/** The cache does not show a load balancer that the API server returns: read again after this time. */
const CONTRADICTION_RETRY_MS = 30_000

export interface OrphanDecision {
  readonly deletions: readonly { readonly endpoint: Endpoint; readonly reason: string }[]
  /** When one of the others may have to be deleted; undefined: never. No event requeues the key of a missing object. */
  readonly againAfterMs: number | undefined
}

/** Pure. */
export function decideOrphans(endpoints: readonly Endpoint[], startedMs: number, nowMs: number): OrphanDecision {
  const graceMs = Math.max(0, startedMs + STARTUP_GRACE_MS - nowMs)
  const deletions: { endpoint: Endpoint; reason: string }[] = []
  let againAfterMs: number | undefined
  for (const endpoint of endpoints) {
    if (endpoint.metadata.deletionTimestamp !== undefined) continue
    const judged = judgeEndpoint(endpoint, false, startedMs, nowMs)
    if (judged.fate === 'delete') {
      deletions.push({ endpoint, reason: judged.reason })
      continue
    }
    const validUntilMs = Date.parse(endpoint.status?.validUntil ?? '')
    const leftMs = Number.isNaN(validUntilMs) ? graceMs : Math.max(graceMs, validUntilMs - nowMs)
    againAfterMs = Math.min(againAfterMs ?? leftMs, leftMs)
  }
  return { deletions, againAfterMs }
}

/** Returns after how many ms to look again; undefined: nothing is left to do. */
export async function deleteOrphanedEndpoints(
  loadBalancerKey: string,
  endpoints: readonly Endpoint[],
  startedMs: number,
  ctx: Context,
): Promise<number | undefined> {
  const { deletions, againAfterMs } = decideOrphans(endpoints, startedMs, ctx.clock.now())
  if (deletions.length === 0) return againAfterMs
  // A list that came back short is no deletion: the load balancer is read once more.
  if ((await ctx.client.find(DNSLoadBalancer, loadBalancerKey)) !== undefined) return CONTRADICTION_RETRY_MS
  for (const { endpoint, reason } of deletions) {
    ctx.log.info({ endpoint: keyOf(endpoint), reason }, 'endpoint deleted')
    await ctx.delete(DNSLoadBalancerEndpoint, endpoint)
  }
  return againAfterMs
}
