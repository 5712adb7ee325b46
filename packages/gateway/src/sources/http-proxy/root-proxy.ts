/**
 * One root HTTPProxy with its include tree. Everything that it reads comes from `objects`, and everything that it decides goes
 * to `draft` and the verdicts: it is a step of a build (draft/step.ts).
 */
import { HTTPProxy, type MatchCondition, type VirtualHost } from '@seamark/kube/contour'
import type { Immutable } from '@seamark/kube/object'
import { originOf } from '../../draft/origin.ts'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import type { DraftSink } from '../../draft/step.ts'
import type { Parts } from '../../draft/turns.ts'
import type { Cors, HeaderMatch, Match, Route } from '../../ir/model.ts'
import { sortHeaderMatches } from '../../ir/route-order.ts'
import { isServedClass } from '../ingress-class.ts'
import { hostName, singleLabelMatch } from '../wildcard-host.ts'
import { headerFault, includeKey, includePathFault, mergeConditions, pathFault, queryFault } from './conditions.ts'
import { hostPolicy, isSupported } from './host-policy.ts'
import { hasHost, includedKey, MAX_DEPTH } from './include-tree.ts'
import { expandPrefixRewrites } from './prefix-rewrite.ts'
import { buildRoute } from './route.ts'
import { readTcpBackends } from './tcp.ts'
import { readTls } from './tls.ts'
import type { ProxyVerdict } from './verdict.ts'

export type Proxy = Immutable<HTTPProxy>
type Conditions = readonly Immutable<MatchCondition>[]
const NO_CONDITIONS: Conditions = []

export interface RootInput {
  readonly draft: DraftSink
  readonly objects: Objects
  readonly settings: BuildSettings
  verdictOf(key: string, proxy: Proxy): ProxyVerdict
  /** An HTTPProxy that a root includes is no orphan. */
  markIncluded(key: string): void
}

/** Adds the host of a root with the routes of its whole include tree. */
export function* addRoot(
  input: RootInput,
  key: string,
  proxy: Proxy,
  virtualhost: Immutable<VirtualHost>,
): Parts<void> {
  const { draft, objects, settings } = input
  const verdict = input.verdictOf(key, proxy)
  const { fqdn = '' } = virtualhost
  const { routes = [], includes = [], tcpproxy } = proxy.spec ?? {}
  if (fqdn.trim() === '')
    return verdict.error('VirtualHostError', 'FQDNNotSpecified', 'Spec.VirtualHost.Fqdn must be specified')
  const host = hostName(fqdn)
  if (host === undefined) {
    const message = `Spec.VirtualHost.Fqdn "${fqdn}" is not a DNS name`
    return verdict.error('VirtualHostError', 'FQDNNotValid', message)
  }
  const hasTcp = tcpproxy !== undefined && tcpproxy !== null
  if (routes.length === 0 && includes.length === 0 && !hasTcp) {
    const message = 'HTTPProxy.Spec must have at least one Route, Include, or a TCPProxy'
    return verdict.error('SpecError', 'NothingDefined', message)
  }
  if (!isSupported(virtualhost, verdict)) return
  const tls = readTls(draft, objects, proxy, virtualhost, verdict)
  if (tls === 'invalid') return
  const policy = hostPolicy(virtualhost, verdict)
  if (policy === undefined) return
  if (hasTcp) {
    if (tls === undefined) {
      const message = 'Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set'
      return verdict.error('TCPProxyError', 'TLSMustBeConfigured', message)
    }
    const backends = readTcpBackends(
      { draft, objects, settings, include: (child) => include(input, child) },
      proxy,
      verdict,
      [],
    )
    if (backends === undefined) return
    draft.setTcp(host, { backends }, originOf('HTTPProxy', proxy, 'spec.tcpproxy'))
  }
  const chain = { conditions: [], visited: [], isTlsEnforced: tls !== undefined }
  const built = yield* routesOf(input, key, proxy, verdict, chain)
  const isTerminated = tls !== undefined && tls !== 'passthrough'
  if (isTerminated) draft.claimTls(host, tls, originOf('HTTPProxy', proxy, 'spec.virtualhost.tls'))
  const oneLabel = singleLabelMatch(host)
  let work = 0
  for (const route of expandPrefixRewrites(built)) {
    work += 1 + route.match.headers.length + route.match.query.length
    if (work >= PART) {
      work = 0
      yield
    }
    const complete = completeRoute(route, oneLabel, policy.cors)
    draft.addRoute('http', host, complete)
    if (isTerminated && !hasTcp) draft.addRoute('https', host, { ...complete, upgradesToHttps: false })
  }
  if (policy.rateLimit !== undefined)
    for (const protocol of ['http', 'https'] as const) draft.setRateLimit(protocol, host, policy.rateLimit)
}

/** With what applies to all routes of the host. */
function completeRoute(route: Route, oneLabel: HeaderMatch | undefined, cors: Cors | undefined): Route {
  if (oneLabel === undefined && cors === undefined) return route
  const { match } = route
  return {
    ...route,
    ...(oneLabel !== undefined && { match: { ...match, headers: sortHeaderMatches([...match.headers, oneLabel]) } }),
    ...(cors !== undefined && { cors }),
  }
}

/** An HTTPProxy that is served. */
function find({ objects, settings }: RootInput, key: string): Proxy | undefined {
  const proxy = objects.get(HTTPProxy, key)
  return proxy !== undefined && isServedClass(proxy, settings) ? proxy : undefined
}

