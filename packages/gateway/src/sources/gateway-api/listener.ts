/**
 * Listeners of a Gateway: which are served, on which listener of the data plane (listener-port.ts), for which host, with which
 * certificate and for which kinds of routes.
 */
import type { FrontendValidation, Gateway, Listener as ListenerSpec } from '@seamark/kube/gateway-api'
import { keyOf, type Immutable, type Key } from '@seamark/kube/object'
import { readCaRefs, type CaBundles, type CaFault } from './ca-bundles.ts'
import type { Draft } from '../../draft/draft.ts'
import type { Objects } from '../../draft/input.ts'
import { readCertificate, STILL_SERVED } from '../../draft/secrets.ts'
import { condition, type ConditionIntent } from '../../draft/status-intent.ts'
import type { ListenerId } from '../../ir/listen-addresses.ts'
import type { ClientValidation, TlsTermination } from '../../ir/model.ts'
import type { ListenerPorts, PortClaim } from './listener-port.ts'
import { isReferenceGranted } from './reference-grant.ts'
import { hostName } from '../wildcard-host.ts'

export const GATEWAY_GROUP = 'gateway.networking.k8s.io'

/** Kinds of routes by protocol; other protocols are not supported. */
const ROUTE_KINDS: Readonly<Record<string, readonly string[]>> = {
  HTTP: ['HTTPRoute', 'GRPCRoute'],
  HTTPS: ['HTTPRoute', 'GRPCRoute'],
  TLS: ['TLSRoute'],
}

export interface ServedListener {
  readonly spec: Immutable<ListenerSpec>
  /** `namespace/name` */
  readonly gateway: Key
  /** Of the Gateway by age: 0 is the oldest. */
  readonly order: number
  /** The protocol of the listener of the data plane. */
  readonly protocol: 'http' | 'https'
  /** The listener of the data plane. */
  readonly id: ListenerId
  /** Lower case; `*` for every host. */
  readonly host: string
  /** HTTPS, and TLS that is terminated. */
  readonly tls: TlsTermination | undefined
  readonly kinds: readonly string[]
  /** Routes attach to accepted listeners. */
  readonly isAccepted: boolean
  /** Without valid references it serves nothing. */
  readonly isServing: boolean
  readonly conditions: ConditionIntent[]
  /** Keys of the routes that attached. */
  readonly attached: Set<string>
}

interface Fault {
  readonly reason: string
  readonly message: string
}

interface ReadTls {
  readonly tls?: TlsTermination
  /** A reference that could not be resolved. */
  readonly unresolved?: Fault
  /** The listener cannot be used at all. */
  readonly refused?: Fault
}

export function readListeners(
  draft: Draft,
  objects: Objects,
  ports: ListenerPorts,
  gateway: Immutable<Gateway>,
  order: number,
): ServedListener[] {
  const all = gateway.spec?.listeners ?? []
  return all.map((spec) => {
    const protocol = spec.protocol === 'HTTP' ? 'http' : 'https'
    const host = spec.hostname === undefined || spec.hostname === '' ? '*' : (hostName(spec.hostname) ?? '')
    const { kinds, hasInvalidKind } = routeKinds(spec)
    const conflict = conflictOf(spec, all)
    const read = spec.protocol === 'HTTP' ? {} : readTls(draft, objects, gateway, spec)
    // A listener that is refused for another reason must not take the port from others.
    const known = refusalOf(spec, host) ?? conflict ?? read.refused
    const claim: PortClaim = known === undefined ? ports.claim(gateway, spec) : { id: protocol }
    const refused = 'unavailable' in claim ? { reason: 'PortUnavailable', message: claim.unavailable } : known
    const unresolved = hasInvalidKind
      ? {
          reason: 'InvalidRouteKinds',
          message: `only ${supportedKinds(spec).join(' and ')} can attach to protocol ${spec.protocol}`,
        }
      : read.unresolved
    const isAccepted = refused === undefined
    const hasTls = spec.protocol === 'HTTP' || isPassthrough(spec) || read.tls !== undefined
    const isServing = isAccepted && hasTls && kinds.length > 0
    const id = 'id' in claim ? claim.id : protocol
    if (isServing) draft.addListener(id)
    return {
      spec,
      gateway: keyOf(gateway),
      order,
      protocol,
      id,
      host,
      tls: read.tls,
      kinds,
      isAccepted,
      isServing,
      conditions: [
        refused === undefined
          ? condition('Accepted', true, 'Accepted', 'the listener is accepted')
          : condition('Accepted', false, refused.reason, refused.message),
        unresolved === undefined
          ? condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved')
          : condition('ResolvedRefs', false, unresolved.reason, unresolved.message),
        conflict === undefined
          ? condition('Conflicted', false, 'NoConflicts', 'no conflicts')
          : condition('Conflicted', true, conflict.reason, conflict.message),
        isServing
          ? condition('Programmed', true, 'Programmed', 'the data plane serves the listener')
          : condition('Programmed', false, 'Invalid', 'the listener is not served; see the other conditions'),
      ],
      attached: new Set(),
    }
  })
}

