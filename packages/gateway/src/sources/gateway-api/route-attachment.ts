/** How routes of the Gateway API attach to listeners: parents, namespaces, kinds and the intersection of host names. */
import type { ParentRef, RouteParentStatus } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable, type Obj } from '@seamark/kube/object'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { condition, identify, type ConditionIntent, type StatusIntent } from '../../draft/status-intent.ts'
import { allowsNamespace, type ServedGateway } from './gateway.ts'
import { GATEWAY_GROUP, type ServedListener } from './listener.ts'
import { hostName } from '../wildcard-host.ts'

export interface AnyRoute extends Obj {
  spec?: { parentRefs?: ParentRef[]; hostnames?: string[] }
  status?: { parents?: RouteParentStatus[] }
}

export interface RouteFault {
  readonly reason: string
  readonly message: string
}

export interface ServedParent {
  readonly parent: Immutable<ParentRef>
  readonly gateway: ServedGateway
}

/** The parents of a route that are Gateways of this data plane. */
export function servedParents(
  object: Immutable<AnyRoute>,
  gateways: ReadonlyMap<string, ServedGateway>,
): ServedParent[] {
  const { namespace = '' } = object.metadata
  return (object.spec?.parentRefs ?? []).flatMap((parent) => {
    const isGateway = (parent.group ?? GATEWAY_GROUP) === GATEWAY_GROUP && (parent.kind ?? 'Gateway') === 'Gateway'
    const gateway = isGateway ? gateways.get(`${parent.namespace ?? namespace}/${parent.name}`) : undefined
    return gateway === undefined ? [] : [{ parent, gateway }]
  })
}

/** Removes what this controller once wrote about a route that has no parent of ours any more. */
export function detachedIntents(
  kind: 'HTTPRoute' | 'GRPCRoute' | 'TLSRoute',
  object: Immutable<AnyRoute>,
  { controllerName, gateway }: BuildSettings,
): StatusIntent[] {
  const { namespace = '' } = object.metadata
  const isOurs = (object.status?.parents ?? []).some(({ parentRef, controllerName: writer }) => {
    const about = `${parentRef.namespace ?? namespace}/${parentRef.name}`
    return writer === controllerName && (gateway === undefined || gateway === about)
  })
  return isOurs ? [{ kind, ...identify(object), status: { parents: [] } }] : []
}

/**
 * Attaches a route to the listeners of one parent; the result is its condition Accepted.
 * @param serve called for each listener and host that serve the route
 * @param unsupported why the route cannot be served at all
 */
export function attach(
  objects: Objects,
  { kind, object }: { readonly kind: string; readonly object: Immutable<AnyRoute> },
  { parent, gateway: { gateway, listeners } }: ServedParent,
  serve: (listener: ServedListener, host: string) => void,
  unsupported: RouteFault | undefined,
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
    if (!listener.isServing) continue
    for (const host of hosts) if (!isTakenByOther(listener, host, listeners)) serve(listener, host)
  }
  return isAttached
    ? condition('Accepted', true, 'Accepted', 'the route is accepted')
    : condition('Accepted', false, 'NoMatchingListenerHostname', 'no hostname of the route matches one of a listener')
}

/** Requests go to the most specific listener for their host, whatever routes the others have. */
function isTakenByOther(own: ServedListener, host: string, listeners: readonly ServedListener[]): boolean {
  return listeners.some((other) => {
    const isSamePort = other !== own && other.isServing && other.id === own.id
    return isSamePort && other.host !== own.host && covers(own.host, other.host) && covers(other.host, host)
  })
}

/** Hosts of more specific listeners of the same port, which routes of this one must not take. */
export function moreSpecificHosts(own: ServedListener, host: string, listeners: readonly ServedListener[]): string[] {
  return listeners
    .filter((other) => other !== own && other.isServing && other.id === own.id)
    .map((other) => other.host)
    .filter((other) => other !== host && covers(host, other))
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
