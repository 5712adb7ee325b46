/** `EndpointSlice` of Kubernetes: only the fields that show how many endpoints of a Service are ready. */
import { kind, type Obj } from '@seamark/kube/object'

export interface EndpointSlice extends Obj {
  addressType?: string
  endpoints?: { addresses?: string[]; conditions?: { ready?: boolean } }[]
}

export const EndpointSlice = kind<EndpointSlice>({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
})

/** Label of a slice that names its Service. */
export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name'

/** An absent `ready` means ready (EndpointConditions of discovery.k8s.io/v1). */
export function countReady({ endpoints = [] }: EndpointSlice): number {
  return endpoints.filter(({ conditions }) => conditions?.ready !== false).length
}
