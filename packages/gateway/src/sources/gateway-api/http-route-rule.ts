/** One rule of an HTTPRoute: matches, filters and backends. */
import type { BackendRef, HTTPRouteMatch, HTTPRouteRule, PathModifier, RouteFilter } from '@seamark/kube/gateway-api'
import type { Immutable } from '@seamark/kube/object'
import { parseGoDuration } from '../../draft/durations.ts'
import { headerFilter } from '../../draft/headers.ts'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { clusterOf, protocolOf } from '../../draft/services.ts'
import type { DraftSink } from '../../draft/step.ts'
import { hostTextFault, readPathText } from '../../draft/wire-text.ts'
import { corsFault } from '../../draft/cors.ts'
import type {
  Action,
  Backend,
  Cluster,
  Cors,
  HeaderMutation,
  Match,
  Mirror,
  Origin,
  PathMatch,
  PathRewrite,
  Retry,
  Route,
} from '../../ir/model.ts'
import { regexFault } from '../../ir/regex.ts'
import { withoutTrailingSlashes } from '../../ir/path-text.ts'
import { sortHeaderMatches, sortQueryMatches } from '../../ir/route-order.ts'
import { resolveBackend } from './backend-ref.ts'
import type { BackendTlsPolicies } from './backend-tls-policy.ts'
import { DEFAULT_IDLE_MS } from '../ingress.ts'
import type { RouteFault } from './route-attachment.ts'

export interface RuleInput {
  readonly draft: DraftSink
  readonly objects: Objects
  readonly settings: BuildSettings
  readonly policies: BackendTlsPolicies
  /** Keys of the Services that the rules refer to; filled by `buildRule`. */
  readonly services: Set<string>
  readonly kind: 'HTTPRoute' | 'GRPCRoute'
  readonly namespace: string
}

export interface BuiltRule {
  readonly routes: readonly Route[]
  /** The whole route is not accepted. */
  readonly unsupported?: RouteFault
  /** A backend is missing; the rest is served. */
  readonly unresolved?: RouteFault
}

interface Filters {
  request?: HeaderMutation
  response?: HeaderMutation
  redirect?: Immutable<NonNullable<RouteFilter['requestRedirect']>>
  rewrite?: Immutable<NonNullable<RouteFilter['urlRewrite']>>
  readonly mirrors: Immutable<NonNullable<RouteFilter['requestMirror']>>[]
  cors?: Cors
}

export function buildRule(
  input: RuleInput,
  rule: Immutable<HTTPRouteRule>,
  { origin, order }: { origin: Origin; order: string },
): BuiltRule {
  const filters = readFilters(rule.filters ?? [])
  if ('fault' in filters)
    return { routes: [], unsupported: { reason: 'UnsupportedValue', message: `${origin.at}: ${filters.fault}` } }
  const matches = rule.matches === undefined || rule.matches.length === 0 ? [{}] : rule.matches
  const routes: Route[] = []
  const backends = readBackends(input, rule.backendRefs ?? [], origin.at)
  if ('unsupported' in backends) return { routes: [], unsupported: backends.unsupported }
  const mirrors = readMirrors(input, filters, origin.at)
  for (const [index, each] of matches.entries()) {
    const match = readMatch(each)
    if ('fault' in match) {
      const message = `${origin.at}.matches[${index}]: ${match.fault}`
      return { routes: [], unsupported: { reason: 'UnsupportedValue', message } }
    }
    const action = actionOf(input, rule, filters, match, backends, mirrors.mirrors)
    if ('fault' in action) {
      const message = `${origin.at}: ${action.fault}`
      return { routes: [], unsupported: { reason: 'UnsupportedValue', message } }
    }
    routes.push({
      match,
      action,
      upgradesToHttps: false,
      ...(filters.request !== undefined && { requestHeaders: filters.request }),
      ...(filters.response !== undefined && { responseHeaders: filters.response }),
      ...(filters.cors !== undefined && { cors: filters.cors }),
      origin,
      order: `${order} ${String(index).padStart(6, '0')}`,
    })
  }
  const unresolved = backends.unresolved ?? mirrors.unresolved
  return { routes, ...(unresolved !== undefined && { unresolved }) }
}

