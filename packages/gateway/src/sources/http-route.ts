/**
 * HTTPRoute and GRPCRoute: attachment to listeners, intersection of hosts, and the conditions Accepted and ResolvedRefs for
 * each parent. A rule whose backends cannot be resolved answers 500 for their share of the requests.
 */
import { messageOf } from '@seamark/kube'
import { GRPCRoute, HTTPRoute, type HTTPRouteRule, type ParentRef } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable, type Obj } from '@seamark/kube/object'
import { originOf, type Draft } from '../build/draft.ts'
import { compareAge, type BuildSettings, type Objects } from '../build/input.ts'
import { identify, type ConditionIntent, type StatusIntent } from '../build/status-intent.ts'
import type { Route } from '../ir/model.ts'
import { allowsNamespace, GATEWAY_GROUP, type ServedGateway, type ServedListener } from './gateway.ts'
import { grpcRules } from './grpc-route.ts'
import { buildRule, type RuleFault } from './http-route-rule.ts'
import { hostName } from './wildcard-host.ts'

interface AnyRoute extends Obj {
  spec?: { parentRefs?: ParentRef[]; hostnames?: string[] }
}

interface RouteObject {
  readonly kind: 'HTTPRoute' | 'GRPCRoute'
  readonly object: Immutable<AnyRoute>
  readonly rules: () => readonly Immutable<HTTPRouteRule>[]
}

export function addHttpRoutes(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  gateways: readonly ServedGateway[],
): StatusIntent[] {
  if (gateways.length === 0) return []
  const byKey = new Map(gateways.map((gateway) => [gateway.key, gateway]))
  const routes: RouteObject[] = [
    ...objects
      .list(HTTPRoute)
      .map((object) => ({ kind: 'HTTPRoute' as const, object, rules: () => object.spec?.rules ?? [{}] })),
    ...objects
      .list(GRPCRoute)
      .map((object) => ({ kind: 'GRPCRoute' as const, object, rules: () => grpcRules(object) })),
  ]
  return routes
    .toSorted((a, b) => compareAge(a.object, b.object))
    .flatMap((route) => {
      try {
        return addRoute(draft, objects, settings, byKey, route)
      } catch (error) {
        const message = `the object cannot be read: ${messageOf(error)}; it is not served`
        const { at: _at, ...origin } = originOf(route.kind, route.object, '')
        draft.findings.push({ origin, reason: 'Unreadable', message })
        return []
      }
    })
}

function addRoute(
  draft: Draft,
  objects: Objects,
  settings: BuildSettings,
  gateways: ReadonlyMap<string, ServedGateway>,
  route: RouteObject,
): StatusIntent[] {
  const { kind, object } = route
  const { namespace = '', creationTimestamp = '' } = object.metadata
  const ours = (object.spec?.parentRefs ?? []).flatMap((parent) => {
    const isGateway = (parent.group ?? GATEWAY_GROUP) === GATEWAY_GROUP && (parent.kind ?? 'Gateway') === 'Gateway'
    const gateway = isGateway ? gateways.get(`${parent.namespace ?? namespace}/${parent.name}`) : undefined
    return gateway === undefined ? [] : [{ parent, gateway }]
  })
  if (ours.length === 0) return []

  const built = route.rules().map((rule, index) => {
    const at = `spec.rules[${index}]`
    const order = `${creationTimestamp} ${keyOf(object)} ${String(index).padStart(6, '0')}`
    return buildRule({ draft, objects, settings, kind, namespace }, rule, {
      origin: originOf(kind, object, at),
      order,
    })
  })
  const unsupported = built.map((each) => each.unsupported).find((fault) => fault !== undefined)
  const unresolved = built.map((each) => each.unresolved).find((fault) => fault !== undefined)
  const rules = unsupported === undefined ? built.flatMap((each) => each.routes) : []

  const parents = ours.map(({ parent, gateway }) => ({
    parentRef: parent,
    controllerName: settings.controllerName,
    conditions: [
      attach(draft, objects, route, rules, parent, gateway, unsupported),
      unresolved === undefined
        ? condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved')
        : condition('ResolvedRefs', false, unresolved.reason, unresolved.message),
    ],
  }))
  return [{ kind, ...identify(object), status: { parents } }]
}

function attach(
  draft: Draft,
  objects: Objects,
  { kind, object }: RouteObject,
  rules: readonly Route[],
  parent: Immutable<ParentRef>,
  { gateway, listeners }: ServedGateway,
  unsupported: RuleFault | undefined,
): ConditionIntent {
  const { namespace = '' } = object.metadata
  const named = listeners.filter(({ spec }) => {
    const isSection = parent.sectionName === undefined || parent.sectionName === spec.name
    return isSection && (parent.port === undefined || parent.port === spec.port)
  })
  if (named.length === 0)
    return condition('Accepted', false, 'NoMatchingParent', 'no listener has this sectionName and port')
  const allowed = named.filter(({ spec, kinds, isAccepted }) => {
    const isAllowed = allowsNamespace(objects, spec, gateway.metadata.namespace ?? '', namespace)
    return isAccepted && kinds.includes(kind) && isAllowed
  })
  if (allowed.length === 0) {
    const message = 'no listener accepts routes of this kind and namespace; see allowedRoutes of the Gateway'
    return condition('Accepted', false, 'NotAllowedByListeners', message)
  }
  if (unsupported !== undefined) return condition('Accepted', false, unsupported.reason, unsupported.message)
  let isAttached = false
  for (const listener of allowed) {
    const hosts = intersectHosts(listener.host, object.spec?.hostnames ?? [])
    if (hosts.length === 0) continue
    isAttached = true
    listener.attached.add(`${kind} ${keyOf(object)}`)
    if (listener.isServing) for (const host of hosts) serve(draft, listener, host, rules)
  }
  return isAttached
    ? condition('Accepted', true, 'Accepted', 'the route is accepted')
    : condition('Accepted', false, 'NoMatchingListenerHostname', 'no hostname of the route matches one of a listener')
}

function serve(draft: Draft, listener: ServedListener, host: string, rules: readonly Route[]): void {
  if (listener.protocol === 'https' && listener.certificate !== undefined)
    draft.setTls(host, { certificate: listener.certificate, minVersion: '1.2', maxVersion: '1.3' })
  for (const rule of rules) draft.addRoute(listener.protocol, host, rule)
}

/** Hosts that both the listener and the route serve; the more specific name of each pair. */
function intersectHosts(listener: string, hostnames: readonly string[]): string[] {
  const names = hostnames.map((each) => hostName(each)).filter((each) => each !== undefined)
  if (hostnames.length === 0) return [listener]
  return [
    ...new Set(
      names.flatMap((name) => {
        if (covers(listener, name)) return [name]
        return covers(name, listener) ? [listener] : []
      }),
    ),
  ]
}

/** `*.x` covers every name below x, of any depth. */
function covers(pattern: string, name: string): boolean {
  if (pattern === '*' || pattern === name) return true
  return pattern.startsWith('*.') && name.endsWith(pattern.slice(1)) && name !== pattern.slice(2)
}

function condition(type: string, isTrue: boolean, reason: string, message: string): ConditionIntent {
  return { type, status: isTrue ? 'True' : 'False', reason, message }
}
