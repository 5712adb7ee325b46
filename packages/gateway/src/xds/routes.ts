/**
 * Routes of the IR as route configurations of Envoy: one for all hosts over HTTP, one for each host over HTTPS. The latter
 * answers 421 for every other host, because a connection is for the host of its server name.
 */
import type { Action, Backend, Listener, PathMatch, PathRewrite, Route, VirtualHost } from '../ir/model.ts'
import { EDGE_SPELLINGS } from '../ir/field-names.ts'
import { withoutTrailingSlashes } from '../ir/path-text.ts'
import type { Memo } from './memo.ts'
import { durationOf, encode, Enums, type Any, type Message } from './protobuf.ts'
import { joinedResource, MESSAGE_OF, type Resource } from './resource.ts'
import {
  CORS_FILTER,
  corsPolicy,
  escapeRegex,
  hashPolicy,
  headerFields,
  matchOf,
  RATE_LIMIT_FILTER,
  rateLimitPolicy,
  retryPolicy,
  withShare,
} from './route-policies.ts'

type EnvoyRoute = Message<'envoy.config.route.v3.Route'>
type EnvoyHost = Message<'envoy.config.route.v3.VirtualHost'>
type RouteAction = Message<'envoy.config.route.v3.RouteAction'>
type Protocol = Listener['protocol']
type Forward = Extract<Action, { kind: 'forward' }>
type Redirect = Extract<Action, { kind: 'redirect' }>

/** What Envoy does by itself is left out: most routes are like this, and it parses all of them when one changes. */
const ENVOY_TIMEOUT_MS = 15_000
/** `stream_idle_timeout` of the connection manager. */
const ENVOY_IDLE_MS = 300_000
/** Envoy's own limit, which a longer direct response of a route raises. */
const DEFAULT_BODY_BYTES = 4_096

export function routeConfigurationName(
  { protocol, port }: Pick<Listener, 'protocol' | 'port'>,
  host: string | undefined,
): string {
  const suffix = port === undefined ? '' : `_${port}`
  return protocol === 'http' ? `ingress_http${suffix}` : `https${suffix}/${host ?? ''}`
}

/** A route configuration with the hosts whose routes it contains. */
export interface RouteConfiguration {
  readonly resource: Resource
  readonly hosts: readonly VirtualHost[]
}

/** @param memo of earlier calls */
export function routeConfigurations(listener: Listener, memo: RouteMemo): RouteConfiguration[] {
  const { protocol, hosts } = listener
  if (protocol === 'http') {
    const name = routeConfigurationName(listener, undefined)
    const parts = hosts.map((host) => memo.parts.get(textOf(host), () => partOf([hostOf(protocol, host)])))
    return [{ resource: joinedResource('route', name, [settingsOf(name, hosts), ...parts]), hosts }]
  }
  return hosts
    .filter(({ tls, tcp }) => tls !== undefined && tcp === undefined)
    .map((host) => {
      const others = misdirected(host, hosts)
      const name = routeConfigurationName(listener, host.host)
      const resource = memo.resources.get(`${name} ${textOf(host)} ${JSON.stringify(others)}`, () =>
        joinedResource('route', name, [settingsOf(name, [host]), partOf([hostOf(protocol, host), ...others])]),
      )
      return { resource, hosts: [host] }
    })
}

export interface RouteMemo {
  readonly parts: Memo<Uint8Array>
  readonly resources: Memo<Resource>
}

const texts = new WeakMap<VirtualHost, string>()

/** Everything that a host contains. A host that did not change is the same object in every build. */
function textOf(host: VirtualHost): string {
  let text = texts.get(host)
  if (text === undefined) texts.set(host, (text = JSON.stringify(host)))
  return text
}

function partOf(list: readonly EnvoyHost[]): Uint8Array {
  return encode(MESSAGE_OF.route, { virtual_hosts: list })
}

/** Everything but the hosts. */
function settingsOf(name: string, hosts: readonly VirtualHost[]): Uint8Array {
  let longest = 0
  for (const { routes } of hosts)
    for (const { action } of routes)
      if (action.kind === 'direct') longest = Math.max(longest, Buffer.byteLength(action.body))
  return encode(MESSAGE_OF.route, {
    name,
    // Clusters come first on the same stream; a missing one must not reject the routes of everybody.
    validate_clusters: { value: false },
    ignore_port_in_host_matching: true,
    request_headers_to_remove: EDGE_SPELLINGS,
    ...(longest > DEFAULT_BODY_BYTES && { max_direct_response_body_size_bytes: { value: longest } }),
  })
}

