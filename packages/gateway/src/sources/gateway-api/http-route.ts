/**
 * HTTPRoute and GRPCRoute: attachment to listeners and the conditions Accepted and ResolvedRefs for each parent. A rule whose
 * backends cannot be resolved answers 500 for their share of the requests.
 */
import { ageOf, compareAge } from '@seamark/dialects'
import { messageOf } from '@seamark/kube'
import { BackendTLSPolicy, GRPCRoute, HTTPRoute, type HTTPRouteRule } from '@seamark/kube/gateway-api'
import type { Immutable } from '@seamark/kube/object'
import type { Draft } from '../../draft/draft.ts'
import { originOf } from '../../draft/origin.ts'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { condition, identify, type StatusIntent } from '../../draft/status-intent.ts'
import { runStep, type StepRecords } from '../../draft/step.ts'
import type { Allowance } from '../../draft/limits.ts'
import type { Parts } from '../../draft/turns.ts'
import type { Origin, Route } from '../../ir/model.ts'
import type { BackendTlsPolicies } from './backend-tls-policy.ts'
import type { ServedGateway } from './gateway.ts'
import type { ServedListener } from './listener.ts'
import { grpcRules } from './grpc-route.ts'
import { buildRule, type BuiltRule, type RuleInput } from './http-route-rule.ts'
import type { HostOwners } from './host-owners.ts'
import {
  attach,
  countHosts,
  detachedIntents,
  servedParents,
  serveOwned,
  type AnyRoute,
  type Attachment,
  type RouteFault,
} from './route-attachment.ts'

interface RouteObject {
  readonly kind: 'HTTPRoute' | 'GRPCRoute'
  readonly object: Immutable<AnyRoute>
  readonly rules: () => readonly Immutable<HTTPRouteRule>[]
}

interface Input {
  readonly draft: Draft
  readonly objects: Objects
  readonly settings: BuildSettings
  readonly policies: BackendTlsPolicies
  readonly gateways: ReadonlyMap<string, ServedGateway>
  readonly owners: HostOwners
  readonly allowance: Allowance
}

/** A route with its rules and the listeners that it attaches to. */
interface AttachedRoute {
  readonly route: RouteObject
  readonly rules: readonly Route[]
  readonly unresolved?: RouteFault
  readonly services: ReadonlySet<string>
  readonly attachments: readonly Attachment[]
}

export function* attachHttpRoutes(input: Input): Parts<AttachedRoute[]> {
  const { draft, objects } = input
  const routes: RouteObject[] = [
    ...objects
      .list(HTTPRoute)
      .map((object) => ({ kind: 'HTTPRoute' as const, object, rules: () => object.spec?.rules ?? [{}] })),
    ...objects
      .list(GRPCRoute)
      .map((object) => ({ kind: 'GRPCRoute' as const, object, rules: () => grpcRules(object) })),
  ]
  const attached: AttachedRoute[] = []
  for (const route of routes.toSorted((a, b) => compareAge(ageOf(a, a.object), ageOf(b, b.object)))) {
    yield
    try {
      attached.push(yield* attachRoute(input, route))
    } catch (error) {
      const message = `the object cannot be read: ${messageOf(error)}; it is not served`
      const { at: _at, ...origin } = originOf(route.kind, route.object, '')
      draft.findings.push({ origin, reason: 'Unreadable', message })
    }
  }
  return attached
}

function* attachRoute(input: Input, route: RouteObject): Parts<AttachedRoute> {
  const { objects, settings, gateways, owners, allowance } = input
  const { kind, object } = route
  const ours = servedParents(object, gateways)
  const services = new Set<string>()
  if (ours.length === 0) return { route, rules: [], services, attachments: [] }
  const { namespace = '' } = object.metadata
  const size = sizeOf(route)
  const patterns = allowance.takePatterns(namespace, size.patterns)
  const built = patterns === undefined ? yield* buildRules(input, route, services) : []
  const unsupported = patterns ?? built.map((each) => each.unsupported).find((fault) => fault !== undefined)
  const unresolved = built.map((each) => each.unresolved).find((fault) => fault !== undefined)
  const rules = unsupported === undefined ? built.flatMap((each) => each.routes) : []
  const hosts = rules.length === 0 ? 0 : countHosts(objects, route, ours)
  const fault = unsupported ?? allowance.takeRoutes(namespace, hosts * rules.length)
  const attachments: Attachment[] = []
  for (const each of ours) {
    attachments.push(attach(objects, settings, owners, { kind, object }, each, fault))
    yield
  }
  return { route, rules, services, attachments, ...(unresolved !== undefined && { unresolved }) }
}

/** Regular expressions of a route, counted before anything is made. */
function sizeOf({ rules }: RouteObject): { patterns: number } {
  let patterns = 0
  for (const { matches = [] } of rules())
    for (const { path, headers = [], queryParams = [] } of matches) {
      for (const each of [path ?? {}, ...headers, ...queryParams]) if (each.type === 'RegularExpression') patterns++
    }
  return { patterns }
}

