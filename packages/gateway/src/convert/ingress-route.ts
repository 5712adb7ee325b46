/**
 * IngressRoute v1beta1 ↔ HTTPProxy v1, for manifests: pure, with a report of what the other kind cannot say.
 *
 * Paths: an IngressRoute repeats the delegated prefix in the routes of the delegate, an HTTPProxy does not. All objects are
 * converted together, so that the prefix of each delegate is known.
 * Lossless: what an IngressRoute cannot say travels in the annotation `seamark.io/http-proxy-spec`; converting back restores
 * it unless the IngressRoute was changed in between.
 */
import { HTTPProxy, IngressRoute, type ProxyRoute, type ProxyService } from '@seamark/kube/contour'
import { apiVersionOf, keyOf, type ObjectMeta } from '@seamark/kube/object'

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

const ORIGINAL = 'seamark.io/http-proxy-spec'

type ProxySpec = NonNullable<HTTPProxy['spec']>
type RouteSpec = NonNullable<IngressRoute['spec']>
type OldRoute = NonNullable<RouteSpec['routes']>[number]
type OldService = NonNullable<OldRoute['services']>[number]

export function toHttpProxies(routes: readonly IngressRoute[]): Converted<HTTPProxy> {
  const notes: ConversionNote[] = []
  const prefixes = delegatedPrefixes(routes)
  const objects = routes.map((object): HTTPProxy => {
    const key = keyOf(object)
    const note = (at: string, message: string) => void notes.push({ key, at, message })
    const kept = restore(object)
    if (kept !== undefined) return proxyOf(object, kept)
    const found = [...(prefixes.get(key) ?? [])]
    const isRoot = object.spec?.virtualhost !== undefined && object.spec.virtualhost !== null
    if (!isRoot && found.length !== 1) {
      const what =
        found.length === 0 ? 'none of the given objects delegates to it' : `delegated with ${found.join(' and ')}`
      note('spec.routes', `${what}; the paths are left whole, remove the delegated prefix by hand`)
    }
    const prefix = !isRoot && found.length === 1 ? (found[0] ?? '') : ''
    return proxyOf(object, toProxySpec(object.spec ?? {}, prefix, note))
  })
  return { objects, notes }
}

export function toIngressRoutes(proxies: readonly HTTPProxy[]): Converted<IngressRoute> {
  const notes: ConversionNote[] = []
  const objects = proxies.map((object): IngressRoute => {
    const key = keyOf(object)
    let isLossy = false
    const note = (at: string, message: string) => {
      isLossy = true
      notes.push({ key, at, message })
    }
    const spec = toRouteSpec(object.spec ?? {}, note)
    const annotations = { ...object.metadata.annotations }
    if (isLossy) annotations[ORIGINAL] = JSON.stringify(object.spec)
    const metadata = { ...object.metadata, ...(Object.keys(annotations).length > 0 && { annotations }) }
    return { apiVersion: apiVersionOf(IngressRoute), kind: IngressRoute.kind, metadata, spec }
  })
  return { objects, notes }
}

function proxyOf({ metadata }: IngressRoute, spec: ProxySpec): HTTPProxy {
  return { apiVersion: apiVersionOf(HTTPProxy), kind: HTTPProxy.kind, metadata: withoutOriginal(metadata), spec }
}

/** The stored spec, if the IngressRoute still is what it was converted to. */
function restore({ metadata, spec }: IngressRoute): ProxySpec | undefined {
  const text = metadata.annotations?.[ORIGINAL]
  if (text === undefined) return undefined
  try {
    const stored = JSON.parse(text) as ProxySpec
    const now = toRouteSpec(stored, () => undefined)
    return JSON.stringify(now) === JSON.stringify(spec) ? stored : undefined
  } catch {
    return undefined
  }
}

function withoutOriginal(metadata: ObjectMeta): ObjectMeta {
  const { annotations, ...rest } = metadata
  const { [ORIGINAL]: _original, ...others } = annotations ?? {}
  return Object.keys(others).length === 0 ? rest : { ...rest, annotations: others }
}

/** The full prefixes under which each object is delegated to, by key; roots begin with none. */
function delegatedPrefixes(routes: readonly IngressRoute[]): Map<string, Set<string>> {
  const prefixes = new Map<string, Set<string>>()
  for (const { metadata, spec } of routes)
    for (const { match, delegate } of spec?.routes ?? []) {
      if (delegate === undefined) continue
      const key = `${delegate.namespace ?? metadata.namespace ?? ''}/${delegate.name}`
      // Matches of an IngressRoute are whole paths, so a chain needs no walk.
      prefixes.set(key, (prefixes.get(key) ?? new Set()).add(match))
    }
  return prefixes
}

type Note = (at: string, message: string) => void

function toProxySpec(spec: RouteSpec, prefix: string, note: Note): ProxySpec {
  const [routes, includes]: [ProxyRoute[], NonNullable<ProxySpec['includes']>] = [[], []]
  for (const [index, route] of (spec.routes ?? []).entries()) {
    const at = `spec.routes[${index}]`
    const conditions = [{ prefix: relative(route.match, prefix, `${at}.match`, note) }]
    if (route.delegate !== undefined) {
      const { name, namespace } = route.delegate
      includes.push({ name, ...(namespace !== undefined && { namespace }), conditions })
    } else routes.push(toProxyRoute(route, conditions, at, note))
  }
  const { tcpproxy } = spec
  return {
    ...(spec.virtualhost !== undefined && { virtualhost: spec.virtualhost }),
    ...(includes.length > 0 && { includes }),
    ...(routes.length > 0 && { routes }),
    ...(tcpproxy !== undefined && {
      tcpproxy: {
        ...(tcpproxy.services !== undefined && { services: tcpproxy.services }),
        ...(tcpproxy.delegate !== undefined && { include: tcpproxy.delegate }),
      },
    }),
  }
}