/** Hosts that the connection is not for, although the domain of its host may cover them. */
function misdirected({ host }: VirtualHost, all: readonly VirtualHost[]): EnvoyHost[] {
  const suffix = host.startsWith('*') ? host.slice(1) : undefined
  const covered =
    suffix === undefined
      ? []
      : all.flatMap((each) => (each.host !== host && each.host.endsWith(suffix) ? [each.host] : []))
  const domains = host === '*' ? covered : [...covered, '*']
  if (domains.length === 0) return []
  return [{ name: 'misdirected', domains, routes: [{ match: { prefix: '/' }, direct_response: { status: 421 } }] }]
}

function hostOf(protocol: Protocol, { host, routes, rateLimit }: VirtualHost): EnvoyHost {
  return {
    name: host,
    domains: [host],
    routes: routes.flatMap((route) => routesOf(protocol, host, route)),
    ...(rateLimit !== undefined && { typed_per_filter_config: { [RATE_LIMIT_FILTER]: rateLimitPolicy(rateLimit) } }),
  }
}

function routesOf(protocol: Protocol, host: string, route: Route): EnvoyRoute[] {
  const { action, rateLimit, cors } = route
  const match = matchOf(route.match)
  if (route.upgradesToHttps && protocol === 'http')
    return [{ match, redirect: { https_redirect: true, response_code: REDIRECT_CODES.MOVED_PERMANENTLY } }]
  const filters: Record<string, Any> = {
    ...(cors !== undefined && { [CORS_FILTER]: corsPolicy(cors) }),
    ...(rateLimit !== undefined && { [RATE_LIMIT_FILTER]: rateLimitPolicy(rateLimit) }),
  }
  const common: EnvoyRoute = { match, ...(Object.keys(filters).length > 0 && { typed_per_filter_config: filters }) }
  switch (action.kind) {
    case 'direct':
      // Header policies do not apply to direct responses.
      return [{ ...common, direct_response: directResponse(action.status, action.body) }]
    case 'redirect':
      return [
        {
          ...common,
          ...headerFields(undefined, route.responseHeaders),
          redirect: redirectOf(protocol, host, route.match.path, action),
        },
      ]
    case 'forward': {
      const forward: EnvoyRoute = {
        ...common,
        ...headerFields(route.requestHeaders, route.responseHeaders),
        route: forwardOf(route.match.path, action),
      }
      const { invalidWeight = 0 } = action
      if (invalidWeight === 0) return [forward]
      const total = action.backends.reduce((sum, { weight }) => sum + weight, invalidWeight)
      const failing = {
        ...common,
        match: withShare(match, invalidWeight / total),
        direct_response: directResponse(500, ''),
      }
      return [failing, forward]
    }
  }
}

function directResponse(status: number, body: string): Message<'envoy.config.route.v3.DirectResponseAction'> {
  return { status, ...(body !== '' && { body: { inline_string: body } }) }
}

function forwardOf(path: PathMatch, action: Forward): RouteAction {
  const { mirrors, hash, retry, timeoutMs, idleTimeoutMs } = action
  return {
    ...targetOf(action),
    ...rewriteOf(path, action.rewrite),
    ...(timeoutMs !== ENVOY_TIMEOUT_MS && { timeout: durationOf(timeoutMs) }),
    ...(idleTimeoutMs !== ENVOY_IDLE_MS && { idle_timeout: durationOf(idleTimeoutMs) }),
    ...(mirrors.length > 0 && {
      request_mirror_policies: mirrors.map(({ cluster, percent }) => ({
        cluster,
        runtime_fraction: {
          default_value: {
            numerator: Math.round(percent * 10_000),
            denominator: Enums.FractionalPercentDenominatorType.MILLION,
          },
        },
      })),
    }),
    ...(hash.length > 0 && { hash_policy: hash.map(hashPolicy) }),
    ...(retry !== undefined && retry.count > 0 && { retry_policy: retryPolicy(retry) }),
    ...(action.hasWebsocket && { upgrade_configs: [{ upgrade_type: 'websocket', enabled: { value: true } }] }),
  }
}

