/**
 * Reads sources from the caches: which kinds are read, how each becomes a `Source`, and which sources name a host.
 *
 * Place in the flow: the only part of publish that handles all source kinds; all later parts use `Source`.
 */
import { type Index, Ingress, type Informers, Namespace, Service } from '@seamark/kube'
import type { Immutable, Kind, Obj } from '@seamark/kube/object'
import { Gateway, HTTPRoute, ReferenceGrant } from '@seamark/kube/gateway-api'
import { HTTPProxy, IngressRoute } from '@seamark/kube/contour'
import { Route } from '../../api/route.ts'
import { findGrantFault } from '@seamark/dialects'
import { annotation, keysUnder } from '../annotation-keys.ts'
import { isOfClass } from './class-filter.ts'
import { type Claimant, claimKey } from './host-claim.ts'
import type { PublishOptions, SourceKind } from '../options.ts'
import type { Source } from './source.ts'
import { fromGateway, fromHTTPRoute, type GatewayLookup } from './gateway.ts'
import { fromHTTPProxy, fromIngressRoute } from './http-proxy.ts'
import { fromIngress } from './ingress.ts'
import { fromRoute } from './route.ts'
import { fromService } from './service.ts'

interface Adapter {
  readonly kind: Kind
  read(object: Immutable<Obj>, lookup: GatewayLookup): Source
}

function adapter<T extends Obj>(kind: Kind<T>, read: (object: Immutable<T>, lookup: GatewayLookup) => Source): Adapter {
  return { kind, read: (object, lookup) => read(object as Immutable<T>, lookup) }
}

const ADAPTERS: Readonly<Record<SourceKind, Adapter>> = {
  HTTPProxy: adapter(HTTPProxy, fromHTTPProxy),
  IngressRoute: adapter(IngressRoute, fromIngressRoute),
  Ingress: adapter(Ingress, fromIngress),
  Gateway: adapter(Gateway, fromGateway),
  HTTPRoute: adapter(HTTPRoute, fromHTTPRoute),
  Route: adapter(Route, fromRoute),
  Service: adapter(Service, fromService),
}

export function sourceKindToken(kind: SourceKind): Kind {
  return ADAPTERS[kind].kind
}

/** Undefined: no kind of source has this name. */
export function sourceKindOf(name: string): Kind | undefined {
  return Object.hasOwn(ADAPTERS, name) ? ADAPTERS[name as SourceKind].kind : undefined
}

export interface SourceReader {
  find(kind: SourceKind, key: string): { source: Source; object: Immutable<Obj> } | undefined
  read(kind: SourceKind, object: Immutable<Obj>): Source
  /** Every source of every kind that is read. */
  all(): Source[]
  /** The served sources that name the host and may use it, including the source itself when it is cached. */
  claimants(host: string): Claimant[]
}

export function createSourceReader(
  informers: Pick<Informers, 'get' | 'list' | 'by' | 'index'>,
  options: PublishOptions,
): SourceReader {
  const lookup: GatewayLookup = {
    gateway: (namespace, name) => informers.get(Gateway, `${namespace}/${name}`),
    namespaceLabels: (namespace) => informers.get(Namespace, namespace)?.metadata.labels,
    grants: (namespace) => informers.list(ReferenceGrant, namespace),
  }
  const read = (kind: SourceKind, object: Immutable<Obj>): Source => ADAPTERS[kind].read(object, lookup)
  const indexes = new Map<SourceKind, Index<Obj>>()
  if (options.arbitrateHosts || options.roots !== 'ignored') {
    for (const kind of options.sources) {
      if (kind === 'Gateway') continue
      indexes.set(
        kind,
        informers.index(ADAPTERS[kind].kind, 'publish-host', (object) => namedHosts(kind, object)),
      )
    }
  }
  return {
    find(kind, key) {
      const object = informers.get(ADAPTERS[kind].kind, key)
      return object === undefined ? undefined : { source: read(kind, object), object }
    },
    read,
    all: () =>
      options.sources.flatMap((kind) => informers.list(ADAPTERS[kind].kind).map((object) => read(kind, object))),
    claimants(host) {
      const found: Claimant[] = []
      for (const [kind, index] of indexes) {
        for (const object of informers.by(index, claimKey(host))) {
          const source = read(kind, object)
          if (mayClaim(source, host, options)) found.push(source)
        }
      }
      return found
    },
  }
}

const NO_LOOKUP: GatewayLookup = { gateway: () => undefined, namespaceLabels: () => undefined, grants: () => [] }

/** Without lookups of other objects: a route has the hosts that it requests. */
export function readAlone(kind: SourceKind, object: Immutable<Obj>): Source {
  return ADAPTERS[kind].read(object, NO_LOOKUP)
}

/** An index function receives one object only. */
function namedHosts(kind: SourceKind, object: Immutable<Obj>): string[] {
  return readAlone(kind, object).hosts.map(claimKey)
}

/** Without the grant a namespace could hold up a host of another one by naming it first. */
export function mayClaim(source: Source, host: string, options: PublishOptions): boolean {
  return findGrantFault(options.grants, source.namespace, host) === undefined && isClaiming(source, options)
}

/** Sources that are excluded, being deleted or of another instance claim no host. */
export function isClaiming(source: Source, options: PublishOptions): boolean {
  const isExcluded = annotation(source.annotations, keysUnder(options.annotationPrefix).exclude) === 'true'
  return !source.isDeleting && !isExcluded && isOfClass(source, options.ingressClassName)
}
