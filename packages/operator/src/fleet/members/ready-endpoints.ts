/** How many endpoints of a Service are ready, from its EndpointSlices. */
import type { EndpointSlice } from '@seamark/kube'

/** Label of a slice that names its Service. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name'

/** An absent `ready` means ready (EndpointConditions of discovery.k8s.io/v1). */
export function countReady({ endpoints = [] }: EndpointSlice): number {
  return endpoints.filter(({ conditions }) => conditions?.ready !== false).length
}
