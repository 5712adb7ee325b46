/**
 * IngressRoute v1beta1 ↔ HTTPProxy v1, for manifests: pure, with a report of what the other kind cannot express.
 *
 * All objects are converted together, so that the prefix under which each delegate is included is known (delegation.ts).
 * Lossless both ways: a spec that the conversion back would not give is kept in an annotation, and restored from it unless the
 * converted object was changed in between. Metadata that an API server sets is left out.
 */
import { isDeepStrictEqual } from 'node:util'
import { HTTPProxy, IngressRoute, type ProxyRoute, type ProxyService, type TcpProxy } from '@seamark/kube/contour'
import { apiVersionOf, keyOf, type ObjectMeta } from '@seamark/kube/object'
import {
  delegateKey,
  isRoot,
  joinPaths,
  prefixesOfProxies,
  prefixesOfRoutes,
  relativePath,
  type DelegatedPrefixes,
} from './delegation.ts'

export interface ConversionNote {
  /** `namespace/name`. */
  readonly key: string
  /** The field, e.g. `spec.routes[1].services[0].healthCheck`. */
  readonly at: string
  readonly message: string
}

export interface Converted<T> {
  readonly objects: readonly T[]
  readonly notes: readonly ConversionNote[]
}

type ProxySpec = NonNullable<HTTPProxy['spec']>
type RouteSpec = NonNullable<IngressRoute['spec']>
type OldRoute = NonNullable<RouteSpec['routes']>[number]
type OldService = NonNullable<OldRoute['services']>[number]
type Note = (at: string, message: string) => void

/** The spec before the conversion, and the prefix that it was converted with. */
interface Original<T> {
  readonly spec: T
  readonly prefix: string
}

const PROXY_ORIGINAL = 'seamark.io/http-proxy-spec'
const ROUTE_ORIGINAL = 'seamark.io/ingress-route-spec'

export function toHttpProxies(routes: readonly IngressRoute[]): Converted<HTTPProxy> {
  const notes: ConversionNote[] = []
  const prefixes = prefixesOfRoutes(routes)
  const head = { apiVersion: apiVersionOf(HTTPProxy), kind: HTTPProxy.kind }
  const converted = routes.map((object) => {
    const note: Note = (at, message) => void notes.push({ key: keyOf(object), at, message })
    const { metadata, spec = {} } = object
    const kept = readOriginal<ProxySpec>(metadata, PROXY_ORIGINAL)
    if (kept !== undefined && isDeepStrictEqual(toRouteSpec(kept.spec, kept.prefix, ignore), spec))
      return { metadata, spec: kept.spec, original: undefined }
    const prefix = prefixOf(object, prefixes, 'remove the delegated prefix from its matches', note)
    return { metadata, spec: toProxySpec(spec, prefix, note), original: { spec, prefix } }
  })
  const back = prefixesOfProxies(converted)
  const objects = converted.map(({ metadata, spec, original }): HTTPProxy => {
    const isReversible =
      original === undefined ||
      (prefixOf({ metadata, spec }, back) === original.prefix &&
        isSameRoute(toRouteSpec(spec, original.prefix, ignore), original.spec))
    return { ...head, metadata: metadataOf(metadata, isReversible ? {} : { [ROUTE_ORIGINAL]: original }), spec }
  })
  return { objects, notes }
}

export function toIngressRoutes(proxies: readonly HTTPProxy[]): Converted<IngressRoute> {
  const notes: ConversionNote[] = []
  const prefixes = prefixesOfProxies(proxies)
  const head = { apiVersion: apiVersionOf(IngressRoute), kind: IngressRoute.kind }
  const converted = proxies.map((object) => {
    const note: Note = (at, message) => void notes.push({ key: keyOf(object), at, message })
    const { metadata, spec = {} } = object
    const kept = readOriginal<RouteSpec>(metadata, ROUTE_ORIGINAL)
    if (kept !== undefined && isDeepStrictEqual(toProxySpec(kept.spec, kept.prefix, ignore), spec))
      return { metadata, spec: kept.spec, original: undefined }
    const prefix = prefixOf(object, prefixes, 'put the prefix in front of its matches', note)
    return { metadata, spec: toRouteSpec(spec, prefix, note), original: { spec, prefix } }
  })
  const back = prefixesOfRoutes(converted)
  const objects = converted.map(({ metadata, spec, original }): IngressRoute => {
    const isReversible =
      original === undefined ||
      (prefixOf({ metadata, spec }, back) === original.prefix &&
        isDeepStrictEqual(toProxySpec(spec, original.prefix, ignore), original.spec))
    return { ...head, metadata: metadataOf(metadata, isReversible ? {} : { [PROXY_ORIGINAL]: original }), spec }
  })
  return { objects, notes }
}

