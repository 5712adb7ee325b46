/** How routes of the Gateway API attach to listeners: parents, namespaces, kinds and the intersection of host names. */
import { findGrantFault } from '@seamark/dialects'
import type { ParentRef, RouteParentStatus } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable, type Obj } from '@seamark/kube/object'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { condition, identify, type ConditionIntent, type StatusIntent } from '../../draft/status-intent.ts'
import { allowsNamespace, type ServedGateway } from './gateway.ts'
import { covers, type HostOwners } from './host-owners.ts'
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

/** A parent with the listeners and hosts that the route attaches to; whether it gets the hosts is decided when all are known. */
export interface Attachment {
  readonly parent: ServedParent
  /** The condition Accepted, unless another Gateway owns all hosts. */
  readonly accepted: ConditionIntent
  readonly served: readonly { readonly listener: ServedListener; readonly hosts: readonly string[] }[]
  /** Hosts that the namespace of the route may not use, as a message. */
  readonly refusal?: string
}

/** The listeners that a parent names. */
function namedListeners({ parent, gateway }: ServedParent): readonly ServedListener[] {
  return gateway.listeners.filter(({ spec }) => {
    const isSection = parent.sectionName === undefined || parent.sectionName === spec.name
    return isSection && (parent.port === undefined || parent.port === spec.port)
  })
}

/** Those of them that routes of this kind and namespace may attach to. */
function allowedListeners(
  objects: Objects,
  named: readonly ServedListener[],
  kind: string,
  namespace: string,
): readonly ServedListener[] {
  return named.filter(({ spec, kinds, gateway, isAccepted }) => {
    const [gatewayNamespace = ''] = gateway.split('/')
    return isAccepted && kinds.includes(kind) && allowsNamespace(objects, spec, gatewayNamespace, namespace)
  })
}

/** On how many hosts of listeners the rules of a route are served, over all of its parents; before anything is made. */
export function countHosts(
  objects: Objects,
  { kind, object }: { readonly kind: string; readonly object: Immutable<AnyRoute> },
  parents: readonly ServedParent[],
): number {
  const { namespace = '' } = object.metadata
  let count = 0
  for (const parent of parents)
    for (const { host } of allowedListeners(objects, namedListeners(parent), kind, namespace))
      count += intersectHosts(host, object.spec?.hostnames ?? []).length
  return count
}

/**
 * Attaches a route to the listeners of one parent.
 * @param unsupported why the route cannot be served at all
 */
export function attach(
  objects: Objects,
  { grants }: BuildSettings,
  owners: HostOwners,
  { kind, object }: { readonly kind: string; readonly object: Immutable<AnyRoute> },
  served: ServedParent,
  unsupported: RouteFault | undefined,
): Attachment {
  const { namespace = '' } = object.metadata
  const refuse = (reason: string, message: string): Attachment => {
    return { parent: served, accepted: condition('Accepted', false, reason, message), served: [] }
  }
  const named = namedListeners(served)
  if (named.length === 0) return refuse('NoMatchingParent', 'no listener has this sectionName and port')
  const allowed = allowedListeners(objects, named, kind, namespace)
  if (allowed.length === 0) {
    const message = 'no listener accepts routes of this kind and namespace; see allowedRoutes of the Gateway'
    return refuse('NotAllowedByListeners', message)
  }
  if (unsupported !== undefined) return refuse(unsupported.reason, unsupported.message)
  const attached: Attachment['served'][number][] = []
  let refusal: string | undefined
  for (const listener of allowed) {
    const hosts = intersectHosts(listener.host, object.spec?.hostnames ?? []).filter((host) => {
      const fault = findGrantFault(grants, namespace, host)
      refusal ??= fault
      return fault === undefined
    })
    if (hosts.length === 0) continue
    listener.attached.add(`${kind} ${keyOf(object)}`)
    if (listener.isServing) for (const host of hosts) owners.declare(listener, host)
    attached.push({ listener, hosts })
  }
  if (attached.length === 0)
    return refusal === undefined
      ? refuse('NoMatchingListenerHostname', 'no hostname of the route matches one of a listener')
      : refuse('NameNotGranted', refusal)
  return {
    parent: served,
    accepted: condition('Accepted', true, 'Accepted', 'the route is accepted'),
    served: attached,
    ...(refusal !== undefined && { refusal }),
  }
}

/**
 * Serves the hosts that the listeners own; the result is the condition Accepted.
 * @param serve called for each listener and host that serve the route
 */
export function serveOwned(
  { accepted, served }: Attachment,
  owners: HostOwners,
  serve: (listener: ServedListener, host: string) => void,
): ConditionIntent {
  let hasHost = false
  let lost: string | undefined
  for (const { listener, hosts } of served)
    for (const host of hosts) {
      const owner = owners.otherOwner(listener, host)
      if (owner === undefined || owner.gateway === listener.gateway) hasHost = true
      else lost ??= `host ${host} belongs to listener ${owner.spec.name} of Gateway ${owner.gateway} on the same port`
      if (owner === undefined && listener.isServing) serve(listener, host)
    }
  return hasHost || lost === undefined ? accepted : condition('Accepted', false, 'HostOwnedByOther', lost)
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
