/** What happens to a request: lookup of host and route, then the action of the route. */
import type { Duplex } from 'node:stream'
import { matchKey } from '../ir/route-order.ts'
import { isReservedField } from '../ir/field-names.ts'
import type { Listener, RateLimit, Route } from '../ir/model.ts'
import { StepsExceeded } from '../ir/regex.ts'
import { isSameTermination } from '../ir/tls.ts'
import {
  answer,
  guarded,
  readExchange,
  serverNameOf,
  type Exchange,
  type ProxyRequest,
  type ProxyResponse,
} from './request/exchange.ts'
import { chooseBackend, forward, upstreamHeaders, type ForwardDeps } from './upstream/forward.ts'
import { expandVariables, mutateHeaders, octetsOf, type HeaderMap } from './request/header-variables.ts'
import { applyCors, type RateLimits } from './request/local-policy.ts'
import { headerBytesOf, type RequestBudget } from './request/request-budget.ts'
import { locationOf, rewritePath } from './request/rewrite.ts'
import type { HostTable, ListenerTable } from './request/route-table.ts'
import { refuse } from './request/refusal.ts'
import { guardedTunnel, tunnelUpgrade } from './upstream/tunnel.ts'

export interface HandlerDeps extends ForwardDeps {
  /** Of the listener that took the connection. */
  readonly table: () => ListenerTable
  readonly rateLimits: RateLimits
  readonly budget: RequestBudget
  /** The conditions of a host took more steps than a request has; the request is answered with 500. */
  readonly onRegexExceeded?: (route: Route) => void
}

export function handleRequest(
  deps: HandlerDeps,
  protocol: Listener['protocol'],
  request: ProxyRequest,
  response: ProxyResponse,
): void {
  guarded(response, () => {
    const bytes = headerBytesOf(request)
    const release = deps.budget.take(request.socket.remoteAddress ?? '', bytes)
    if (release === undefined) return answer(response, 503, OVERLOADED, { connection: 'close' })
    response.once('close', release)
    serve(deps, protocol, request, response, bytes)
  })()
}

const OVERLOADED = 'too many requests in flight'

function serve(
  deps: HandlerDeps,
  protocol: Listener['protocol'],
  request: ProxyRequest,
  response: ProxyResponse,
  headerBytes: number,
): void {
  const exchange = readExchange(request, response, protocol === 'https', headerBytes)
  if (typeof exchange === 'number') return answer(response, exchange, '', { connection: 'close' })
  const found = findRoute(deps, protocol, exchange)
  if (typeof found === 'number') return answer(response, found)
  const { host, route } = found
  const { facts } = exchange
  if (route.upgradesToHttps && protocol === 'http') {
    const location = locationOf({ scheme: 'https' }, route.match.path, facts, false)
    return answer(response, 301, '', { location })
  }
  const limited = findExceeded(deps, host, route)
  if (limited !== undefined) return answer(response, limited.status, 'local_rate_limited', limitHeaders(limited))
  let cors: ReturnType<typeof applyCors> | undefined
  try {
    cors = route.cors === undefined ? undefined : applyCors(route.cors, facts)
  } catch (error) {
    if (!(error instanceof StepsExceeded)) throw error
    deps.onRegexExceeded?.(route)
    return answer(response, 500)
  }
  if (cors?.isPreflight === true) return answer(response, 200, '', cors.headers)
  const { action } = route
  switch (action.kind) {
    case 'direct':
      return answer(response, action.status, action.body, cors?.headers ?? {})
    case 'redirect': {
      const headers: HeaderMap = { location: locationOf(action, route.match.path, facts, protocol === 'https') }
      mutateHeaders(headers, route.responseHeaders, (value) => expandVariables(value, exchange.variables))
      return answer(response, action.status, '', headers)
    }
    case 'forward':
      return forward(deps, exchange, route, action, cors?.headers ?? {})
  }
}

