/**
 * HTTPRoute and GRPCRoute: attachment to listeners and the conditions Accepted and ResolvedRefs for each parent. A rule whose
 * backends cannot be resolved answers 500 for their share of the requests.
 */
import { ageOf, compareAge } from '@seamark/dialects'
import { messageOf } from '@seamark/kube'
import { BackendTLSPolicy, GRPCRoute, HTTPRoute, type HTTPRouteRule } from '@seamark/kube/gateway-api'
import type { Immutable } from '@seamark/kube/object'
import { originOf, type Draft } from '../../draft/draft.ts'
import { type BuildSettings, type Objects } from '../../draft/input.ts'
import { condition, identify, type StatusIntent } from '../../draft/status-intent.ts'
import { runStep, type StepRecords } from '../../draft/step.ts'
import type { Route } from '../../ir/model.ts'
import type { BackendTlsPolicies } from './backend-tls-policy.ts'
import type { ServedGateway } from './gateway.ts'
import type { ServedListener } from './listener.ts'
import { grpcRules } from './grpc-route.ts'
import { buildRule, type BuiltRule, type RuleInput } from './http-route-rule.ts'
import { attach, detachedIntents, moreSpecificHosts, servedParents, type AnyRoute } from './route-attachment.ts'

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
}

export function addHttpRoutes(input: Input): StatusIntent[] {
  const { draft, objects } = input
  const routes: RouteObject[] = [
    ...objects
      .list(HTTPRoute)
      .map((object) => ({ kind: 'HTTPRoute' as const, object, rules: () => object.spec?.rules ?? [{}] })),
    ...objects
      .list(GRPCRoute)
      .map((object) => ({ kind: 'GRPCRoute' as const, object, rules: () => grpcRules(object) })),
  ]
  return routes
    .toSorted((a, b) => compareAge(ageOf(a, a.object), ageOf(b, b.object)))
    .flatMap((route) => {
      try {
        return addRoute(input, route)
      } catch (error) {
        const message = `the object cannot be read: ${messageOf(error)}; it is not served`
        const { at: _at, ...origin } = originOf(route.kind, route.object, '')
        draft.findings.push({ origin, reason: 'Unreadable', message })
        return []
      }
    })
}

function addRoute(input: Input, route: RouteObject): StatusIntent[] {
  const { draft, objects, settings, policies, gateways } = input
  const { kind, object } = route
  const ours = servedParents(object, gateways)
  if (ours.length === 0) return detachedIntents(kind, object, settings)

  const services = new Set<string>()
  const built = buildRules(input, route, services)
  const unsupported = built.map((each) => each.unsupported).find((fault) => fault !== undefined)
  const unresolved = built.map((each) => each.unresolved).find((fault) => fault !== undefined)
  const rules = unsupported === undefined ? built.flatMap((each) => each.routes) : []

  const parents = ours.map((each) => {
    const { listeners } = each.gateway
    const accepted = attach(
      objects,
      route,
      each,
      (listener, host) => serve(draft, each.gateway.key, listener, listeners, host, rules),
      unsupported,
    )
    policies.addAncestor(each.gateway.gateway, services)
    return {
      parentRef: each.parent,
      controllerName: settings.controllerName,
      conditions: [
        accepted,
        unresolved === undefined
          ? condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved')
          : condition('ResolvedRefs', false, unresolved.reason, unresolved.message),
      ],
    }
  })
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
function buildRules(
  { draft, objects, settings, policies }: Input,
  { kind, object, rules }: RouteObject,
  services: Set<string>,
): readonly BuiltRule[] {
  const { createdAt, namespace, name } = ageOf({ kind }, object)
  const compute = (sources: Pick<RuleInput, 'draft' | 'objects' | 'services'>): BuiltRule[] =>
    rules().map((rule, index) => {
      // Sorts as `compareAge` does: no name has a character before the space.
      const order = `${createdAt} ${namespace} ${name} ${kind} ${String(index).padStart(6, '0')}`
      const origin = originOf(kind, object, `spec.rules[${index}]`)
      return buildRule({ ...sources, settings, policies, kind, namespace }, rule, { origin, order })
    })
  // Rules would depend on the policies, and on what those refer to.
  if (objects.list(BackendTLSPolicy).length > 0) return compute({ draft, objects, services })
  const target: RulesTarget = { draft, services, built: [] }
  runStep(records, object, { objects, settings, target }, (step) => {
    const used = new Set<string>()
    const built = compute({ draft: step, objects: step, services: used })
    step.act((to) => {
      for (const service of used) to.services.add(service)
      to.built = built
    })
  })
  return target.built
}

function serve(
  draft: Draft,
  gateway: string,
  listener: ServedListener,
  listeners: readonly ServedListener[],
  host: string,
  rules: readonly Route[],
): void {
  const { protocol, tls, id } = listener
  if (tls !== undefined) {
    const group = `${gateway}/${listener.spec.name}`
    draft.setTls(host, tls, group, id)
    // The listener serves every name of its own, also those without a route: with 404.
    if (draft.setTls(listener.host, tls, group, id)) draft.reserveHost(id, listener.host)
  }
  for (const rule of rules) draft.addRoute(id, host, withListenerPort(rule, listener))
  // Over TLS the server name has selected the listener before there is a request.
  if (protocol === 'http')
    for (const other of moreSpecificHosts(listener, host, listeners)) draft.reserveHost(id, other)
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
