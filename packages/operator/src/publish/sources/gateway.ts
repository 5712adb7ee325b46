/**
 * Gateway API. A Gateway requests the certificates of its listeners; an HTTPRoute requests the intersection of its host
 * names and those of the listeners it attaches to, at the addresses of those Gateways.
 *
 * Attachment is determined by spec, not by status: a route or listener that its controller reports as partly invalid keeps
 * its records. A Gateway that cannot be found makes the target unknown, never empty or smaller.
 */
import { type Immutable, matchesLabelSelector } from '@seamark/kube/object'
import { Gateway, HTTPRoute, type Listener, type ParentRef, type ReferenceGrant } from '@seamark/kube/gateway-api'
import { sortAddresses, normalizeHost } from '@seamark/dialects'
import { type Finding, warning } from '../../finding.ts'
import type { Source, TlsBlock } from './source.ts'
import { commonOf, sourceOf } from './base.ts'

export interface GatewayLookup {
  gateway(namespace: string, name: string): Immutable<Gateway> | undefined
  namespaceLabels(namespace: string): Readonly<Record<string, string>> | undefined
  grants(namespace: string): readonly Immutable<ReferenceGrant>[]
}

const GROUP = Gateway.group

export function fromGateway(object: Immutable<Gateway>, lookup: GatewayLookup): Source {
  const common = commonOf(Gateway, object)
  const findings: Finding[] = []
  const blocks = new Map<string, TlsBlock>()
  for (const listener of object.spec?.listeners ?? []) {
    const host = normalizeHost(listener.hostname ?? '')
    if (host === '' || listener.tls === undefined || listener.tls.mode === 'Passthrough') continue
    for (const ref of listener.tls.certificateRefs ?? []) {
      if ((ref.group ?? '') !== '' || (ref.kind ?? 'Secret') !== 'Secret') continue
      const namespace = ref.namespace ?? common.namespace
      if (namespace !== common.namespace && !isGranted(common.namespace, namespace, ref.name, lookup)) {
        const message = `listener ${listener.name}: no ReferenceGrant lets it use the Secret ${namespace}/${ref.name}`
        findings.push(warning('NamespaceNotAllowed', message))
        continue
      }
      const key = `${namespace}/${ref.name}`
      const hosts = [...(blocks.get(key)?.hosts ?? []), host]
      blocks.set(key, { secretName: ref.name, namespace, hosts: [...new Set(hosts)] })
    }
  }
  const tls = [...blocks.values()]
  return sourceOf(common, {
    className: object.spec?.gatewayClassName ?? '',
    hosts: [...new Set(tls.flatMap((block) => block.hosts))],
    tls,
    origin: { type: 'addresses', addresses: gatewayAddresses([object]) },
    asks: 'tls',
    findings,
  })
}

function isGranted(from: string, namespace: string, secret: string, lookup: GatewayLookup): boolean {
  return lookup
    .grants(namespace)
    .some(
      ({ spec }) =>
        (spec?.from ?? []).some((item) => item.group === GROUP && item.kind === 'Gateway' && item.namespace === from) &&
        (spec?.to ?? []).some(
          (item) => item.group === '' && item.kind === 'Secret' && (item.name ?? secret) === secret,
        ),
    )
}

export function fromHTTPRoute(object: Immutable<HTTPRoute>, lookup: GatewayLookup): Source {
  const common = commonOf(HTTPRoute, object)
  const asked = (object.spec?.hostnames ?? []).map(normalizeHost)
  const hosts = new Set<string>()
  const gateways: Immutable<Gateway>[] = []
  let missing: string | undefined
  for (const ref of object.spec?.parentRefs ?? []) {
    if ((ref.group ?? GROUP) !== GROUP || (ref.kind ?? 'Gateway') !== 'Gateway') continue
    const namespace = ref.namespace ?? common.namespace
    const gateway = lookup.gateway(namespace, ref.name)
    if (gateway === undefined) {
      missing = `Gateway ${namespace}/${ref.name}`
      continue
    }
    if (isSelecting(gateway) && lookup.namespaceLabels(common.namespace) === undefined)
      missing = `Namespace ${common.namespace}`
    const names = attachedHosts(common.namespace, asked, ref, gateway, lookup)
    for (const name of names) hosts.add(name)
    if (names.length > 0) gateways.push(gateway)
  }
  const isUnknown = missing !== undefined
  return sourceOf(common, {
    className: '',
    // With an unknown parent the names of the route are used, so that the route does not count as one without hosts.
    hosts: isUnknown && hosts.size === 0 ? asked : [...hosts],
    tls: [],
    origin: isUnknown
      ? { type: 'unknown', message: `${missing} cannot be found` }
      : { type: 'addresses', addresses: gatewayAddresses(gateways) },
    asks: 'dns',
  })
}

function gatewayAddresses(gateways: readonly Immutable<Gateway>[]) {
  const listed = gateways.flatMap((gateway) => gateway.status?.addresses ?? [])
  return sortAddresses(listed.map(({ type, value }) => (type === 'Hostname' ? { hostname: value } : { ip: value })))
}

function attachedHosts(
  namespace: string,
  asked: readonly string[],
  ref: Immutable<ParentRef>,
  gateway: Immutable<Gateway>,
  lookup: GatewayLookup,
): string[] {
  const listeners = (gateway.spec?.listeners ?? []).filter(
    (listener) =>
      (ref.sectionName ?? listener.name) === listener.name &&
      (ref.port ?? listener.port) === listener.port &&
      allowsRoute(listener, namespace, gateway.metadata.namespace ?? '', lookup),
  )
  return listeners.flatMap((listener) => {
    const own = normalizeHost(listener.hostname ?? '')
    if (asked.length === 0) return own === '' ? [] : [own]
    return asked.flatMap((host) => intersectHosts(host, own) ?? [])
  })
}

function isSelecting(gateway: Immutable<Gateway>): boolean {
  return (gateway.spec?.listeners ?? []).some(
    ({ allowedRoutes }) =>
      allowedRoutes?.namespaces?.selector !== undefined && allowedRoutes.namespaces.from === 'Selector',
  )
}

function allowsRoute(listener: Immutable<Listener>, namespace: string, home: string, lookup: GatewayLookup): boolean {
  if (listener.protocol !== 'HTTP' && listener.protocol !== 'HTTPS') return false
  const { namespaces, kinds } = listener.allowedRoutes ?? {}
  if (
    kinds !== undefined &&
    kinds.length > 0 &&
    !kinds.some((item) => item.kind === 'HTTPRoute' && (item.group ?? GROUP) === GROUP)
  ) {
    return false
  }
  const from = namespaces?.from ?? 'Same'
  if (from === 'All') return true
  if (from === 'Same') return namespace === home
  if (from !== 'Selector' || namespaces?.selector === undefined) return false
  const labels = lookup.namespaceLabels(namespace)
  return labels !== undefined && matchesLabelSelector(namespaces.selector, labels)
}

/** The more specific of the two, or undefined when they are disjoint ('' is every host). */
export function intersectHosts(route: string, listener: string): string | undefined {
  if (listener === '' || route === listener) return route
  if (listener.startsWith('*.') && isBelow(route, listener)) return route
  if (route.startsWith('*.') && isBelow(listener, route)) return listener
  return undefined
}

function isBelow(host: string, wildcard: string): boolean {
  const bare = host.startsWith('*.') ? host.slice(1) : host
  const suffix = wildcard.slice(1)
  return bare.length > suffix.length && bare.endsWith(suffix)
}
