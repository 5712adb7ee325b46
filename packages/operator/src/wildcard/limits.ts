/**
 * Limits of one member cluster. Its API server is not trusted: whatever it sends, the manager and the other members
 * continue. A member above a limit is cut off with the reason ClusterOverLimit: what is published for it stays.
 */
import type { CacheLimits } from '@seamark/kube'

/**
 * Of the cached nodes. Kubernetes supports 5 000 nodes of at most 1.5 MiB (etcd's request limit); a node with 50 images in
 * its status has about 25 kB.
 */
export const NODE_CACHE_LIMITS: CacheLimits = {
  maxObjects: 20_000,
  maxObjectBytes: 2 * 2 ** 20,
  maxBytes: 256 * 2 ** 20,
}

/** Addresses of one node. */
export const MAX_NODE_ADDRESSES = 64

/** Targets of one wildcard: as many A records as fit into a DNS message (RFC 1035 §4.2.2: 65 535 bytes, 16 each). */
export const MAX_TARGETS = 4_000

/** A list past the cache: pages of so many nodes, each within these bytes and this time. */
export const FRESH_LIST = { pageSize: 100, maxPageBytes: 8 * 2 ** 20, timeoutMs: 10_000 } as const
