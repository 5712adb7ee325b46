/**
 * A load balancer that the cache still contains and the server does not: its deletion happened while the watch was
 * interrupted, and the next list removes it from the cache.
 *
 * Until then its records disappear (garbage collection, or the search for records without a load balancer) and must not be
 * published again. So records that were published and are missing cause a live read, before they are published anew.
 */
import type { Context, Immutable } from '@seamark/kube'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import type { PublishedFact } from './write/record-publisher.ts'

/** The status names published endpoints, and nothing is published. */
export function hasLostRecords({ status }: Immutable<DNSLoadBalancer>, { published }: PublishedFact): boolean {
  return published?.length === 0 && (status?.active?.length ?? 0) > 0
}

export async function isDeleted({ metadata }: Immutable<DNSLoadBalancer>, ctx: Context): Promise<boolean> {
  const live = await ctx.client.find(DNSLoadBalancer, ctx.key, { signal: ctx.signal })
  if (live !== undefined && live.metadata.uid === metadata.uid) return false
  ctx.log.info(
    { uid: metadata.uid },
    'load balancer is deleted, and the cache does not contain that yet; its records are not published again',
  )
  return true
}
