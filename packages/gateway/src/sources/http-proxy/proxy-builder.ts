/**
 * HTTPProxy v1: roots, includes, and the rules about how much an error removes, as in Contour.
 *
 * Guarantees: a broken route removes the routes of its own object only; an include that cannot be followed answers 502 on
 * its conditions; a host whose certificate cannot be used is not served at all, neither over HTTPS nor over HTTP.
 */
import { messageOf } from '@seamark/kube'
import { HTTPProxy, type MatchCondition, type VirtualHost } from '@seamark/kube/contour'
import { keyOf, type Immutable } from '@seamark/kube/object'
import { originOf, describeOrigin, type Draft } from '../../build/draft.ts'
import { compareAge, type BuildSettings, type Objects } from '../../build/input.ts'
import type { StatusIntent } from '../../build/status-intent.ts'
import type { Route } from '../../ir/model.ts'
import { sortHeaderMatches } from '../../ir/route-order.ts'
import { hostPolicy, isSupported } from './host-policy.ts'
import { headerFault, includeKey, includePathFault, mergeConditions, pathFault, queryFault } from './conditions.ts'
import { expandPrefixRewrites } from './prefix-rewrite.ts'
import { buildRoute } from './route.ts'
import { readTcpBackends } from './tcp.ts'
import { readTls } from './tls.ts'
import { ProxyVerdict } from './verdict.ts'
import { isServedClass } from '../ingress-class.ts'
import { hostName, singleLabelMatch } from '../wildcard-host.ts'

type Proxy = Immutable<HTTPProxy>
type Conditions = readonly Immutable<MatchCondition>[]
const NO_CONDITIONS: Conditions = []

/** The depth of includes: deeper trees are refused rather than exhausting the stack. */
const MAX_DEPTH = 64
/** Includes multiply: a tree of forty objects could otherwise be followed for ever. */
const MAX_INCLUDES = 10_000

export class ProxyBuilder {
  readonly #draft: Draft
  readonly #objects: Objects
  readonly #settings: BuildSettings
  readonly #proxies: ReadonlyMap<string, Proxy>
  readonly #verdicts = new Map<string, ProxyVerdict>()
  readonly #included = new Set<string>()

  constructor(draft: Draft, objects: Objects, settings: BuildSettings) {
    this.#draft = draft
    this.#objects = objects
    this.#settings = settings
    const served = objects.list(HTTPProxy).filter((proxy) => isServedClass(proxy, settings))
    this.#proxies = new Map(served.toSorted(compareAge).map((proxy) => [keyOf(proxy), proxy]))
  }

