/**
 * GatewayClass and Gateway: which listeners are served, with which certificate and for which routes. A Gateway of this data
 * plane has one HTTP port and one HTTPS port (those of its first listeners); listeners on other ports are not available.
 */
import { Namespace } from '@seamark/kube'
import { Gateway, GatewayClass, type Listener as ListenerSpec } from '@seamark/kube/gateway-api'
import { keyOf, matchesLabelSelector, type Immutable } from '@seamark/kube/object'
import type { Draft } from '../build/draft.ts'
import { compareAge, type BuildSettings, type Objects } from '../build/input.ts'
import { readCertificate } from '../build/secrets.ts'
import { identify, type ConditionIntent, type StatusIntent } from '../build/status-intent.ts'
import { isReferenceGranted } from './reference-grant.ts'
import { hostName } from './wildcard-host.ts'

export const GATEWAY_GROUP = 'gateway.networking.k8s.io'
const ROUTE_KINDS = ['HTTPRoute', 'GRPCRoute']

export interface ServedListener {
  readonly spec: Immutable<ListenerSpec>
  readonly protocol: 'http' | 'https'
  /** Lower case; `*` for every host. */
  readonly host: string
  /** Name of the certificate in the IR; only HTTPS. */
  readonly certificate: string | undefined
  readonly kinds: readonly string[]
  /** Routes attach to accepted listeners. */
  readonly isAccepted: boolean
  /** Without valid references it serves nothing. */
  readonly isServing: boolean
  readonly conditions: ConditionIntent[]
  /** Keys of the routes that attached. */
  readonly attached: Set<string>
}

export interface ServedGateway {
  readonly gateway: Immutable<Gateway>
  readonly key: string
  readonly listeners: readonly ServedListener[]
}

const condition = (type: string, isTrue: boolean, reason: string, message: string): ConditionIntent => ({
  type,
  status: isTrue ? 'True' : 'False',
  reason,
  message,
})

/** Gateways of our classes, or the one that is named in the settings. */
export function readGateways(draft: Draft, objects: Objects, settings: BuildSettings): ServedGateway[] {
  const classes = new Set(ownClasses(objects, settings).map(keyOf))
  return objects
    .list(Gateway)
    .filter((gateway) => {
      if (settings.gateway !== undefined) return keyOf(gateway) === settings.gateway
      return classes.has(gateway.spec?.gatewayClassName ?? '')
    })
    .toSorted(compareAge)
    .flatMap((gateway) => {
      try {
        return [{ gateway, key: keyOf(gateway), listeners: readListeners(draft, objects, gateway) }]
      } catch {
        // Only where the schema of the CRD is not enforced; such a Gateway has no listeners to report on.
        return []
      }
    })
}

function ownClasses(objects: Objects, { controllerName }: BuildSettings): Immutable<GatewayClass>[] {
  return objects.list(GatewayClass).filter(({ spec }) => spec?.controllerName === controllerName)
}

function readListeners(draft: Draft, objects: Objects, gateway: Immutable<Gateway>): ServedListener[] {
  const all = gateway.spec?.listeners ?? []
  const portOf = (protocol: string) => all.find((each) => each.protocol === protocol)?.port
  const ports = { HTTP: portOf('HTTP'), HTTPS: portOf('HTTPS') }
  return all.map((spec) => {
    const host = spec.hostname === undefined || spec.hostname === '' ? '*' : (hostName(spec.hostname) ?? '')
    const { kinds, hasInvalidKind } = routeKinds(spec)
    const conflict = conflictOf(spec, all)
    const isKnown = spec.protocol === 'HTTP' || spec.protocol === 'HTTPS'
    const isOnPort = spec.protocol === 'HTTP' ? spec.port === ports.HTTP : spec.port === ports.HTTPS
    const certificate = spec.protocol === 'HTTPS' ? certificateOf(draft, objects, gateway, spec) : undefined
    const accepted = !isKnown
      ? condition(
          'Accepted',
          false,
          'UnsupportedProtocol',
          `protocol ${spec.protocol} is not supported; use HTTP or HTTPS`,
        )
      : host === ''
        ? condition('Accepted', false, 'UnsupportedValue', `hostname "${spec.hostname ?? ''}" is not a DNS name`)
        : !isOnPort
          ? condition(
              'Accepted',
              false,
              'PortUnavailable',
              `only port ${spec.protocol === 'HTTP' ? ports.HTTP : ports.HTTPS} is served for ${spec.protocol} by this Gateway`,
            )
          : conflict !== undefined
            ? condition('Accepted', false, conflict.reason, conflict.message)
            : condition('Accepted', true, 'Accepted', 'the listener is accepted')
    const resolved = hasInvalidKind
      ? condition('ResolvedRefs', false, 'InvalidRouteKinds', 'only HTTPRoute and GRPCRoute can attach')
      : certificate !== undefined && 'fault' in certificate
        ? condition('ResolvedRefs', false, certificate.reason, certificate.fault)
        : condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved')
    const isAccepted = accepted.status === 'True'
    const hasCertificate = certificate === undefined || 'name' in certificate
    const isServing = isAccepted && hasCertificate && kinds.length > 0
    return {
      spec,
      protocol: spec.protocol === 'HTTPS' ? 'https' : 'http',
      host,
      certificate: certificate !== undefined && 'name' in certificate ? certificate.name : undefined,
      kinds,
      isAccepted,
      isServing,
      conditions: [
        accepted,
        resolved,
        condition(
          'Conflicted',
          conflict !== undefined,
          conflict?.reason ?? 'NoConflicts',
          conflict?.message ?? 'no conflicts',
        ),
        isServing
          ? condition('Programmed', true, 'Programmed', 'the data plane serves the listener')
          : condition('Programmed', false, 'Invalid', 'the listener is not served; see the other conditions'),
      ],
      attached: new Set(),
    }
  })
}

