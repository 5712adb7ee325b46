/**
 * Which route of the configuration takes a request, and why the others do not. Pure: reads a build and asks the same route
 * table as the built-in proxy, so that it cannot differ from what is served.
 */
import { type EndpointSlice, Ingress } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { GRPCRoute, HTTPRoute } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable, type Obj } from '@seamark/kube/object'
import type { Build } from '../build/build.ts'
import { describeOrigin } from '../draft/origin.ts'
import type { Objects } from '../draft/input.ts'
import { endpointsOf, serviceOf } from '../controller/endpoints.ts'
import type { Action, Ir, Origin, Route } from '../ir/model.ts'
import { hostOf, normalizePath, type RequestFacts } from '../proxy/request/request-facts.ts'
import { MAX_STEPS, Steps } from '../ir/regex.ts'
import { createRouteTable, findMismatch } from '../proxy/request/route-table.ts'

export interface RequestQuestion {
  readonly protocol: 'http' | 'https'
  /** Host, with a port if the client sends one. */
  readonly authority: string
  /** Port that the client connects to, if the URL has one: that of a Gateway may have routes of its own. */
  readonly port?: number
  /** Path and query. */
  readonly target: string
  readonly method: string
  /** Names in any case. */
  readonly headers: Readonly<Record<string, string>>
}

interface TracedRoute {
  /** `HTTPProxy shop/web spec.routes[1]` */
  readonly origin: string
  /** `prefix /api, header x-a exact "1"` */
  readonly match: string
}

export interface RequestTrace {
  /** `none`: no route takes the request. */
  readonly outcome: 'forward' | 'redirect' | 'direct' | 'passthrough' | 'none'
  /** What happens to the request, in one sentence. */
  readonly text: string
  /** No route takes it, or no backend of the route that does has a ready endpoint. */
  readonly isServed: boolean
  /** The virtual host that was chosen. */
  readonly host?: string
  readonly taken?: TracedRoute
  /** Routes before it, with the first condition that does not hold. */
  readonly passed: readonly (TracedRoute & { readonly because: string })[]
  /** Routes after it that match too. */
  readonly shadowed: readonly TracedRoute[]
  /** What is wrong with objects that name this host. */
  readonly problems: readonly string[]
}

/** @param slices of all Services, to say which backends have no endpoint; undefined: they are not known */
export function traceRequest(
  { ir, statuses, findings }: Build,
  objects: Objects,
  question: RequestQuestion,
  slices?: readonly Immutable<EndpointSlice>[],
): RequestTrace {
  const { protocol, authority, target, method } = question
  const headers = new Map(Object.entries(question.headers).map(([name, value]) => [name.toLowerCase(), value]))
  const normalized = normalizePath(target)
  const lower = authority.toLowerCase()
  const name = hostOf(lower)
  const none = (text: string, host?: string): RequestTrace => ({
    outcome: 'none',
    text,
    isServed: false,
    ...(host !== undefined && { host }),
    passed: [],
    shadowed: [],
    problems: problemsOf(name ?? '', objects, statuses, findings),
  })
  if (normalized === undefined || name === undefined) return none(`400: ${authority}${target} cannot be served`)
  const table = createRouteTable(ir)
  const { port } = question
  const listener = (port === undefined ? undefined : table.find(`${protocol}:${port}`)) ?? table[protocol]
  const found = listener.find(name)
  if (found === undefined) {
    const isElsewhere = protocol === 'https' && table.http.find(name) !== undefined
    const why = isElsewhere ? 'it has no usable certificate' : 'no object declares it'
    return none(
      protocol === 'https'
        ? `the connection is closed: host ${name} is not served over HTTPS, ${why}`
        : `404: host ${name} is not served, ${why}`,
    )
  }
  const { host, routes } = found
  if (host.tcp !== undefined) {
    const clusters = host.tcp.backends.map(({ cluster }) => cluster).join(', ')
    const text = `the connection is passed on to ${clusters}${host.tls === undefined ? ', unread' : ' after TLS'}`
    return { ...none(text, host.host), outcome: 'passthrough', isServed: true }
  }
  const facts: RequestFacts = {
    method,
    authority: lower,
    host: name,
    ...normalized,
    header: (each) => headers.get(each),
  }
  const answered = found.find(facts)
  if (answered !== undefined && 'kind' in answered) {
    const { origin } = answered.route
    const at = `${describeOrigin(origin)} ${origin.at}`
    return none(
      `500: the conditions of the host take more than ${MAX_STEPS} steps, most of them those of ${at}`,
      host.host,
    )
  }
  const steps = new Steps(Infinity)
  const passed: (TracedRoute & { because: string })[] = []
  const shadowed: TracedRoute[] = []
  let taken: Route | undefined
  for (const { route, matches } of routes) {
    if (!matches(facts, steps)) {
      if (taken === undefined) passed.push({ ...describe(route), because: findMismatch(route.match, facts) ?? '' })
    } else if (taken === undefined) taken = route
    else shadowed.push(describe(route))
  }
  const problems = problemsOf(name, objects, statuses, findings)
  if (taken === undefined)
    return {
      outcome: 'none',
      text: `404: none of the ${routes.length} routes of ${host.host} matches`,
      isServed: false,
      host: host.host,
      passed,
      shadowed,
      problems,
    }
  const isUpgraded = taken.upgradesToHttps && protocol === 'http'
  const { action } = taken
  const missing = isUpgraded || slices === undefined ? [] : withoutEndpoints(ir, action, slices)
  problems.push(...missing)
  const isServed = missing.length === 0 || (action.kind === 'forward' && missing.length < action.backends.length)
  const text = isUpgraded ? '301: redirected to HTTPS' : describeAction(action)
  return {
    outcome: isUpgraded ? 'redirect' : action.kind,
    text: isServed ? text : `503: ${text}; no backend has a ready endpoint`,
    isServed,
    host: host.host,
    taken: describe(taken),
    passed,
    shadowed,
    problems,
  }
}

