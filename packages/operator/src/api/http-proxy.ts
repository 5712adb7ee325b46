/**
 * Contour's kinds, and those of its predecessor: only the fields that publish reads or writes. The upstream schemas define
 * the rest, and unknown fields are preserved because whole objects are never sent back.
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

/** Removed from Contour in 1.7, still found in clusters that were never migrated. Same `virtualhost` block. */
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