function routeKinds({ allowedRoutes }: Immutable<ListenerSpec>): { kinds: string[]; hasInvalidKind: boolean } {
  const wanted = allowedRoutes?.kinds
  if (wanted === undefined || wanted.length === 0) return { kinds: ROUTE_KINDS, hasInvalidKind: false }
  const kinds = wanted
    .filter(({ group = GATEWAY_GROUP, kind }) => group === GATEWAY_GROUP && ROUTE_KINDS.includes(kind))
    .map(({ kind }) => kind)
  return { kinds, hasInvalidKind: kinds.length < wanted.length }
}

function conflictOf(
  spec: Immutable<ListenerSpec>,
  all: readonly Immutable<ListenerSpec>[],
): { reason: string; message: string } | undefined {
  const others = all.filter((each) => each !== spec && each.port === spec.port)
  const protocol = others.find((each) => each.protocol !== spec.protocol)
  if (protocol !== undefined)
    return { reason: 'ProtocolConflict', message: `listener ${protocol.name} has the same port and another protocol` }
  const host = others.find((each) => (each.hostname ?? '').toLowerCase() === (spec.hostname ?? '').toLowerCase())
  if (host !== undefined)
    return { reason: 'HostnameConflict', message: `listener ${host.name} has the same port and hostname` }
  return undefined
}

function certificateOf(
  draft: Draft,
  objects: Objects,
  gateway: Immutable<Gateway>,
  { tls, name }: Immutable<ListenerSpec>,
): { name: string } | { fault: string; reason: string } {
  const { namespace = '' } = gateway.metadata
  const refs = tls?.certificateRefs ?? []
  const [ref] = refs
  if (tls?.mode === 'Passthrough' || ref === undefined)
    return {
      fault: `listener ${name}: HTTPS needs tls.mode Terminate and a certificateRef`,
      reason: 'InvalidCertificateRef',
    }
  const { group = '', kind = 'Secret' } = ref
  if (group !== '' || kind !== 'Secret')
    return { fault: `listener ${name}: certificateRefs must be Secrets, not ${kind}`, reason: 'InvalidCertificateRef' }
  const key = `${ref.namespace ?? namespace}/${ref.name}`
  const to = { kind: 'Secret', namespace: ref.namespace ?? namespace, name: ref.name } as const
  if (!isReferenceGranted(objects, { kind: 'Gateway', namespace }, to))
    return { fault: `listener ${name}: no ReferenceGrant permits Secret ${key}`, reason: 'RefNotPermitted' }
  const found = readCertificate(objects, key)
  if ('fault' in found)
    return { fault: `listener ${name}: Secret ${key}: ${found.fault}`, reason: 'InvalidCertificateRef' }
  return { name: draft.addCertificate(found) }
}

/** Whether a listener lets routes of this namespace attach. */
export function allowsNamespace(
  objects: Objects,
  { allowedRoutes }: Immutable<ListenerSpec>,
  gatewayNamespace: string,
  namespace: string,
): boolean {
  const { from = 'Same', selector } = allowedRoutes?.namespaces ?? {}
  switch (from) {
    case 'All':
      return true
    case 'Same':
      return namespace === gatewayNamespace
    case 'Selector': {
      const labels = objects.get(Namespace, namespace)?.metadata.labels
      return selector !== undefined && matchesLabelSelector(selector, labels ?? {})
    }
    default:
      return false
  }
}

export function gatewayIntents(
  objects: Objects,
  settings: BuildSettings,
  gateways: readonly ServedGateway[],
): StatusIntent[] {
  const classes = ownClasses(objects, settings).map((each): StatusIntent => {
    return {
      kind: 'GatewayClass',
      ...identify(each),
      status: { conditions: [condition('Accepted', true, 'Accepted', 'the class is served by this controller')] },
    }
  })
  return [...classes, ...gateways.map(gatewayIntent)]
}

function gatewayIntent({ gateway, listeners }: ServedGateway): StatusIntent {
  const isServing = listeners.some((each) => each.isServing)
  const areAllValid = listeners.every((each) => each.isServing)
  return {
    kind: 'Gateway',
    ...identify(gateway),
    status: {
      conditions: [
        areAllValid
          ? condition('Accepted', true, 'Accepted', 'the Gateway is accepted')
          : condition(
              'Accepted',
              isServing,
              'ListenersNotValid',
              'at least one listener is not valid; see their conditions',
            ),
        isServing
          ? condition('Programmed', true, 'Programmed', 'the data plane serves the Gateway')
          : condition('Programmed', false, 'Invalid', 'no listener is served; see their conditions'),
      ],
      listeners: listeners.map(({ spec, kinds, attached, conditions }) => ({
        name: spec.name,
        supportedKinds: kinds.map((kind) => ({ group: GATEWAY_GROUP, kind })),
        attachedRoutes: attached.size,
        conditions,
      })),
    },
  }
}