function readMatch(match: Immutable<HTTPRouteMatch>): Match | { fault: string } {
  const { type = 'PathPrefix', value = '/' } = match.path ?? {}
  const path = readPath(type, value)
  if ('fault' in path) return path
  const headers = unique(match.headers ?? [], true)
  const query = unique(match.queryParams ?? [], false)
  for (const { type: kind = 'Exact', name, value: text } of [...headers, ...query]) {
    if (kind !== 'Exact' && kind !== 'RegularExpression') return { fault: `match type ${kind} is not supported` }
    const fault = kind === 'RegularExpression' ? regexFault(text) : undefined
    if (fault !== undefined) return { fault: `regular expression "${text}" of ${name} is invalid: ${fault}` }
  }
  const kindOf = (type = 'Exact') => (type === 'Exact' ? ('exact' as const) : ('regex' as const))
  return {
    path,
    ...(match.method !== undefined && { method: match.method }),
    headers: sortHeaderMatches(
      headers.map((each) => ({ name: each.name.toLowerCase(), kind: kindOf(each.type), value: each.value })),
    ),
    query: sortQueryMatches(query.map((each) => ({ name: each.name, kind: kindOf(each.type), value: each.value }))),
  }
}

/** Of several entries with one name only the first counts. */
function unique<T extends { readonly name: string }>(entries: readonly T[], ignoresCase: boolean): T[] {
  const key = ({ name }: T) => (ignoresCase ? name.toLowerCase() : name)
  return [...new Map(entries.toReversed().map((each) => [key(each), each])).values()]
}

function readPath(type: string, value: string): PathMatch | { fault: string } {
  if (!value.startsWith('/') && type !== 'RegularExpression') return { fault: `path "${value}" must start with /` }
  switch (type) {
    case 'Exact':
      return { kind: 'exact', value }
    case 'PathPrefix': {
      const bare = withoutTrailingSlashes(value)
      return bare === '' ? { kind: 'prefix', value: '/' } : { kind: 'segment', value: bare }
    }
    case 'RegularExpression': {
      const fault = regexFault(value)
      return fault === undefined ? { kind: 'regex', value } : { fault: `path regex "${value}" is invalid: ${fault}` }
    }
    default:
      return { fault: `path match type ${type} is not supported` }
  }
}

function readFilters(list: readonly Immutable<RouteFilter>[]): Filters | { fault: string } {
  const filters: Filters = { mirrors: [] }
  for (const filter of list) {
    switch (filter.type) {
      case 'RequestHeaderModifier': {
        const mutation = headerFilter(filter.requestHeaderModifier ?? {})
        if (mutation !== undefined && 'fault' in mutation) return mutation
        if (mutation !== undefined) filters.request = mutation
        break
      }
      case 'ResponseHeaderModifier': {
        const mutation = headerFilter(filter.responseHeaderModifier ?? {})
        if (mutation !== undefined && 'fault' in mutation) return mutation
        if (mutation !== undefined) filters.response = mutation
        break
      }
      case 'RequestRedirect':
        filters.redirect = filter.requestRedirect ?? {}
        break
      case 'URLRewrite':
        filters.rewrite = filter.urlRewrite ?? {}
        break
      case 'RequestMirror':
        if (filter.requestMirror !== undefined) filters.mirrors.push(filter.requestMirror)
        break
      case 'CORS': {
        const cors = corsOf(filter.cors ?? {})
        const fault = corsFault(cors)
        if (fault !== undefined) return { fault: `CORS: ${fault}` }
        filters.cors = cors
        break
      }
      default:
        return { fault: `filter ${filter.type} is not supported` }
    }
  }
  if (filters.redirect !== undefined && filters.rewrite !== undefined)
    return { fault: 'RequestRedirect and URLRewrite cannot be combined' }
  const hostname = filters.redirect?.hostname ?? filters.rewrite?.hostname
  const fault = hostname === undefined ? undefined : hostTextFault(hostname)
  return fault === undefined ? filters : { fault: `hostname ${fault}` }
}

