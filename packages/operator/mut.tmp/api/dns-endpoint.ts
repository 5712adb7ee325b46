/** ExternalDNS' `DNSEndpoint`: the object in which publish, wildcard and records meet. */
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
  status?: { observedGeneration?: number }
}

export const DNSEndpoint = kind<DNSEndpoint>({
  group: 'externaldns.k8s.io',
  version: 'v1alpha1',
  kind: 'DNSEndpoint',
  plural: 'dnsendpoints',
  namespaced: true,
})