/** Verification of client certificates was switched off for a port of this Gateway. */
export function hasInsecureValidation({ spec }: Immutable<Gateway>): boolean {
  const { default: general, perPort = [] } = spec?.tls?.frontend ?? {}
  return [general?.validation, ...perPort.map(({ tls }) => tls?.validation)].some(isInsecure)
}

function isInsecure(validation: Immutable<FrontendValidation> | undefined): boolean {
  return validation?.mode === 'AllowInsecureFallback'
}

function isPassthrough({ protocol, tls }: Immutable<ListenerSpec>): boolean {
  return protocol === 'TLS' && tls?.mode === 'Passthrough'
}

function supportedKinds({ protocol }: Immutable<ListenerSpec>): readonly string[] {
  return ROUTE_KINDS[protocol] ?? []
}

function routeKinds(spec: Immutable<ListenerSpec>): { kinds: readonly string[]; hasInvalidKind: boolean } {
  const supported = supportedKinds(spec)
  const wanted = spec.allowedRoutes?.kinds
  if (wanted === undefined || wanted.length === 0 || supported.length === 0)
    return { kinds: supported, hasInvalidKind: false }
  const kinds = wanted
    .filter(({ group = GATEWAY_GROUP, kind }) => group === GATEWAY_GROUP && supported.includes(kind))
    .map(({ kind }) => kind)
  return { kinds, hasInvalidKind: kinds.length < wanted.length }
}

function refusalOf({ protocol, hostname = '' }: Immutable<ListenerSpec>, host: string): Fault | undefined {
  if (!Object.hasOwn(ROUTE_KINDS, protocol)) {
    const message = `protocol ${protocol} is not supported; use HTTP, HTTPS or TLS`
    return { reason: 'UnsupportedProtocol', message }
  }
  if (host === '') return { reason: 'UnsupportedValue', message: `hostname "${hostname}" is not a DNS name` }
  return undefined
}

/** HTTPS and TLS share a port as long as their host names differ: the server name selects the listener. */
function conflictOf(spec: Immutable<ListenerSpec>, all: readonly Immutable<ListenerSpec>[]): Fault | undefined {
  const others = all.filter((each) => each !== spec && each.port === spec.port)
  const hasTls = ({ protocol }: Immutable<ListenerSpec>) => protocol === 'HTTPS' || protocol === 'TLS'
  const protocol = others.find((each) => each.protocol !== spec.protocol && !(hasTls(each) && hasTls(spec)))
  if (protocol !== undefined)
    return { reason: 'ProtocolConflict', message: `listener ${protocol.name} has the same port and another protocol` }
  const host = others.find((each) => (each.hostname ?? '').toLowerCase() === (spec.hostname ?? '').toLowerCase())
  if (host !== undefined)
    return { reason: 'HostnameConflict', message: `listener ${host.name} has the same port and hostname` }
  return undefined
}

