/**
 * Contour's kinds, and its predecessor's: only the fields that publish reads or writes. The upstream schemas hold the rest,
 * and unknown fields pass through untouched because we never send whole objects back.
 */
import { kind, type Obj } from '@seamark/kube/object'

export interface VirtualHost {
  fqdn?: string
  tls?: { secretName?: string; passthrough?: boolean } | null
}

export interface HTTPProxy extends Obj {
  spec?: { virtualhost?: VirtualHost | null; ingressClassName?: string }
  status?: {
    currentStatus?: string
    description?: string
    conditions?: { type: string; status: string; reason?: string; message?: string }[]
  }
}

export const HTTPProxy = kind<HTTPProxy>({
  group: 'projectcontour.io',
  version: 'v1',
  kind: 'HTTPProxy',
  plural: 'httpproxies',
  namespaced: true,
})

/** Gone from Contour since 1.7, still found in clusters that were never migrated. Same `virtualhost` block. */
export interface IngressRoute extends Obj {
  spec?: { virtualhost?: VirtualHost | null }
}

export const IngressRoute = kind<IngressRoute>({
  group: 'contour.heptio.com',
  version: 'v1beta1',
  kind: 'IngressRoute',
  plural: 'ingressroutes',
  namespaced: true,
})

export interface TLSCertificateDelegation extends Obj {
  spec: { delegations: { secretName: string; targetNamespaces: string[] }[] }
}

export const TLSCertificateDelegation = kind<TLSCertificateDelegation>({
  group: 'projectcontour.io',
  version: 'v1',
  kind: 'TLSCertificateDelegation',
  plural: 'tlscertificatedelegations',
  namespaced: true,
})
