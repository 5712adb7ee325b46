/**
 * The caches publish needs, each as narrow as it can be: of ten thousand proxies only what a decision reads, of Services only
 * the load balancers unless Services are sources themselves.
 */
import { Ingress, type Informer, type Informers, Namespace, Service } from '@seamark/kube'
import { type Kind, type Obj, parseKey } from '@seamark/kube/object'
import { Certificate } from '../api/certificate.ts'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { Gateway, HTTPRoute, ReferenceGrant } from '../api/gateway.ts'
import { HTTPProxy, IngressRoute, TLSCertificateDelegation } from '../api/http-proxy.ts'
import { Route } from '../api/route.ts'
import { FIELD_MANAGER } from './annotation-keys.ts'
import type { PublishOptions } from './options.ts'

/** What kubectl keeps of its last apply: often larger than the rest of the object, and nobody here reads it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
export const CONDITION_TYPE = 'seamark.io/Published'

export function watchForPublish(informers: Pick<Informers, 'informer'>, options: PublishOptions): Informer<Obj>[] {
  const watched: unknown[] = []
  const keepManagedFieldsOf = FIELD_MANAGER
  const isOn = (kind: PublishOptions['sources'][number]): boolean => options.sources.includes(kind)
  if (isOn('HTTPProxy'))
    watched.push(informers.informer(HTTPProxy, { projection: trimProxy, keepManagedFieldsOf: 'seamark' }))
  if (isOn('IngressRoute')) watched.push(informers.informer(IngressRoute, { projection: trimProxy }))
  if (isOn('Ingress')) watched.push(informers.informer(Ingress))
  if (isOn('Route')) watched.push(informers.informer(Route))
  if (isOn('HTTPRoute'))
    watched.push(informers.informer(HTTPRoute), informers.informer(Namespace, { projection: 'metadata' }))
  if (isOn('HTTPRoute') || isOn('Gateway'))
    watched.push(informers.informer(Gateway), informers.informer(ReferenceGrant))
  if (options.children.includes('DNSEndpoint')) {
    watched.push(informers.informer(DNSEndpoint, { projection: trimStatus<DNSEndpoint>, keepManagedFieldsOf }))
  }
  if (options.children.includes('Certificate')) {
    watched.push(informers.informer(Certificate, { projection: trimStatus<Certificate>, keepManagedFieldsOf }))
    watched.push(informers.informer(TLSCertificateDelegation, { keepManagedFieldsOf }))
  }
  watched.push(...watchServices(informers, options))
  return watched as Informer<Obj>[]
}

function watchServices(informers: Pick<Informers, 'informer'>, options: PublishOptions): Informer<Service>[] {
  if (options.sources.includes('Service')) return [informers.informer(Service)]
  return options.services.map(({ service }) => {
    const { namespace, name } = parseKey(service)
    return informers.informer(Service, {
      fieldSelector: `metadata.name=${name}`,
      ...(namespace !== undefined && { namespace }),
    })
  })
}

function trimProxy<T extends HTTPProxy>(object: T): T {
  const { annotations } = object.metadata
  if (annotations !== undefined) delete annotations[LAST_APPLIED]
  const { virtualhost, ingressClassName } = object.spec ?? {}
  object.spec = {
    ...(virtualhost !== undefined && { virtualhost: virtualhost === null ? null : trimHost(virtualhost) }),
    ...(ingressClassName !== undefined && { ingressClassName }),
  }
  const conditions = object.status?.conditions?.filter((condition) => condition.type === CONDITION_TYPE) ?? []
  if (conditions.length > 0) object.status = { conditions }
  else delete object.status
  return object
}

function trimHost({ fqdn, tls }: NonNullable<NonNullable<HTTPProxy['spec']>['virtualhost']>) {
  const trimmed =
    tls === undefined || tls === null
      ? tls
      : {
          ...(tls.secretName !== undefined && { secretName: tls.secretName }),
          ...(tls.passthrough !== undefined && { passthrough: tls.passthrough }),
        }
  return { ...(fqdn !== undefined && { fqdn }), ...(trimmed !== undefined && { tls: trimmed }) }
}

/** A child's status is its controller's business; `explain` reads it live. */
function trimStatus<T extends Obj & { status?: unknown }>(object: T): T {
  delete object.status
  return object
}

export function isSameKind(a: Kind, b: Kind): boolean {
  return a.group === b.group && a.plural === b.plural
}
