/**
 * The caches of publish, each as small as possible: of ten thousand proxies only the fields that a decision reads, of
 * Services only the load balancers unless Services are sources themselves.
 */
import {
  type CacheOptions,
  type Cluster,
  Forbidden,
  type Informer,
  type Informers,
  Namespace,
  NotFound,
  Service,
} from '@seamark/kube'
import { type Kind, type Obj, parseKey } from '@seamark/kube/object'
import { Certificate } from '../api/certificate.ts'
import { DNSEndpoint, trimEndpoint } from '../api/dns-endpoint.ts'
import { Gateway, ReferenceGrant } from '@seamark/kube/gateway-api'
import { HTTPProxy, IngressRoute, TLSCertificateDelegation } from '@seamark/kube/contour'
import { FIELD_MANAGER } from '../process/field-manager.ts'
import { childKinds } from './child-kinds.ts'
import { kindsOfPublishers } from './decide/host-publications.ts'
import type { PublishOptions } from './options.ts'
import { sourceKindToken } from './sources/source-reader.ts'

/** kubectl's copy of its last apply: often larger than the rest of the object, and not read here. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
export const CONDITION_TYPE = 'seamark.io/Published'

/** How a kind is cached; undefined: unmodified. */
function cacheOptions(kind: Kind, options: PublishOptions): CacheOptions<Obj> | undefined {
  const keepManagedFieldsOf = FIELD_MANAGER
  // Wildcard and records read it too.
  if (isSameKind(kind, DNSEndpoint))
    return { projection: trimEndpoint as unknown as (object: Obj) => Obj, keepManagedFieldsOf }
  if (isSameKind(kind, Certificate))
    return { projection: trimCertificate as unknown as (object: Obj) => Obj, keepManagedFieldsOf }
  if (isSameKind(kind, TLSCertificateDelegation)) return { projection: trimStatus, keepManagedFieldsOf }
  if (isSameKind(kind, HTTPProxy) || isSameKind(kind, IngressRoute))
    return { projection: trimProxy, keepManagedFieldsOf }
  if (isSameKind(kind, Service)) return { projection: trimService, keepManagedFieldsOf }
  if (isSameKind(kind, Namespace)) return { projection: 'metadata' }
  return options.sources.some((source) => isSameKind(sourceKindToken(source), kind))
    ? { keepManagedFieldsOf }
    : undefined
}

/** Sets the cache options of each kind, for every later watch of it, and starts the watches that decisions read. */
export function watchForPublish(
  informers: Pick<Informers, 'informer' | 'configure'>,
  options: PublishOptions,
): Informer<Obj>[] {
  const kinds: Kind[] = options.sources.map(sourceKindToken)
  if (options.sources.includes('HTTPRoute') || options.sources.includes('Gateway')) kinds.push(Gateway, ReferenceGrant)
  if (options.sources.includes('HTTPRoute')) kinds.push(Namespace)
  kinds.push(...childKinds(options))
  const watched = new Set(
    kinds.map((kind) => {
      const cache = cacheOptions(kind, options)
      if (cache !== undefined) informers.configure(kind, cache)
      return informers.informer(kind)
    }),
  )
  return [...watched, ...(watchServices(informers, options) as unknown as Informer<Obj>[])]
}

/**
 * For commands: starts the watches of what balance publishes, and waits for those that the server allows. Without the right to
 * list a kind nothing of it is known, as in the manager.
 */
export function watchPublishers({ client, informers }: Cluster, options: PublishOptions) {
  const watched = kindsOfPublishers(options).map((kind) => informers.informer(kind))
  return {
    synced: async (signal: AbortSignal): Promise<void> => {
      for (const informer of watched) {
        const isAllowed = await client.list(informer.kind, { limit: 1, signal }).then(
          () => true,
          (error: unknown) => {
            if (error instanceof Forbidden) return false
            if (error instanceof NotFound) return true
            throw error
          },
        )
        if (isAllowed) await informer.synced(signal)
      }
    },
  }
}

function watchServices(informers: Pick<Informers, 'informer'>, options: PublishOptions): Informer<Service>[] {
  if (options.sources.includes('Service')) return []
  return options.services.map(({ service }) => {
    const { namespace, name } = parseKey(service)
    return informers.informer(Service, {
      fieldSelector: `metadata.name=${name}`,
      ...(namespace !== undefined && { namespace }),
    })
  })
}

/** Balance reads it too: its type, its addresses, its metadata. */
function trimService(object: Service): Service {
  dropLastApplied(object)
  const { type } = object.spec ?? {}
  object.spec = type === undefined ? {} : { type }
  return object
}

function dropLastApplied(object: Obj): void {
  if (object.metadata.annotations?.[LAST_APPLIED] === undefined) return
  const { [LAST_APPLIED]: _dropped, ...annotations } = object.metadata.annotations
  object.metadata = { ...object.metadata, annotations }
}

function trimProxy<T extends HTTPProxy>(object: T): T {
  dropLastApplied(object)
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

/** Of the status only what says whether it is valid, and for how long. */
function trimCertificate(object: Certificate): Certificate {
  const { conditions, notAfter, renewalTime } = object.status ?? {}
  const ready = conditions?.find(({ type }) => type === 'Ready')
  if (ready === undefined && notAfter === undefined) return trimStatus(object)
  object.status = {
    ...(ready !== undefined && { conditions: [ready] }),
    ...(notAfter !== undefined && { notAfter }),
    ...(renewalTime !== undefined && { renewalTime }),
  }
  return object
}

/** The status of a delegation is not cached. */
function trimStatus<T extends Obj & { status?: unknown }>(object: T): T {
  delete object.status
  return object
}

function isSameKind(a: Kind, b: Kind): boolean {
  return a.group === b.group && a.plural === b.plural
}