function include(input: RootInput, key: string): { proxy: Proxy; verdict: ProxyVerdict } | undefined {
  const proxy = find(input, key)
  if (proxy === undefined) return undefined
  input.markIncluded(key)
  return { proxy, verdict: input.verdictOf(key, proxy) }
}

/** Routes and their conditions in one part of the work. */
const PART = 50

const routeFields: string[] = []

/** One text for the routes of all objects that have the same position. */
function fieldOfRoute(index: number): string {
  return (routeFields[index] ??= `spec.routes[${index}]`)
}

/** The includes that lead to an HTTPProxy. */
interface Chain {
  readonly conditions: Conditions
  readonly visited: readonly string[]
  readonly isTlsEnforced: boolean
}

function* routesOf(input: RootInput, key: string, proxy: Proxy, verdict: ProxyVerdict, chain: Chain): Parts<Route[]> {
  const { conditions, visited, isTlsEnforced } = chain
  if (visited.includes(key) || visited.length >= MAX_DEPTH) {
    const message = visited.includes(key)
      ? `include creates an include cycle: ${[...visited, key].join(' -> ')}`
      : `more than ${MAX_DEPTH} includes follow each other`
    verdict.error('IncludeError', 'IncludeCreatesCycle', message)
    return []
  }
  const { includes = [], routes: list = [] } = proxy.spec ?? {}
  const routes = includes.length === 0 ? [] : yield* includedRoutes(input, key, proxy, verdict, chain)
  const own: Route[] = []
  const { draft, objects, settings } = input
  const context = { draft, objects, settings, proxy, verdict }
  let work = 0
  for (const route of list) {
    const given = route.conditions ?? NO_CONDITIONS
    const all = conditions.length === 0 ? given : [...conditions, ...given]
    work += 1 + all.length
    if (work >= PART) {
      work = 0
      yield
    }
    const match = matchOf(given, all, verdict)
    const built =
      match === undefined ? undefined : buildRoute(context, route, match, isTlsEnforced, fieldOfRoute(own.length))
    if (built === undefined) return routes
    own.push(built)
  }
  return routes.length === 0 ? own : [...routes, ...own]
}

function* includedRoutes(
  input: RootInput,
  key: string,
  proxy: Proxy,
  verdict: ProxyVerdict,
  { conditions, visited, isTlsEnforced }: Chain,
): Parts<Route[]> {
  const { namespace = '' } = proxy.metadata
  const routes: Route[] = []
  const seen = new Set<string>()
  for (const [index, include] of (proxy.spec?.includes ?? []).entries()) {
    const own = include.conditions ?? []
    if (!isIncludeValid(own, verdict, seen)) continue
    const childKey = includedKey(include, namespace)
    const child = find(input, childKey)
    const isRoot = child !== undefined && hasHost(child)
    if (child === undefined || isRoot) {
      if (child === undefined) verdict.error('IncludeError', 'IncludeNotFound', `include ${childKey} not found`)
      else {
        const message = `root httpproxy cannot include another root httpproxy (${childKey})`
        verdict.error('IncludeError', 'RootIncludesRoot', message)
      }
      if (own.length > 0) routes.push(badGateway(proxy, [...conditions, ...own], isTlsEnforced, index))
      continue
    }
    input.markIncluded(childKey)
    const next = { conditions: [...conditions, ...own], visited: [...visited, key], isTlsEnforced }
    // Not spread into a call: the number of its arguments is limited.
    for (const route of yield* routesOf(input, childKey, child, input.verdictOf(childKey, child), next))
      routes.push(route)
    yield
  }
  return routes
}

/** @param all `given` by the route, and by the includes that lead to it */
function matchOf(given: Conditions, all: Conditions, verdict: ProxyVerdict): Match | undefined {
  const path = pathFault(given)
  const header = headerFault(all)
  const query = queryFault(all)
  if (path !== undefined) verdict.error('RouteError', 'PathMatchConditionsNotValid', `route: ${path}`)
  else if (header !== undefined) verdict.error('RouteError', 'HeaderMatchConditionsNotValid', header)
  else if (query !== undefined) verdict.error('RouteError', 'QueryParameterMatchConditionsNotValid', query)
  else return mergeConditions(all)
  return undefined
}

function isIncludeValid(conditions: Conditions, verdict: ProxyVerdict, seen: Set<string>): boolean {
  const path = includePathFault(conditions) ?? pathFault(conditions)
  if (path !== undefined) {
    verdict.error('IncludeError', 'PathMatchConditionsNotValid', `include: ${path}`)
    return false
  }
  const header = headerFault(conditions)
  if (header !== undefined) {
    verdict.error('RouteError', 'HeaderMatchConditionsNotValid', header)
    return false
  }
  const query = queryFault(conditions)
  if (query !== undefined) {
    verdict.error('RouteError', 'QueryParameterMatchConditionsNotValid', query)
    return false
  }
  const key = includeKey(conditions)
  if (key === undefined) return true
  if (seen.has(key)) {
    verdict.error('IncludeError', 'DuplicateMatchConditions', 'duplicate conditions defined on an include')
    return false
  }
  seen.add(key)
  return true
}

function badGateway(proxy: Proxy, conditions: Conditions, isTlsEnforced: boolean, index: number): Route {
  return {
    match: mergeConditions(conditions),
    action: { kind: 'direct', status: 502, body: '' },
    upgradesToHttps: isTlsEnforced,
    origin: originOf('HTTPProxy', proxy, `spec.includes[${index}]`),
    order: '',
  }
}