function corsOf(cors: Immutable<NonNullable<RouteFilter['cors']>>): Cors {
  const escape = (text: string) => text.replaceAll(/[\\^$.+?()[\]{}|]/g, String.raw`\$&`).replaceAll('*', '[^/]+')
  return {
    allowOrigins: (cors.allowOrigins ?? []).map((value) =>
      value === '*' || !value.includes('*') ? { kind: 'exact', value } : { kind: 'regex', value: escape(value) },
    ),
    allowMethods: [...(cors.allowMethods ?? ['GET', 'HEAD', 'POST'])],
    allowHeaders: [...(cors.allowHeaders ?? [])],
    exposeHeaders: [...(cors.exposeHeaders ?? [])],
    allowCredentials: cors.allowCredentials === true,
    ...(cors.maxAge !== undefined && { maxAgeSeconds: cors.maxAge }),
  }
}

interface Backends {
  readonly backends: readonly Backend[]
  /** Weight of those that cannot be resolved. */
  readonly invalidWeight: number
  readonly unresolved?: RouteFault
}

function readBackends(
  input: RuleInput,
  refs: readonly Immutable<BackendRef>[],
  at: string,
): Backends | { unsupported: RouteFault } {
  const backends: Backend[] = []
  let invalidWeight = 0
  let unresolved: RouteFault | undefined
  for (const ref of refs) {
    const { weight = 1 } = ref
    const filters = readFilters(ref.filters ?? [])
    if (
      'fault' in filters ||
      filters.redirect !== undefined ||
      filters.rewrite !== undefined ||
      filters.cors !== undefined
    ) {
      const what = 'fault' in filters ? filters.fault : 'only header modifiers are supported on backendRefs'
      return { unsupported: { reason: 'UnsupportedValue', message: `${at}: ${what}` } }
    }
    const cluster = readBackend(input, ref)
    if (typeof cluster !== 'string') {
      if ('reason' in cluster) unresolved ??= { reason: cluster.reason, message: `${at}: ${cluster.message}` }
      invalidWeight += weight
      continue
    }
    if (weight === 0) continue
    backends.push({
      cluster,
      weight,
      ...(filters.request !== undefined && { requestHeaders: filters.request }),
      ...(filters.response !== undefined && { responseHeaders: filters.response }),
    })
  }
  return { backends, invalidWeight, ...(unresolved !== undefined && { unresolved }) }
}

/** The name of the cluster; `refused` if the TLS policy of the Service cannot be used. */
function readBackend(
  { draft, objects, settings, policies, services, kind, namespace }: RuleInput,
  ref: Immutable<BackendRef>,
): string | { readonly refused: true } | RouteFault {
  const resolved = resolveBackend(objects, settings, { kind, namespace }, ref)
  if ('reason' in resolved) return resolved
  services.add(resolved.key)
  const policy = policies.find(resolved.key, resolved.port.name ?? '')
  if (policy === 'refused') return { refused: true }
  const asked = protocolOf(resolved)
  const plain = kind === 'GRPCRoute' && asked === 'http1' ? 'h2c' : asked
  const protocol = policy === undefined ? plain : OVER_TLS[plain]
  const tls = policy ?? (protocol === 'tls' || protocol === 'h2' ? {} : undefined)
  return draft.addCluster(
    clusterOf(resolved, settings, { protocol, balancing: 'roundRobin', ...(tls !== undefined && { tls }) }),
  )
}

const OVER_TLS: Readonly<Record<Cluster['protocol'], Cluster['protocol']>> = {
  http1: 'tls',
  tls: 'tls',
  h2c: 'h2',
  h2: 'h2',
}

function readMirrors(
  input: RuleInput,
  { mirrors }: Filters,
  at: string,
): { mirrors: Mirror[]; unresolved?: RouteFault } {
  const result: Mirror[] = []
  let unresolved: RouteFault | undefined
  for (const { backendRef, percent, fraction } of mirrors) {
    const cluster = readBackend(input, backendRef)
    if (typeof cluster !== 'string') {
      if ('reason' in cluster) unresolved ??= { reason: cluster.reason, message: `${at}: ${cluster.message}` }
      continue
    }
    const share = fraction === undefined ? (percent ?? 100) : (100 * fraction.numerator) / (fraction.denominator ?? 100)
    result.push({ cluster, percent: share })
  }
  return { mirrors: result, ...(unresolved !== undefined && { unresolved }) }
}