export function* serveHttpRoutes(input: Input, routes: readonly AttachedRoute[]): Parts<StatusIntent[]> {
  const intents: StatusIntent[] = []
  for (const each of routes) {
    yield
    intents.push(...(yield* serveRoute(input, each)))
  }
  return intents
}

function* serveRoute(input: Input, attached: AttachedRoute): Parts<StatusIntent[]> {
  const { draft, settings, policies, owners } = input
  const { route, rules, unresolved, services, attachments } = attached
  const { kind, object } = route
  if (attachments.length === 0) return detachedIntents(kind, object, settings)
  const origin = originOf(kind, object, 'spec')
  const parents: object[] = []
  for (const attachment of attachments) {
    const { parent, gateway } = attachment.parent
    const { at: _at, ...about } = origin
    if (attachment.refusal !== undefined)
      draft.report({ origin: about, reason: 'NameNotGranted', message: attachment.refusal })
    const hosts: [ServedListener, string][] = []
    const accepted = serveOwned(attachment, owners, (listener, host) => hosts.push([listener, host]))
    for (const [listener, host] of hosts) yield* serve(draft, owners, listener, host, rules, origin)
    policies.addAncestor(gateway.gateway, services)
    parents.push({
      parentRef: parent,
      controllerName: settings.controllerName,
      conditions: [
        accepted,
        unresolved === undefined
          ? condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved')
          : condition('ResolvedRefs', false, unresolved.reason, unresolved.message),
      ],
    })
  }
  return [{ kind, ...identify(object), status: { parents } }]
}

/** What the step of a route changes. */
interface RulesTarget {
  readonly draft: Draft
  readonly services: Set<string>
  built: readonly BuiltRule[]
}

const records: StepRecords<RulesTarget> = new WeakMap()

/** @param services is filled with the keys of the Services that the rules refer to */
function* buildRules(
  { draft, objects, settings, policies }: Input,
  { kind, object, rules }: RouteObject,
  services: Set<string>,
): Parts<readonly BuiltRule[]> {
  const { createdAt, namespace, name } = ageOf({ kind }, object)
  const compute = function* (sources: Pick<RuleInput, 'draft' | 'objects' | 'services'>): Parts<BuiltRule[]> {
    const built: BuiltRule[] = []
    for (const [index, rule] of rules().entries()) {
      // Sorts as `compareAge` does: no name has a character before the space.
      const order = `${createdAt} ${namespace} ${name} ${kind} ${String(index).padStart(6, '0')}`
      const origin = originOf(kind, object, `spec.rules[${index}]`)
      const each = buildRule({ ...sources, settings, policies, kind, namespace }, rule, { origin, order })
      built.push(each)
      // The whole route is refused: the other rules cost nothing.
      if (each.unsupported !== undefined) break
      yield
    }
    return built
  }
  // Rules would depend on the policies, and on what those refer to.
  if (objects.list(BackendTLSPolicy).length > 0) return yield* compute({ draft, objects, services })
  const target: RulesTarget = { draft, services, built: [] }
  yield* runStep(records, object, { objects, settings, target }, function* (step) {
    const used = new Set<string>()
    const built = yield* compute({ draft: step, objects: step, services: used })
    step.act((to) => {
      for (const service of used) to.services.add(service)
      to.built = built
    })
  })
  return target.built
}

/** Rules that are added in one part. */
const PART = 50

function* serve(
  draft: Draft,
  owners: HostOwners,
  listener: ServedListener,
  host: string,
  rules: readonly Route[],
  origin: Origin,
): Parts<void> {
  const { protocol, tls, id, gateway } = listener
  if (tls !== undefined) {
    const group = `${gateway}/${listener.spec.name}`
    draft.claimTls(host, tls, origin, { group, gateway, listener: id })
    // The listener serves every name of its own, also those without a route: with 404.
    if (owners.ownsRest(listener)) {
      draft.claimTls(listener.host, tls, origin, { group, gateway, listener: id })
      draft.reserveHost(id, listener.host)
    }
  }
  for (const [index, rule] of rules.entries()) {
    if (index % PART === PART - 1) yield
    draft.addRoute(id, host, withListenerPort(rule, listener), gateway)
  }
  // Over TLS the server name has selected the listener before there is a request.
  if (protocol === 'http') for (const other of owners.moreSpecificHosts(listener, host)) draft.reserveHost(id, other)
  // The hosts of all listeners of the port were read, and a route may have as many hosts.
  yield
}

const DEFAULT_PORTS = { http: 80, https: 443 } as const

/**
 * Gateway API: a redirect that names neither a port nor a scheme goes to the port of the listener. A redirect to the host of
 * the request on a default port is left as it is: the request's Host has that port, or the one of a port mapping before it.
 */
function withListenerPort(rule: Route, { id, protocol, spec: { port } }: ServedListener): Route {
  const { action } = rule
  if (action.kind !== 'redirect' || action.port !== undefined || action.scheme !== undefined) return rule
  // A listener with a port of its own keeps it, whatever port the client sees.
  if (action.host === undefined && id === protocol && port === DEFAULT_PORTS[protocol]) return rule
  return { ...rule, action: { ...action, port } }
}
