/** ExternalDNS' `DNSEndpoint`: written by publish and wildcard, read by records or by ExternalDNS. */
import type { Condition } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'

export interface Endpoint {
  dnsName: string
  recordType: 'A' | 'AAAA' | 'CNAME'
  /** Never empty in what we write: ExternalDNS passes an empty A on to `--default-targets`. */
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

/** Whether records of ours are as a DNSEndpoint asks, where its status has room to say so. */
export const SERVED_CONDITION = 'seamark.io/Served'

export const DNSEndpoint = kind<DNSEndpoint>({
  group: 'externaldns.k8s.io',
  version: 'v1alpha1',
  kind: 'DNSEndpoint',
  plural: 'dnsendpoints',
  namespaced: true,
})

/** What every capability caches of it: one projection, so that one watch serves all of them. */
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
