/** ExternalDNS' `DNSEndpoint`: written by publish and wildcard, read by records or by ExternalDNS. */
import type { Condition } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'

export interface Endpoint {
  dnsName: string
  recordType: 'A' | 'AAAA' | 'CNAME'
  /** Never empty in objects we write: ExternalDNS replaces an empty list by `--default-targets`. */
  targets: string[]
  /** Seconds. */
  recordTTL: number
  setIdentifier?: string
  providerSpecific?: { name: string; value: string }[]
}

export interface DNSEndpoint extends Obj {
  spec: { endpoints: Endpoint[] }
  status?: { observedGeneration?: number; conditions?: Condition[] }
}

/** Whether the records of a DNSEndpoint are in place, where its schema has conditions. */
export const SERVED_CONDITION = 'seamark.io/Served'

export const DNSEndpoint = kind<DNSEndpoint>({
  group: 'externaldns.k8s.io',
  version: 'v1alpha1',
  kind: 'DNSEndpoint',
  plural: 'dnsendpoints',
  namespaced: true,
})

/** The cached projection, the same for every capability, so that they share one watch. */
export function trimEndpoint(object: DNSEndpoint): DNSEndpoint {
  const { observedGeneration, conditions } = object.status ?? {}
  if (observedGeneration === undefined && conditions === undefined) delete object.status
  else
    object.status = {
      ...(observedGeneration !== undefined && { observedGeneration }),
      ...(conditions !== undefined && { conditions }),
    }
  return object
}