  build(): void {
    const holders = new Map<string, Proxy[]>()
    for (const proxy of this.#proxies.values()) {
      const fqdn = fqdnOf(proxy)
      if (fqdn === '') continue
      const same = holders.get(fqdn)
      if (same === undefined) holders.set(fqdn, [proxy])
      else same.push(proxy)
    }
    for (const [key, proxy] of this.#proxies) {
      const { virtualhost } = proxy.spec ?? {}
      if (virtualhost === undefined || virtualhost === null) continue
      const same = holders.get(fqdnOf(proxy)) ?? []
      if (same.length > 1) {
        const names = same.map(keyOf).toSorted().join(', ')
        const message = `fqdn "${fqdnOf(proxy)}" is used in multiple HTTPProxies: ${names}`
        this.#verdict(key, proxy).error('VirtualHostError', 'DuplicateVhost', message)
      } else {
        try {
          this.#addRoot(key, proxy, virtualhost)
        } catch (error) {
          const message = `the HTTPProxy or one that it includes cannot be read: ${messageOf(error)}`
          this.#verdict(key, proxy).error('SpecError', 'Unreadable', message)
        }
      }
    }
    for (const [key, proxy] of this.#proxies) {
      const hasHost = proxy.spec?.virtualhost !== undefined && proxy.spec.virtualhost !== null
      if (hasHost || this.#included.has(key)) continue
      const message = 'this HTTPProxy is not part of a delegation chain from a root HTTPProxy'
      this.#verdict(key, proxy).error('Orphaned', 'Orphaned', message)
    }
  }

  /** Matches that another kind or object took are warnings: the HTTPProxy itself is valid. */
  reportConflicts(): void {
    for (const { host, winner, loser } of this.#draft.conflicts) {
      if (loser.origin.kind !== 'HTTPProxy') continue
      const verdict = this.#verdicts.get(`${loser.origin.namespace}/${loser.origin.name}`)
      const message = `${loser.origin.at}: ${host}${loser.match.path.value} is served by ${describeOrigin(winner.origin)}, which has the same match`
      verdict?.warn('RouteConflict', 'MatchTaken', message)
    }
  }

  intents(): StatusIntent[] {
    return [...this.#proxies].map(([key, proxy]) => this.#verdict(key, proxy).toIntent())
  }

  #verdict(key: string, proxy: Proxy): ProxyVerdict {
    let verdict = this.#verdicts.get(key)
    if (verdict === undefined) this.#verdicts.set(key, (verdict = new ProxyVerdict(proxy)))
    return verdict
  }

  #include(key: string): { proxy: Proxy; verdict: ProxyVerdict } | undefined {
    const proxy = this.#proxies.get(key)
    if (proxy === undefined) return undefined
    this.#included.add(key)
    return { proxy, verdict: this.#verdict(key, proxy) }
  }

  #addRoot(key: string, proxy: Proxy, virtualhost: Immutable<VirtualHost>): void {
    const verdict = this.#verdict(key, proxy)
    const { fqdn = '' } = virtualhost
    const { namespace = '' } = proxy.metadata
    const { rootNamespaces } = this.#settings
    const { routes = [], includes = [], tcpproxy } = proxy.spec ?? {}
    if (fqdn.trim() === '')
      return verdict.error('VirtualHostError', 'FQDNNotSpecified', 'Spec.VirtualHost.Fqdn must be specified')
    const host = hostName(fqdn)
    if (host === undefined) {
      const message = `Spec.VirtualHost.Fqdn "${fqdn}" is not a DNS name`
      return verdict.error('VirtualHostError', 'FQDNNotValid', message)
    }
    if (rootNamespaces.length > 0 && !rootNamespaces.includes(namespace)) {
      const message = 'root HTTPProxy cannot be defined in this namespace'
      return verdict.error('RootNamespaceError', 'RootProxyNotAllowedInNamespace', message)
    }
    const hasTcp = tcpproxy !== undefined && tcpproxy !== null
    if (routes.length === 0 && includes.length === 0 && !hasTcp) {
      const message = 'HTTPProxy.Spec must have at least one Route, Include, or a TCPProxy'
      return verdict.error('SpecError', 'NothingDefined', message)
    }
    if (!isSupported(virtualhost, verdict)) return
    const tls = readTls(this.#draft, this.#objects, proxy, virtualhost, verdict)
    if (tls === 'invalid') return
    const policy = hostPolicy(virtualhost, verdict)
    if (policy === undefined) return
    if (hasTcp) {
      if (tls === undefined) {
        const message = 'Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set'
        return verdict.error('TCPProxyError', 'TLSMustBeConfigured', message)
      }
      const input = {
        draft: this.#draft,
        objects: this.#objects,
        settings: this.#settings,
        include: (key: string) => this.#include(key),
      }
      const backends = readTcpBackends(input, proxy, verdict, [])
      if (backends === undefined) return
      this.#draft.setTcp(host, { backends })
    }
    const chain = { conditions: [], visited: [], isTlsEnforced: tls !== undefined, budget: { left: MAX_INCLUDES } }
    const built = this.#routesOf(key, proxy, verdict, chain)
    if (chain.budget.left <= 0) {
      const message = `the include tree follows more than ${MAX_INCLUDES} includes; the host is not served`
      return verdict.error('IncludeError', 'TooManyIncludes', message)
    }
    const isTerminated = tls !== undefined && tls !== 'passthrough'
    if (isTerminated) this.#draft.setTls(host, tls)
    const oneLabel = singleLabelMatch(host)
    for (const route of expandPrefixRewrites(built)) {
      const match =
        oneLabel === undefined
          ? route.match
          : { ...route.match, headers: sortHeaderMatches([...route.match.headers, oneLabel]) }
      const complete = { ...route, match, ...(policy.cors !== undefined && { cors: policy.cors }) }
      this.#draft.addRoute('http', host, complete)
      if (isTerminated && !hasTcp) this.#draft.addRoute('https', host, { ...complete, upgradesToHttps: false })
    }
    if (policy.rateLimit !== undefined)
      for (const protocol of ['http', 'https'] as const) this.#draft.setRateLimit(protocol, host, policy.rateLimit)
  }

  #routesOf(
    key: string,
    proxy: Proxy,
    verdict: ProxyVerdict,
    chain: {
      conditions: Conditions
      visited: readonly string[]
      isTlsEnforced: boolean
      budget: { left: number }
    },
  ): Route[] {
    const { conditions, visited, isTlsEnforced, budget } = chain
    if (visited.includes(key) || visited.length >= MAX_DEPTH) {
      const message = visited.includes(key)
        ? `include creates an include cycle: ${[...visited, key].join(' -> ')}`
        : `more than ${MAX_DEPTH} includes follow each other`
      verdict.error('IncludeError', 'IncludeCreatesCycle', message)
      return []
    }
    const { namespace = '' } = proxy.metadata
    const routes: Route[] = []
    const seen = new Set<string>()
    for (const [index, include] of (proxy.spec?.includes ?? []).entries()) {
      const own = include.conditions ?? []
      if (!isIncludeValid(own, verdict, seen)) continue
      const childKey = `${include.namespace === undefined || include.namespace === '' ? namespace : include.namespace}/${include.name}`
      const child = this.#proxies.get(childKey)
      const isRoot = child?.spec?.virtualhost !== undefined && child.spec.virtualhost !== null
      if (child === undefined || isRoot) {
        if (child === undefined) verdict.error('IncludeError', 'IncludeNotFound', `include ${childKey} not found`)
        else {
          const message = `root httpproxy cannot include another root httpproxy (${childKey})`
          verdict.error('IncludeError', 'RootIncludesRoot', message)
        }
        if (own.length > 0) routes.push(badGateway(proxy, [...conditions, ...own], isTlsEnforced, index))
        continue
      }
      this.#included.add(childKey)
      if (budget.left-- <= 0) break
      const next = { conditions: [...conditions, ...own], visited: [...visited, key], isTlsEnforced, budget }
      routes.push(...this.#routesOf(childKey, child, this.#verdict(childKey, child), next))
    }
    const own: Route[] = []
    const input = { draft: this.#draft, objects: this.#objects, settings: this.#settings, proxy, verdict }
    for (const [index, route] of (proxy.spec?.routes ?? []).entries()) {
      const at = `spec.routes[${index}]`
      const given = route.conditions ?? NO_CONDITIONS
      const all = conditions.length === 0 ? given : [...conditions, ...given]
      const path = pathFault(given)
      const header = headerFault(all)
      const query = queryFault(all)
      if (path !== undefined) verdict.error('RouteError', 'PathMatchConditionsNotValid', `route: ${path}`)
      else if (header !== undefined) verdict.error('RouteError', 'HeaderMatchConditionsNotValid', header)
      else if (query !== undefined) verdict.error('RouteError', 'QueryParameterMatchConditionsNotValid', query)
      if (path !== undefined || header !== undefined || query !== undefined) return routes
      const built = buildRoute(input, route, mergeConditions(all), isTlsEnforced, at)
      if (built === undefined) return routes
      own.push(built)
    }
    return routes.length === 0 ? own : [...routes, ...own]
  }
}

function fqdnOf({ spec }: Proxy): string {
  const fqdn: unknown = spec?.virtualhost?.fqdn
  return typeof fqdn === 'string' ? fqdn.toLowerCase() : ''
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
