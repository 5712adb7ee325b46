/**
 * Limits of what is cached of one member: whoever registers a cluster does not decide how much memory the manager uses. A kind
 * that exceeds them is not read (packages/kube, CacheLimits), and its leaves keep their last known state.
 */
import type { CacheLimits } from '@seamark/kube'

const MIB = 2 ** 20
/** The largest object that etcd stores. */
const MAX_OBJECT_BYTES = 1.5 * MIB

/** Leaves: those of 20 000 roots. */
export const LEAF_CACHE_LIMITS: CacheLimits = {
  maxObjects: 20_000,
  maxObjectBytes: MAX_OBJECT_BYTES,
  maxBytes: 128 * MIB,
}

/** Services, EndpointSlices and Gateways: five times the Services that Kubernetes supports in a cluster. */
export const BACKEND_CACHE_LIMITS: CacheLimits = {
  maxObjects: 50_000,
  maxObjectBytes: MAX_OBJECT_BYTES,
  maxBytes: 256 * MIB,
}