function readTls(draft: Draft, objects: Objects, gateway: Immutable<Gateway>, spec: Immutable<ListenerSpec>): ReadTls {
  if (isPassthrough(spec)) return {}
  if (!Object.hasOwn(ROUTE_KINDS, spec.protocol)) return {}
  const certificate = certificateOf(draft, objects, gateway, spec)
  if (certificate.name === undefined) return withFault(certificate.fault)
  const validation = clientValidationOf(objects, gateway, spec)
  if (validation?.refused !== undefined) return validation
  return {
    tls: {
      certificate: certificate.name,
      minVersion: '1.2',
      maxVersion: '1.3',
      ...(validation?.clients !== undefined && { clientValidation: validation.clients }),
    },
    ...withFault(certificate.fault ?? validation?.unresolved),
  }
}

function withFault(unresolved: Fault | undefined): { unresolved?: Fault } {
  return unresolved === undefined ? {} : { unresolved }
}

/** With a name and a fault, the certificate that is served now stays in use. */
function certificateOf(
  draft: Draft,
  objects: Objects,
  gateway: Immutable<Gateway>,
  { tls, name, protocol }: Immutable<ListenerSpec>,
): { name?: string; fault?: Fault } {
  const { namespace = '' } = gateway.metadata
  const invalid = (message: string) => ({
    fault: { reason: 'InvalidCertificateRef', message: `listener ${name}: ${message}` },
  })
  const [ref] = tls?.certificateRefs ?? []
  if (tls?.mode === 'Passthrough' || ref === undefined)
    return invalid(`${protocol} needs tls.mode Terminate and a certificateRef`)
  const { group = '', kind = 'Secret' } = ref
  if (group !== '' || kind !== 'Secret') return invalid(`certificateRefs must be Secrets, not ${kind}`)
  const key = `${ref.namespace ?? namespace}/${ref.name}`
  const to = { kind: 'Secret', namespace: ref.namespace ?? namespace, name: ref.name } as const
  if (!isReferenceGranted(objects, { kind: 'Gateway', namespace }, to))
    return {
      fault: { reason: 'RefNotPermitted', message: `listener ${name}: no ReferenceGrant permits Secret ${key}` },
    }
  const { certificate, fault } = readCertificate(objects, key)
  if (certificate === undefined) return invalid(`Secret ${key}: ${fault ?? ''}`)
  const served = { name: draft.addCertificate(certificate) }
  return fault === undefined ? served : { ...served, ...invalid(`Secret ${key}: ${fault}; ${STILL_SERVED}`) }
}

const CA_REASONS: Readonly<Record<CaFault['kind'], string>> = {
  ref: 'InvalidCACertificateRef',
  kind: 'InvalidCACertificateKind',
  forbidden: 'RefNotPermitted',
}

/** Client certificates are verified by the settings of the port, or the default ones of the Gateway. */
function clientValidationOf(
  objects: Objects,
  gateway: Immutable<Gateway>,
  { port }: Immutable<ListenerSpec>,
): { clients?: ClientValidation; unresolved?: Fault; refused?: Fault } | undefined {
  const { namespace = '' } = gateway.metadata
  const { default: general, perPort = [] } = gateway.spec?.tls?.frontend ?? {}
  const validation = perPort.find((each) => each.port === port)?.tls?.validation ?? general?.validation
  if (validation === undefined) return undefined
  const bundles: CaBundles = readCaRefs(objects, { kind: 'Gateway', namespace }, validation.caCertificateRefs ?? [])
  const { ca, fault } = bundles
  const unresolved = fault && { reason: CA_REASONS[fault.kind], message: fault.message }
  if (ca === '')
    return {
      ...(unresolved !== undefined && { unresolved }),
      refused: { reason: 'NoValidCACertificate', message: fault?.message ?? 'no caCertificateRefs are given' },
    }
  // Whatever certificate a client sends, or none, is accepted; what it sent is not verified.
  const clients = isInsecure(validation) ? { ca: '', isOptional: true } : { ca, isOptional: false }
  return { clients, ...(unresolved !== undefined && { unresolved }) }
}