const ignore: Note = () => undefined

/** The prefix of a delegate; empty for a root, and with a note if it is not known. */
function prefixOf(object: HTTPProxy | IngressRoute, all: DelegatedPrefixes, advice = '', note: Note = ignore): string {
  if (isRoot(object)) return ''
  const found = [...(all.get(delegateKey(object.metadata)) ?? [])].toSorted()
  const [only] = found
  if (only !== undefined && found.length === 1) return only
  const what =
    found.length === 0
      ? 'none of the given objects delegates to it: give them together, or'
      : `it is delegated to under ${found.join(' and ')}: make one object for each, and`
  note('spec.routes', `the paths are converted as they are; ${what} ${advice} by hand`)
  return ''
}

/** The order of routes has no meaning. */
function isSameRoute({ routes: left, ...a }: RouteSpec, { routes: right, ...b }: RouteSpec): boolean {
  if (!isDeepStrictEqual(a, b) || left?.length !== right?.length) return false
  const rest = [...(right ?? [])]
  return (left ?? []).every((route) => {
    const at = rest.findIndex((each) => isDeepStrictEqual(route, each))
    return at >= 0 && rest.splice(at, 1).length === 1
  })
}

function readOriginal<T>({ annotations }: ObjectMeta, name: string): Original<T> | undefined {
  const text = annotations?.[name]
  if (text === undefined) return undefined
  try {
    const { spec, prefix } = JSON.parse(text) as Partial<Original<T>>
    return typeof spec === 'object' && spec !== null && typeof prefix === 'string' ? { spec, prefix } : undefined
  } catch {
    return undefined
  }
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Only what a manifest contains: an object that was read from a cluster can be applied as another one. */
function metadataOf(metadata: ObjectMeta, original: Readonly<Record<string, unknown>> = {}): ObjectMeta {
  const { name, namespace, labels, annotations: given, ownerReferences } = metadata
  const { [PROXY_ORIGINAL]: _proxy, [ROUTE_ORIGINAL]: _route, [LAST_APPLIED]: _applied, ...others } = given ?? {}
  const kept = Object.entries(original).map(([key, value]) => [key, JSON.stringify(value)])
  const annotations: Record<string, string> = { ...others, ...Object.fromEntries(kept) }
  return {
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
    ...(labels !== undefined && { labels }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ...(ownerReferences !== undefined && { ownerReferences }),
  }
}

function toProxySpec(spec: RouteSpec, prefix: string, note: Note): ProxySpec {
  const [routes, includes]: [ProxyRoute[], NonNullable<ProxySpec['includes']>] = [[], []]
  for (const [index, route] of (spec.routes ?? []).entries()) {
    const at = `spec.routes[${index}]`
    const own = ownPath(route.match, prefix, `${at}.match`, note)
    const conditions = own === '' ? {} : { conditions: [{ prefix: own }] }
    if (route.delegate !== undefined) {
      const { name, namespace } = route.delegate
      includes.push({ name, ...(namespace !== undefined && { namespace }), ...conditions })
    } else routes.push({ ...conditions, ...toProxyRoute(route, at, note) })
  }
  const { virtualhost, tcpproxy } = spec
  const minimum = virtualhost?.tls?.minimumProtocolVersion
  if (minimum === '1.0' || minimum === '1.1')
    note(
      'spec.virtualhost.tls.minimumProtocolVersion',
      `TLS ${minimum} is not supported by an HTTPProxy; use 1.2 or 1.3`,
    )
  return {
    ...(virtualhost !== undefined && { virtualhost }),
    ...(includes.length > 0 && { includes }),
    ...(routes.length > 0 && { routes }),
    ...(tcpproxy !== undefined && { tcpproxy: toTcpProxy(tcpproxy, note) }),
  }
}

function ownPath(match: string, prefix: string, at: string, note: Note): string {
  if (`${match}/` === prefix) {
    note(at, `${match} becomes ${prefix}: the prefix of an include is added to every path below it`)
    return ''
  }
  const path = relativePath(match, prefix)
  if (path === undefined)
    note(at, `${match} is not below the delegated prefix ${prefix}: an IngressRoute never served it`)
  return path ?? match
}

function toTcpProxy({ services, delegate }: NonNullable<RouteSpec['tcpproxy']>, note: Note): TcpProxy {
  const at = 'spec.tcpproxy.services'
  for (const [index, { healthCheck }] of (services ?? []).entries())
    if (healthCheck !== undefined) note(`${at}[${index}].healthCheck`, 'had no effect on TCP and is left out')
  const strategy = strategyOf(services ?? [], at, note)
  return {
    ...(services !== undefined && { services: services.map(toProxyService) }),
    ...(delegate !== undefined && { include: delegate }),
    ...(strategy !== undefined && { loadBalancerPolicy: { strategy } }),
  }
}

/** An HTTPProxy has one strategy for all services of a route. */
function strategyOf(services: readonly OldService[], at: string, note: Note): string | undefined {
  if (new Set(services.map(({ strategy }) => strategy)).size > 1)
    note(at, 'strategies differ; an HTTPProxy has one for all services of a route, the first one is used')
  return services.find(({ strategy }) => strategy !== undefined)?.strategy
}

function toProxyRoute(route: OldRoute, at: string, note: Note): ProxyRoute {
  const { services, prefixRewrite, timeoutPolicy, retryPolicy } = route
  if (new Set((services ?? []).map(({ healthCheck }) => JSON.stringify(healthCheck))).size > 1)
    note(
      `${at}.services`,
      'health checks differ; an HTTPProxy has one for all services of a route, the first one is used',
    )
  const healthCheck = services?.find((each) => each.healthCheck !== undefined)?.healthCheck
  const strategy = strategyOf(services ?? [], `${at}.services`, note)
  return {
    ...(services !== undefined && { services: services.map(toProxyService) }),
    ...(route.enableWebsockets !== undefined && { enableWebsockets: route.enableWebsockets }),
    ...(route.permitInsecure !== undefined && { permitInsecure: route.permitInsecure }),
    ...(prefixRewrite !== undefined && { pathRewritePolicy: { replacePrefix: [{ replacement: prefixRewrite }] } }),
    ...(timeoutPolicy?.request !== undefined && { timeoutPolicy: { response: timeoutPolicy.request } }),
    ...(retryPolicy !== undefined && { retryPolicy }),
    ...(healthCheck !== undefined && { healthCheckPolicy: healthCheck }),
    ...(strategy !== undefined && { loadBalancerPolicy: { strategy } }),
  }
}

function toProxyService({ name, port, weight, validation }: OldService): ProxyService {
  return {
    name,
    port,
    ...(weight !== undefined && { weight }),
    ...(validation !== undefined && { validation }),
  }
}

/** Fields that both kinds have. */
const ROUTE_FIELDS = new Set([
  'conditions',
  'services',
  'enableWebsockets',
  'permitInsecure',
  'timeoutPolicy',
  'retryPolicy',
  'pathRewritePolicy',
  'healthCheckPolicy',
  'loadBalancerPolicy',
])
const SERVICE_FIELDS = new Set(['name', 'port', 'weight', 'validation'])
const HOST_FIELDS = new Set(['fqdn', 'tls'])
const TLS_FIELDS = new Set(['secretName', 'passthrough', 'minimumProtocolVersion'])
const TCP_FIELDS = new Set(['services', 'include', 'includes', 'loadBalancerPolicy'])
const SPEC_FIELDS = new Set(['virtualhost', 'includes', 'routes', 'tcpproxy'])

function toRouteSpec(spec: ProxySpec, prefix: string, note: Note): RouteSpec {
  const routes: OldRoute[] = []
  for (const [index, include] of (spec.includes ?? []).entries()) {
    const { name, namespace, conditions = [] } = include
    routes.push({
      match: matchOf(conditions, prefix, `spec.includes[${index}].conditions`, note),
      delegate: { name, ...(namespace !== undefined && { namespace }) },
    })
  }
  for (const [index, route] of (spec.routes ?? []).entries())
    routes.push(toOldRoute(route, prefix, `spec.routes[${index}]`, note))
  const { virtualhost, tcpproxy } = spec
  const { ingressClassName, ...known } = spec
  if (ingressClassName !== undefined) note('spec.ingressClassName', 'use the annotation kubernetes.io/ingress.class')
  reportOthers(known, SPEC_FIELDS, 'spec', note)
  reportOthers(virtualhost ?? {}, HOST_FIELDS, 'spec.virtualhost', note)
  reportOthers(virtualhost?.tls ?? {}, TLS_FIELDS, 'spec.virtualhost.tls', note)
  return {
    ...(virtualhost !== undefined && { virtualhost }),
    ...(routes.length > 0 && { routes }),
    ...(tcpproxy !== undefined && tcpproxy !== null && { tcpproxy: toOldTcpProxy(tcpproxy, note) }),
  }
}

function toOldTcpProxy(tcpproxy: NonNullable<ProxySpec['tcpproxy']>, note: Note): NonNullable<RouteSpec['tcpproxy']> {
  reportOthers(tcpproxy, TCP_FIELDS, 'spec.tcpproxy', note)
  const { services, loadBalancerPolicy } = tcpproxy
  const delegate = tcpproxy.include ?? tcpproxy.includes
  return {
    ...(services !== undefined && {
      services: toOldServices(services, loadBalancerPolicy, undefined, 'spec.tcpproxy', note),
    }),
    ...(delegate !== undefined && { delegate }),
  }
}

function toOldServices(
  services: readonly ProxyService[],
  balancing: ProxyRoute['loadBalancerPolicy'],
  healthCheck: ProxyRoute['healthCheckPolicy'],
  at: string,
  note: Note,
): OldService[] {
  if (balancing?.requestHashPolicies !== undefined)
    note(`${at}.loadBalancerPolicy.requestHashPolicies`, 'an IngressRoute cannot express it')
  return services.map((service, index) => {
    reportOthers(service, SERVICE_FIELDS, `${at}.services[${index}]`, note)
    const { name, port, weight, validation } = service
    return {
      name,
      port,
      ...(weight !== undefined && { weight }),
      ...(validation !== undefined && { validation }),
      ...(healthCheck !== undefined && { healthCheck: { ...healthCheck } }),
      ...(balancing?.strategy !== undefined && { strategy: balancing.strategy }),
    }
  })
}

function toOldRoute(route: ProxyRoute, prefix: string, at: string, note: Note): OldRoute {
  reportOthers(route, ROUTE_FIELDS, at, note)
  const { pathRewritePolicy, timeoutPolicy, retryPolicy, healthCheckPolicy, loadBalancerPolicy, services } = route
  const replacements = pathRewritePolicy?.replacePrefix ?? []
  const [replacement] = replacements
  if (replacements.length > 1 || (replacement?.prefix !== undefined && replacement.prefix !== ''))
    note(`${at}.pathRewritePolicy`, 'an IngressRoute has one rewrite, for its own match')
  for (const field of ['idle', 'idleConnection'] as const)
    if (timeoutPolicy?.[field] !== undefined) note(`${at}.timeoutPolicy.${field}`, 'an IngressRoute cannot express it')
  if (retryPolicy?.retryOn !== undefined || retryPolicy?.retriableStatusCodes !== undefined)
    note(`${at}.retryPolicy`, 'an IngressRoute retries on 5xx only')
  if (healthCheckPolicy?.expectedStatuses !== undefined)
    note(`${at}.healthCheckPolicy.expectedStatuses`, 'an IngressRoute expects 200')
  const { expectedStatuses: _statuses, ...healthCheck } = healthCheckPolicy ?? { path: '' }
  return {
    match: matchOf(route.conditions ?? [], prefix, `${at}.conditions`, note),
    ...(services !== undefined && {
      services: toOldServices(
        services,
        loadBalancerPolicy,
        healthCheckPolicy === undefined ? undefined : healthCheck,
        at,
        note,
      ),
    }),
    ...(route.enableWebsockets !== undefined && { enableWebsockets: route.enableWebsockets }),
    ...(route.permitInsecure !== undefined && { permitInsecure: route.permitInsecure }),
    ...(replacement !== undefined && { prefixRewrite: replacement.replacement }),
    ...(timeoutPolicy?.response !== undefined && { timeoutPolicy: { request: timeoutPolicy.response } }),
    ...(retryPolicy !== undefined && {
      retryPolicy: {
        ...(retryPolicy.count !== undefined && { count: retryPolicy.count }),
        ...(retryPolicy.perTryTimeout !== undefined && { perTryTimeout: retryPolicy.perTryTimeout }),
      },
    }),
  }
}

/** The whole path of a route or include. */
function matchOf(conditions: NonNullable<ProxyRoute['conditions']>, prefix: string, at: string, note: Note): string {
  const path = conditions.find((each) => each.prefix !== undefined)?.prefix ?? ''
  if (conditions.length > 1 || (conditions.length === 1 && conditions[0]?.prefix === undefined))
    note(at, 'an IngressRoute matches by one prefix only: the route would take more requests')
  return joinPaths(prefix, path) || '/'
}

function reportOthers(value: object, known: ReadonlySet<string>, at: string, note: Note): void {
  for (const [field, content] of Object.entries(value))
    if (!known.has(field) && content !== undefined) note(`${at}.${field}`, 'an IngressRoute cannot express it')
}