/** An HTTP/1.1 upgrade to WebSocket. Another protocol, such as HTTP/2 (h2c), would pass requests that no route has seen. */
export function handleUpgrade(
  deps: HandlerDeps,
  protocol: Listener['protocol'],
  request: ProxyRequest,
  socket: Duplex,
  head: Buffer,
): void {
  socket.on('error', () => socket.destroy())
  const bytes = headerBytesOf(request)
  const release = deps.budget.take(request.socket.remoteAddress ?? '', bytes)
  if (release === undefined) return refuse(socket, 503)
  socket.once('close', release)
  guardedTunnel(socket, () => upgrade(deps, protocol, request, socket, head, bytes))()
}

function upgrade(
  deps: HandlerDeps,
  protocol: Listener['protocol'],
  request: ProxyRequest,
  socket: Duplex,
  head: Buffer,
  headerBytes: number,
): void {
  const exchange = readExchange(request, undefined as never, protocol === 'https', headerBytes)
  if (typeof exchange === 'number') return refuse(socket, exchange)
  // Its end would have to be found before the other protocol begins.
  if (exchange.framing.kind !== 'none') return refuse(socket, 400)
  const found = findRoute(deps, protocol, exchange)
  if (typeof found === 'number') return refuse(socket, found)
  const { route, host } = found
  const { action } = route
  const limited = findExceeded(deps, host, route)
  if (limited !== undefined) return refuse(socket, limited.status)
  if (action.kind !== 'forward' || !action.hasWebsocket || (route.upgradesToHttps && protocol === 'http'))
    return refuse(socket, 403)
  const backend = chooseBackend(action, deps.random())
  if (backend === undefined) return refuse(socket, 500)
  const headers = upstreamHeaders(exchange, route, action, backend)
  headers['connection'] = 'Upgrade'
  headers['upgrade'] = 'websocket'
  const { facts } = exchange
  const path = `${rewritePath(action.rewrite, route.match.path, facts.path)}${facts.search}`
  const { clusters, lookup } = deps
  const target = { clusters, lookup, cluster: backend.cluster, method: facts.method, path, headers, headerBytes }
  tunnelUpgrade(target, socket, head)
}

function findRoute(
  { table, onRegexExceeded }: HandlerDeps,
  protocol: Listener['protocol'],
  { request, facts }: Exchange,
): { host: HostTable; route: Route } | number {
  const listener = table()
  const host = listener.find(facts.host)
  if (protocol === 'https') {
    // A connection is for one host: another one may have other TLS settings (RFC 9110 §7.4).
    const serverName = serverNameOf(request)
    const connected = serverName === undefined ? undefined : listener.find(serverName)
    const isOther = connected === undefined || (connected !== host && !sharesConnections(connected, host))
    if (isOther || facts.authority.split(':', 1)[0]?.endsWith('.') === true) return 421
  }
  const route = host?.find(facts)
  if (host === undefined || route === undefined) return 404
  if (!('kind' in route)) return { host, route }
  onRegexExceeded?.(route.route)
  return 500
}

function sharesConnections(a: HostTable, b: HostTable | undefined): boolean {
  const isOneGroup = a.host.group !== undefined && a.host.group === b?.host.group
  return isOneGroup && isSameTermination(a.host.tls, b.host.tls)
}

function findExceeded({ rateLimits }: HandlerDeps, { host }: HostTable, route: Route) {
  if (host.rateLimit !== undefined && !rateLimits.take(host.host, host.rateLimit)) return host.rateLimit
  if (route.rateLimit !== undefined && !rateLimits.take(`${host.host} ${matchKey(route.match)}`, route.rateLimit))
    return route.rateLimit
  return undefined
}

function limitHeaders({ headers }: RateLimit): HeaderMap {
  const sent = headers.filter(({ name }) => !isReservedField(name))
  return Object.fromEntries(sent.map(({ name, value }) => [name, octetsOf(value)]))
}