function targetOf({ backends, host }: Forward): RouteAction {
  const usable = backends.filter(({ weight }) => weight > 0)
  const chosen = usable.length > 0 ? usable : backends.slice(-1)
  const [only] = chosen
  const isPlain = (each: Backend) => each.requestHeaders === undefined && each.responseHeaders === undefined
  if (only !== undefined && chosen.length === 1 && isPlain(only))
    return { cluster: only.cluster, ...hostRewrite(only.host ?? host) }
  // The rewrite of the route would replace the one of the backend: each backend has its own.
  const areOwn = chosen.some((each) => each.host !== undefined)
  return {
    weighted_clusters: {
      clusters: chosen.map((backend) => {
        const literal = areOwn ? literalHost(backend.host ?? host) : undefined
        return {
          name: backend.cluster,
          weight: { value: Math.max(backend.weight, 1) },
          ...headerFields(backend.requestHeaders, backend.responseHeaders),
          ...(literal !== undefined && { host_rewrite_literal: literal }),
        }
      }),
    },
    ...(!areOwn && hostRewrite(host)),
  }
}

/** `%REQ(name)%` as a whole is the value of a header; everything else is text, with `%%` for a percent sign. */
function hostRewrite(host: string | undefined): RouteAction {
  if (host === undefined) return {}
  const header = /^%REQ\(([\w-]+)\)%$/.exec(host)?.[1]
  return header === undefined ? { host_rewrite_literal: literalHost(host) ?? '' } : { host_rewrite_header: header }
}

function literalHost(host: string | undefined): string | undefined {
  return host?.replaceAll('%%', '%')
}

type Rewrite = Pick<RouteAction, 'prefix_rewrite' | 'regex_rewrite'>

function rewriteOf(match: PathMatch, rewrite: PathRewrite | undefined): Rewrite {
  if (rewrite === undefined) return {}
  switch (rewrite.kind) {
    case 'full':
      return replacing('^/.*$', rewrite.value)
    case 'prefix': {
      const { value } = rewrite
      if (match.kind === 'segment') {
        const bare = withoutTrailingSlashes(value)
        // Between the replacement and the rest stays one slash; an empty replacement would mean none to Envoy.
        return bare === '' ? replacing(`^${escapeRegex(match.value)}/*`, '/') : { prefix_rewrite: bare }
      }
      return value === '' ? replacing(`^${escapeRegex(match.value)}`, '') : { prefix_rewrite: value }
    }
  }
}

function replacing(regex: string, text: string): Rewrite {
  return { regex_rewrite: { pattern: { regex }, substitution: text.replaceAll('\\', String.raw`\\`) } }
}

const REDIRECT_CODES = Enums.RedirectActionRedirectResponseCode
const CODE_OF_STATUS: Readonly<Record<number, (typeof REDIRECT_CODES)[keyof typeof REDIRECT_CODES]>> = {
  301: REDIRECT_CODES.MOVED_PERMANENTLY,
  302: REDIRECT_CODES.FOUND,
  303: REDIRECT_CODES.SEE_OTHER,
  307: REDIRECT_CODES.TEMPORARY_REDIRECT,
  308: REDIRECT_CODES.PERMANENT_REDIRECT,
}
const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 }

function redirectOf(
  protocol: Protocol,
  vhost: string,
  match: PathMatch,
  { status, scheme, host, port, path }: Redirect,
): Message<'envoy.config.route.v3.RedirectAction'> {
  const isDefaultPort = port !== undefined && port === DEFAULT_PORTS[scheme ?? protocol]
  // The default port is left out of a location; Envoy keeps the port of the request unless the host is set.
  const target = host ?? (isDefaultPort && !vhost.startsWith('*') ? vhost : undefined)
  return {
    response_code: CODE_OF_STATUS[status] ?? REDIRECT_CODES.FOUND,
    ...(scheme !== undefined && { scheme_redirect: scheme }),
    ...(target !== undefined && { host_redirect: target }),
    ...(port !== undefined && !(isDefaultPort && target !== undefined) && { port_redirect: port }),
    ...(path?.kind === 'full' && { path_redirect: path.value }),
    ...(path?.kind === 'prefix' && rewriteOf(match, path)),
  }
}
