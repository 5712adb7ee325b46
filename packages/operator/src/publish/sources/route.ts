/**
 * OpenShift Route: its host at the canonical names of the routers. A router that rejects the route keeps its entry in the
 * status, and the record stays: an invalid route is not a deleted one.
 */
import type { Immutable } from '@seamark/kube/object'
import { Route } from '../../api/route.ts'
import { sortAddresses, normalizeHost } from '@seamark/dialects'
import type { Source } from './source.ts'
import { commonOf, sourceOf } from './base.ts'

export function fromRoute(object: Immutable<Route>): Source {
  const routers = object.status?.ingress ?? []
  const host = normalizeHost(object.spec?.host ?? routers.find((router) => router.host !== undefined)?.host ?? '')
  const hosts = host === '' ? [] : [host]
  const { tls } = object.spec ?? {}
  const entries = routers.flatMap(({ routerCanonicalHostname: hostname }) =>
    hostname === undefined ? [] : [{ hostname }],
  )
  return sourceOf(commonOf(Route, object), {
    className: '',
    hosts,
    tls: tls === undefined ? [] : [{ secretName: tls.externalCertificate?.name ?? '', hosts }],
    isPassthrough: tls?.termination === 'passthrough',
    origin: { type: 'addresses', addresses: sortAddresses(entries) },
    asks: 'both',
  })
}
