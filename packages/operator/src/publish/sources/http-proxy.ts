/**
 * HTTPProxy and IngressRoute: one virtual host, at the address of the load balancer in front of Envoy. An included proxy
 * without a virtual host has no hosts. The status is not read: a proxy that became invalid keeps its records.
 */
import type { Immutable } from '@seamark/kube/object'
import { HTTPProxy, IngressRoute } from '@seamark/kube/contour'
import { normalizeHost } from '@seamark/dialects'
import type { Source } from './source.ts'
import { commonOf, sourceOf } from './base.ts'

const BEHIND_SERVICE = { type: 'service' } as const

export function fromHTTPProxy(object: Immutable<HTTPProxy>): Source {
  const host = object.spec?.virtualhost?.fqdn ?? ''
  return fromVirtualHost(commonOf(HTTPProxy, object), object, host, object.spec?.ingressClassName ?? '')
}

export function fromIngressRoute(object: Immutable<IngressRoute>): Source {
  const host = normalizeHost(object.spec?.virtualhost?.fqdn ?? '')
  return fromVirtualHost(commonOf(IngressRoute, object), object, host, '')
}

function fromVirtualHost(
  common: ReturnType<typeof commonOf>,
  object: Immutable<HTTPProxy | IngressRoute>,
  host: string,
  className: string,
): Source {
  const tls = object.spec?.virtualhost?.tls
  const hosts = host === '' ? [] : [host]
  return sourceOf(common, {
    className,
    hosts,
    tls: tls === undefined || tls === null ? [] : [{ secretName: tls.secretName ?? '', hosts }],
    isPassthrough: tls?.passthrough === true,
    origin: BEHIND_SERVICE,
    asks: 'both',
  })
}