function relative(match: string, prefix: string, at: string, note: Note): string {
  const bare = prefix.replace(/\/+$/, '')
  if (bare === '') return match
  if (match === bare || match.startsWith(`${bare}/`)) return match.slice(bare.length) || '/'
  note(at, `${match} is not below the delegated prefix ${prefix}: an IngressRoute never served it`)
  return match
}

function toProxyRoute(
  route: OldRoute,
  conditions: NonNullable<ProxyRoute['conditions']>,
  at: string,
  note: Note,
): ProxyRoute {
  const services = route.services ?? []
  const checks = new Set(services.map(({ healthCheck }) => JSON.stringify(healthCheck)))
  const strategies = new Set(services.map(({ strategy }) => strategy))
  if (checks.size > 1) note(`${at}.services`, 'health checks differ; an HTTPProxy has one for all services of a route')
  if (strategies.size > 1) note(`${at}.services`, 'strategies differ; an HTTPProxy has one for all services of a route')
  const [first] = services
  const { prefixRewrite, timeoutPolicy, retryPolicy } = route
  return {
    conditions,
    ...(services.length > 0 && { services: services.map(toProxyService) }),
    ...(route.enableWebsockets !== undefined && { enableWebsockets: route.enableWebsockets }),
    ...(route.permitInsecure !== undefined && { permitInsecure: route.permitInsecure }),
    ...(prefixRewrite !== undefined && { pathRewritePolicy: { replacePrefix: [{ replacement: prefixRewrite }] } }),
    ...(timeoutPolicy?.request !== undefined && { timeoutPolicy: { response: timeoutPolicy.request } }),
    ...(retryPolicy !== undefined && { retryPolicy }),
    ...(first?.healthCheck !== undefined && { healthCheckPolicy: first.healthCheck }),
    ...(first?.strategy !== undefined && { loadBalancerPolicy: { strategy: first.strategy } }),
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

/** Fields of a route that both kinds have. */
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

function toRouteSpec(spec: ProxySpec, note: Note): RouteSpec {
  const routes: OldRoute[] = []
  for (const [index, include] of (spec.includes ?? []).entries()) {
    const at = `spec.includes[${index}]`
    const { name, namespace, conditions = [] } = include
    routes.push({
      match: prefixOf(conditions, `${at}.conditions`, note),
      delegate: { name, ...(namespace !== undefined && { namespace }) },
    })
  }
  for (const [index, route] of (spec.routes ?? []).entries())
    routes.push(toOldRoute(route, `spec.routes[${index}]`, note))
  const { virtualhost, tcpproxy } = spec
  reportOthers(virtualhost ?? {}, HOST_FIELDS, 'spec.virtualhost', note)
  if (spec.ingressClassName !== undefined)
    note('spec.ingressClassName', 'use the annotation kubernetes.io/ingress.class')
  const include = tcpproxy?.include ?? tcpproxy?.includes
  return {
    ...(virtualhost !== undefined && { virtualhost }),
    ...(routes.length > 0 && { routes }),
    ...(tcpproxy !== undefined &&
      tcpproxy !== null && {
        tcpproxy: {
          ...(tcpproxy.services !== undefined && { services: tcpproxy.services }),
          ...(include !== undefined && { delegate: include }),
        },
      }),
  }
}

function toOldRoute(route: ProxyRoute, at: string, note: Note): OldRoute {
  reportOthers(route, ROUTE_FIELDS, at, note)
  const { pathRewritePolicy, timeoutPolicy, retryPolicy, healthCheckPolicy, loadBalancerPolicy } = route
  const replacements = pathRewritePolicy?.replacePrefix ?? []
  const [replacement] = replacements
  if (replacements.length > 1 || (replacement?.prefix !== undefined && replacement.prefix !== ''))
    note(`${at}.pathRewritePolicy`, 'an IngressRoute has one rewrite, for its own match')
  for (const field of ['idle', 'idleConnection'] as const)
    if (timeoutPolicy?.[field] !== undefined) note(`${at}.timeoutPolicy.${field}`, 'cannot be said in an IngressRoute')
  if (retryPolicy?.retryOn !== undefined || retryPolicy?.retriableStatusCodes !== undefined)
    note(`${at}.retryPolicy`, 'an IngressRoute retries on 5xx only')
  return {
    match: prefixOf(route.conditions ?? [], `${at}.conditions`, note),
    ...(route.services !== undefined && {
      services: route.services.map((service, index): OldService => {
        reportOthers(service, SERVICE_FIELDS, `${at}.services[${index}]`, note)
        const { name, port, weight, validation } = service
        return {
          name,
          port,
          ...(weight !== undefined && { weight }),
          ...(validation !== undefined && { validation }),
          ...(healthCheckPolicy !== undefined && { healthCheck: { ...healthCheckPolicy } }),
          ...(loadBalancerPolicy?.strategy !== undefined && { strategy: loadBalancerPolicy.strategy }),
        }
      }),
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

function prefixOf(conditions: NonNullable<ProxyRoute['conditions']>, at: string, note: Note): string {
  const [first] = conditions
  if (conditions.length === 0) return '/'
  if (conditions.length === 1 && first?.prefix !== undefined) return first.prefix
  note(at, 'an IngressRoute matches by one prefix only; the route would take more requests')
  return conditions.find(({ prefix }) => prefix !== undefined)?.prefix ?? '/'
}

function reportOthers(value: object, known: ReadonlySet<string>, at: string, note: Note): void {
  for (const [field, content] of Object.entries(value))
    if (!known.has(field) && content !== undefined) note(`${at}.${field}`, 'cannot be said in an IngressRoute')
}