function actionOf(
  { settings }: RuleInput,
  rule: Immutable<HTTPRouteRule>,
  filters: Filters,
  match: Match,
  { backends, invalidWeight }: Backends,
  mirrors: readonly Mirror[],
): Action | { fault: string } {
  if (filters.redirect !== undefined) {
    const { scheme, hostname, statusCode = 302 } = filters.redirect
    // A redirect to another scheme goes to its well-known port, not to that of the request.
    const port = filters.redirect.port ?? (scheme === undefined ? undefined : WELL_KNOWN_PORTS[scheme])
    const path = pathRewrite(filters.redirect.path, match)
    if (path !== undefined && 'fault' in path) return path
    return {
      kind: 'redirect',
      status: statusCode,
      ...(scheme !== undefined && { scheme }),
      ...(hostname !== undefined && { host: hostname }),
      ...(port !== undefined && { port }),
      ...(path !== undefined && { path }),
    }
  }
  const rewrite = pathRewrite(filters.rewrite?.path, match)
  if (rewrite !== undefined && 'fault' in rewrite) return rewrite
  // No backends, or only such of weight 0 or unresolved ones: the Gateway API asks for 500.
  if (backends.length === 0) return { kind: 'direct', status: 500, body: '' }
  const request = timeoutMs(rule.timeouts?.request)
  const backendRequest = timeoutMs(rule.timeouts?.backendRequest)
  const host = filters.rewrite?.hostname
  const retry = retryOf(rule.retry, backendRequest)
  return {
    kind: 'forward',
    backends,
    ...(invalidWeight > 0 && { invalidWeight }),
    mirrors,
    ...(rewrite !== undefined && { rewrite }),
    ...(host !== undefined && { host }),
    hash: [],
    ...(retry !== undefined && { retry }),
    // With retries the timeout of the backend is one of each attempt.
    timeoutMs: (retry === undefined ? shorter(request, backendRequest) : request) ?? settings.timeoutMs,
    idleTimeoutMs: DEFAULT_IDLE_MS,
    // With the Gateway API every route accepts WebSockets.
    hasWebsocket: true,
  }
}

const WELL_KNOWN_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 }

function retryOf(retry: Immutable<HTTPRouteRule['retry']>, perTryTimeoutMs = 0): Retry | undefined {
  if (retry === undefined || retry.attempts === 0) return undefined
  return {
    count: retry.attempts ?? 1,
    on: ['connect-failure', 'reset', 'retriable-status-codes'],
    statusCodes: [...(retry.codes ?? [])],
    ...(perTryTimeoutMs > 0 && { perTryTimeoutMs }),
  }
}

/** 0 disables a timeout, so it is the longer one. */
function shorter(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return a === 0 ? b : b === 0 ? a : Math.min(a, b)
}

function timeoutMs(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseGoDuration(text)
}

function pathRewrite(
  modifier: Immutable<PathModifier> | undefined,
  { path }: Match,
): PathRewrite | { fault: string } | undefined {
  if (modifier === undefined) return undefined
  if (modifier.type === 'ReplaceFullPath') return rewriteTo('full', modifier.replaceFullPath)
  if (modifier.type !== 'ReplacePrefixMatch') return { fault: `path modifier ${modifier.type} is not supported` }
  if (path.kind !== 'prefix' && path.kind !== 'segment')
    return { fault: 'ReplacePrefixMatch needs a match of type PathPrefix' }
  return rewriteTo('prefix', modifier.replacePrefixMatch)
}

function rewriteTo(kind: PathRewrite['kind'], text = '/'): PathRewrite | { fault: string } {
  const path = readPathText(text)
  return 'fault' in path ? { fault: `path ${path.fault}` } : { kind, value: path.value }
}