function describe({ origin, match }: Route): TracedRoute {
  const { path, method, headers, query } = match
  const parts = [
    `${path.kind} ${path.value}`,
    ...(method === undefined ? [] : [`method ${method}`]),
    ...headers.map(
      (each) => `header ${each.name} ${each.isInverted === true ? 'not ' : ''}${each.kind} "${each.value}"`,
    ),
    ...query.map((each) => `query ${each.name} ${each.kind} "${each.value}"`),
  ]
  return { origin: `${nameOf(origin)} ${origin.at}`, match: parts.join(', ') }
}

function withoutEndpoints({ clusters }: Ir, action: Action, slices: readonly Immutable<EndpointSlice>[]): string[] {
  if (action.kind !== 'forward') return []
  return action.backends.flatMap(({ cluster: name }) => {
    const upstream = clusters.find((each) => each.name === name)?.upstream
    if (upstream?.kind !== 'endpoints') return []
    const slash = upstream.name.lastIndexOf('/')
    const [service, port] = [upstream.name.slice(0, slash), upstream.name.slice(slash + 1)]
    const own = slices.filter((slice) => serviceOf(slice) === service)
    if (endpointsOf(own, port).length > 0) return []
    return [`Service ${service} has no ready endpoint${port === '' ? '' : ` for port ${port}`}: requests get 503`]
  })
}

function nameOf({ kind, namespace, name }: Omit<Origin, 'at'>): string {
  return `${kind} ${namespace}/${name}`
}

function describeAction(action: Action): string {
  switch (action.kind) {
    case 'direct':
      return `${action.status}: answered by the gateway itself`
    case 'redirect':
      return `${action.status}: redirected`
    case 'forward': {
      const total = action.backends.reduce((sum, { weight }) => sum + weight, action.invalidWeight ?? 0)
      const shares = action.backends.map(
        ({ cluster, weight }) => `${cluster} (${Math.round((100 * weight) / total)} %)`,
      )
      const lost = action.invalidWeight ?? 0
      const failing =
        lost === 0 ? '' : `; ${Math.round((100 * lost) / total)} % answered with 500: a backend is missing`
      return `forwarded to ${shares.join(', ')}${failing}`
    }
  }
}

/** Objects that name the host and are not, or not completely, served. */
function problemsOf(
  host: string,
  objects: Objects,
  statuses: Build['statuses'],
  findings: Build['findings'],
): string[] {
  const naming = new Set<string>()
  const add = (kind: string, object: Immutable<Obj>, hosts: readonly (string | undefined)[]) => {
    if (hosts.some((each) => typeof each === 'string' && covers(each.toLowerCase(), host)))
      naming.add(`${kind} ${keyOf(object)}`)
  }
  for (const each of objects.list(Ingress)) add('Ingress', each, each.spec?.rules?.map((rule) => rule.host) ?? [])
  for (const each of objects.list(HTTPProxy)) add('HTTPProxy', each, [each.spec?.virtualhost?.fqdn])
  for (const each of objects.list(HTTPRoute)) add('HTTPRoute', each, each.spec?.hostnames ?? [])
  for (const each of objects.list(GRPCRoute)) add('GRPCRoute', each, each.spec?.hostnames ?? [])
  const fromStatuses = statuses
    .filter(({ kind, key }) => naming.has(`${kind} ${key}`))
    .flatMap(({ kind, key, status }) => falseConditions(status).map((text) => `${kind} ${key}: ${text}`))
  const fromFindings = findings
    .filter(({ origin }) => naming.has(nameOf(origin)))
    .map(({ origin, reason, message }) => `${nameOf(origin)}: ${reason}: ${message}`)
  return [...fromStatuses, ...fromFindings]
}

function covers(pattern: string, host: string): boolean {
  return pattern === host || (pattern.startsWith('*.') && host.endsWith(pattern.slice(1)))
}

interface AnyCondition {
  readonly status?: string
  readonly reason?: string
  readonly message?: string
  readonly errors?: readonly { readonly reason?: string; readonly message?: string }[]
}

function falseConditions(status: Readonly<Record<string, unknown>>): string[] {
  const parents = Array.isArray(status['parents']) ? (status['parents'] as { conditions?: unknown }[]) : []
  const lists = [status['conditions'], ...parents.map(({ conditions }) => conditions)]
  return lists
    .flatMap((list) => (Array.isArray(list) ? (list as AnyCondition[]) : []))
    .filter((each) => each.status === 'False')
    .flatMap((each) => each.errors ?? [each])
    .map(({ reason = '', message = '' }) => `${reason}: ${message}`)
}
