/**
 * What one source object contributes in the target cluster: its DNSLoadBalancerEndpoints, their validity, its finalizer. Pure.
 *
 * Flow: annotated source and the load balancer it names → addresses (source.ts) → wanted endpoints, compared with those that
 * exist under this source's names.
 *
 * Guarantees:
 * - An endpoint that belongs to another source is neither changed nor deleted; one without a mark (made by the original) is
 *   adopted by its name.
 * - A source that exists and lost its addresses keeps its endpoints for `TARGET_HOLD_MS`, and after that as long as they are
 *   healthy (INV-20). A load balancer that cannot be read changes nothing.
 * - `validUntil` is renewed before it runs out and otherwise left alone, so steady state writes nothing.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type Immutable, timestamp } from '@seamark/kube'
import { keyOf, type OwnerReference } from '@seamark/kube/object'
import type { BalanceEvent } from '../balance-event.ts'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import type { Reason } from '../../reasons.ts'
import { compareText } from '../../rrset/rrset.ts'
import type { BalancerSettings } from '../load-balancer.ts'
import { type LoadBalancerRef, refOf } from '../../hosts/load-balancer.ts'
import { type Address, offerOf, type Source } from './source.ts'

export const ENDPOINT_FINALIZER = 'loadbalancer.gardener.cloud/endpoint'
/** On an endpoint: `<Kind>:<namespace>/<name>` of its source, and the source's cluster. */
export const SOURCE_ANNOTATION = 'loadbalancer.gardener.cloud/source'
export const CLUSTER_ANNOTATION = 'loadbalancer.gardener.cloud/cluster'
/** On an endpoint: since when its source has no address. */
export const ORPHANED_ANNOTATION = 'loadbalancer.gardener.cloud/targets-missing-since'

export const TARGET_HOLD_MS = 15 * 60_000
/** A lease is renewed when less than this, or half of it, remains. */
const RENEW_MS = 120_000
const MAX_NAME_LENGTH = 253

export interface SourceFacts {
  readonly nowMs: number
  /** Identity of the source cluster; '' when source and target are one cluster. */
  readonly cluster: string
  readonly source: Source
  /** The load balancer that the annotation names; undefined while the target cluster cannot be read. */
  readonly loadBalancer: 'missing' | 'invalid' | Pick<BalancerSettings, 'dnsName' | 'endpointValidityMs'> | undefined
  /** Endpoints of the target cluster whose name or mark leads to this source (`isEndpointOf`). */
  readonly existing: readonly Immutable<DNSLoadBalancerEndpoint>[]
}

export interface SourceDecision {
  readonly reason: Reason
  /** Complete: what exists and is not here is deleted. */
  readonly wanted: readonly DNSLoadBalancerEndpoint[]
  /** Of `wanted`: those to create, or to change in metadata or spec. */
  readonly writes: readonly DNSLoadBalancerEndpoint[]
  /** Of `wanted`: those whose `status.validUntil` is to be written, or cleared. */
  readonly renewals: readonly DNSLoadBalancerEndpoint[]
  readonly deletions: readonly { readonly key: string; readonly uid: string | undefined }[]
  /** `add` before anything is written, `remove` after everything is deleted. */
  readonly finalizer: 'add' | 'remove' | 'keep'
  readonly events: readonly BalanceEvent[]
  readonly againAfterMs: number | undefined
}

/** What the source itself requests, before it is compared with what exists. */
type Intent =
  | { readonly kind: 'none'; readonly reason: Reason; readonly event?: BalanceEvent }
  | { readonly kind: 'hold'; readonly reason: Reason; readonly event?: BalanceEvent }
  | {
      readonly kind: 'offer'
      readonly ref: LoadBalancerRef
      readonly addresses: readonly Address[]
      readonly validityMs: number
    }
  | { readonly kind: 'pending'; readonly validityMs: number; readonly event: BalanceEvent }

export function decideSource(facts: SourceFacts): SourceDecision {
  const own = facts.existing.filter((endpoint) => isEndpointOf(endpoint, facts.source, facts.cluster))
  const intent = intentOf(facts)
  switch (intent.kind) {
    case 'none':
      return finish(facts, intent.reason, [], own, intent.event)
    case 'hold':
      return finish(facts, intent.reason, own.map(bare), own, intent.event)
    case 'pending':
      return finish(facts, 'TargetsMissing', held(facts, own, intent.validityMs), own, intent.event)
    case 'offer': {
      const wanted = endpointsFor(facts, intent.ref, intent.addresses, own, intent.validityMs)
      const foreign = foreignOf(facts, wanted)
      if (foreign === undefined) return finish(facts, 'SourceWants', wanted, own)
      const message = `endpoint '${keyOf(foreign)}' belongs to ${foreign.metadata.annotations?.[SOURCE_ANNOTATION] ?? 'another source'}`
      return finish(facts, 'ForeignObject', own.map(bare), own, { type: 'Warning', message })
    }
  }
}

function intentOf({ source, loadBalancer }: SourceFacts): Intent {
  const { object } = source
  if (object.metadata.deletionTimestamp !== undefined) return { kind: 'none', reason: 'SourceGone' }
  const ref = refOf(object)
  if (ref === undefined) return { kind: 'none', reason: 'NoLongerWanted' }
  if ('invalid' in ref) return { kind: 'none', reason: 'AnnotationInvalid', event: warn(ref.invalid) }
  if (loadBalancer === undefined) return { kind: 'hold', reason: 'ClusterUnreachable' }
  if (loadBalancer === 'missing') {
    const message = `dns loadbalancer '${ref.namespace}/${ref.name}' does not exist`
    return { kind: 'none', reason: 'LoadBalancerMissing', event: warn(message) }
  }
  if (loadBalancer === 'invalid') return { kind: 'hold', reason: 'LoadBalancerInvalid' }
  const offer = offerOf(source, loadBalancer.dnsName)
  const validityMs = loadBalancer.endpointValidityMs
  if ('addresses' in offer) return { kind: 'offer', ref, addresses: offer.addresses, validityMs }
  if (offer.problem === 'pending') return { kind: 'pending', validityMs, event: warn(offer.message) }
  return { kind: 'none', reason: 'TargetInvalid', event: warn(offer.message) }
}

function normal(message: string): BalanceEvent {
  return { type: 'Normal', message }
}

function warn(message: string): BalanceEvent {
  return { type: 'Warning', message }
}

/** Only the fields that this controller owns. */
function bare(endpoint: Immutable<DNSLoadBalancerEndpoint>): DNSLoadBalancerEndpoint {
  const { namespace = '', name = '', annotations = {}, ownerReferences } = endpoint.metadata
  const marks = [SOURCE_ANNOTATION, CLUSTER_ANNOTATION, ORPHANED_ANNOTATION].flatMap((key) =>
    annotations[key] === undefined ? [] : [[key, annotations[key]] as const],
  )
  const { loadbalancer, ipaddress, cname } = endpoint.spec
  const { validUntil } = endpoint.status ?? {}
  return {
    metadata: {
      namespace,
      name,
      annotations: Object.fromEntries(marks),
      ...(ownerReferences !== undefined && { ownerReferences: ownerReferences.map((each) => ({ ...each })) }),
    },
    spec: {
      loadbalancer,
      ...(ipaddress !== undefined && { ipaddress }),
      ...(cname !== undefined && { cname }),
    },
    ...(validUntil !== undefined && { status: { validUntil } }),
  }
}

function held(
  { nowMs }: SourceFacts,
  own: readonly Immutable<DNSLoadBalancerEndpoint>[],
  validityMs: number,
): DNSLoadBalancerEndpoint[] {
  return own.flatMap((endpoint) => {
    const since = endpoint.metadata.annotations?.[ORPHANED_ANNOTATION] ?? timestamp(nowMs)
    const isOver = nowMs - Date.parse(since) >= TARGET_HOLD_MS
    if (isOver && endpoint.status?.healthy !== true) return []
    const kept = bare(endpoint)
    const annotations = { ...kept.metadata.annotations, [ORPHANED_ANNOTATION]: since }
    return [withValidity({ metadata: { ...kept.metadata, annotations }, spec: kept.spec }, endpoint, validityMs, nowMs)]
  })
}

function endpointsFor(
  facts: SourceFacts,
  ref: LoadBalancerRef,
  addresses: readonly Address[],
  own: readonly Immutable<DNSLoadBalancerEndpoint>[],
  validityMs: number,
): DNSLoadBalancerEndpoint[] {
  const { source, cluster, nowMs } = facts
  const base = endpointName(source, cluster, ref.namespace)
  const byKey = new Map(own.map((endpoint) => [keyOf(endpoint), endpoint]))
  // The name without suffix stays with the address it has, so that a new address renames nothing.
  const holder = byKey.get(`${ref.namespace}/${base}`)
  const first = addresses.find((address) => holder !== undefined && hasAddress(holder, address)) ?? addresses[0]
  return addresses
    .map((address) => {
      const name = address === first ? base : shorten(`${base}-${digest(textOf(address))}`)
      const owner = ownerOf(source, cluster, ref)
      const endpoint: DNSLoadBalancerEndpoint = {
        metadata: {
          namespace: ref.namespace,
          name,
          annotations: {
            [SOURCE_ANNOTATION]: markOf(source),
            ...(cluster !== '' && { [CLUSTER_ANNOTATION]: cluster }),
          },
          ...(owner !== undefined && { ownerReferences: [owner] }),
        },
        spec: { loadbalancer: ref.name, ...address },
      }
      return withValidity(endpoint, byKey.get(keyOf(endpoint)), validityMs, nowMs)
    })
    .sort((a, b) => compareText(keyOf(a), keyOf(b)))
}

function withValidity(
  endpoint: DNSLoadBalancerEndpoint,
  existing: Immutable<DNSLoadBalancerEndpoint> | undefined,
  validityMs: number,
  nowMs: number,
): DNSLoadBalancerEndpoint {
  if (validityMs === 0) return endpoint
  const remainingMs = Date.parse(existing?.status?.validUntil ?? '') - nowMs
  const isLong = remainingMs > Math.min(RENEW_MS, validityMs / 2) && remainingMs <= validityMs
  const validUntil = isLong ? existing?.status?.validUntil : timestamp(nowMs + validityMs)
  return { ...endpoint, status: { ...(validUntil !== undefined && { validUntil }) } }
}

/** `[<cluster>-][<source namespace>-]<source name>-<kind>`; the namespace only when it is not the load balancer's. */
export function endpointName({ kind, object }: Source, cluster: string, loadBalancerNamespace: string): string {
  const { namespace = '', name = '' } = object.metadata
  const parts = [cluster, namespace === loadBalancerNamespace ? '' : namespace, name, kind.toLowerCase()]
  return shorten(parts.filter((part) => part !== '').join('-'))
}

function shorten(name: string): string {
  if (name.length <= MAX_NAME_LENGTH) return name
  return `${name.slice(0, MAX_NAME_LENGTH - 9)}-${digest(name)}`
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}

/** Marked as this source's, or unmarked under the name that the original gives it. */
export function isEndpointOf(endpoint: Immutable<DNSLoadBalancerEndpoint>, source: Source, cluster: string): boolean {
  const { annotations = {}, namespace = '', name = '' } = endpoint.metadata
  const mark = annotations[SOURCE_ANNOTATION]
  if (mark !== undefined) return mark === markOf(source) && (annotations[CLUSTER_ANNOTATION] ?? '') === cluster
  return name === endpointName(source, cluster, namespace)
}

function foreignOf(
  { existing, source, cluster }: SourceFacts,
  wanted: readonly DNSLoadBalancerEndpoint[],
): Immutable<DNSLoadBalancerEndpoint> | undefined {
  const keys = new Set(wanted.map(keyOf))
  return existing.find((endpoint) => keys.has(keyOf(endpoint)) && !isEndpointOf(endpoint, source, cluster))
}

function markOf({ kind, object }: Source): string {
  return `${kind}:${object.metadata.namespace ?? ''}/${object.metadata.name ?? ''}`
}

const API_VERSIONS = {
  Service: 'v1',
  Ingress: 'networking.k8s.io/v1',
  Gateway: 'gateway.networking.k8s.io/v1',
} as const

/** Only within one cluster and namespace: elsewhere the garbage collector would delete the endpoint. */
function ownerOf({ kind, object }: Source, cluster: string, ref: LoadBalancerRef): OwnerReference | undefined {
  const { namespace, name, uid } = object.metadata
  if (cluster !== '' || namespace !== ref.namespace || name === undefined || uid === undefined) return undefined
  return { apiVersion: API_VERSIONS[kind], kind, name, uid, controller: true }
}

function hasAddress({ spec }: Immutable<DNSLoadBalancerEndpoint>, address: Address): boolean {
  return 'cname' in address
    ? spec.cname === address.cname
    : spec.ipaddress === address.ipaddress && spec.cname === undefined
}

function textOf(address: Address): string {
  return 'cname' in address ? address.cname : address.ipaddress
}

function finish(
  { source, nowMs }: SourceFacts,
  reason: Reason,
  wanted: readonly DNSLoadBalancerEndpoint[],
  own: readonly Immutable<DNSLoadBalancerEndpoint>[],
  event?: BalanceEvent,
): SourceDecision {
  const kept = new Set(wanted.map(keyOf))
  const deletions = own
    .filter((endpoint) => !kept.has(keyOf(endpoint)))
    .map((endpoint) => ({ key: keyOf(endpoint), uid: endpoint.metadata.uid }))
    .sort((a, b) => compareText(a.key, b.key))
  const changes = changesOf(wanted, own)
  const hasFinalizer = source.object.metadata.finalizers?.includes(ENDPOINT_FINALIZER) === true
  const isDeleting = source.object.metadata.deletionTimestamp !== undefined
  const needed = wanted.length > 0
  return {
    reason,
    wanted,
    writes: changes.map(({ endpoint }) => endpoint),
    renewals: renewalsOf(wanted, own),
    deletions,
    finalizer: needed && !hasFinalizer && !isDeleting ? 'add' : !needed && hasFinalizer ? 'remove' : 'keep',
    events: [
      ...(event === undefined ? [] : [event]),
      ...(reason === 'NoLongerWanted' && own.length > 0 ? [normal('dns load balancer annotation removed')] : []),
      ...changes.map(({ verb, endpoint }) => normal(`dns load balancer endpoint ${keyOf(endpoint)} ${verb}`)),
      ...deletions.map(({ key }) => normal(`dns load balancer endpoint ${key} deleted`)),
    ],
    againAfterMs: nextLookMs(wanted, nowMs),
  }
}

interface EndpointChange {
  readonly verb: 'created' | 'updated'
  readonly endpoint: DNSLoadBalancerEndpoint
}

/** What differs from what exists; a validity that was renewed is not among it. */
function changesOf(
  wanted: readonly DNSLoadBalancerEndpoint[],
  own: readonly Immutable<DNSLoadBalancerEndpoint>[],
): EndpointChange[] {
  const before = new Map(own.map((endpoint) => [keyOf(endpoint), bare(endpoint)]))
  return wanted.flatMap((endpoint): EndpointChange[] => {
    const existing = before.get(keyOf(endpoint))
    if (existing === undefined) return [{ verb: 'created', endpoint }]
    const isSame = isDeepStrictEqual([existing.spec, existing.metadata], [endpoint.spec, endpoint.metadata])
    return isSame ? [] : [{ verb: 'updated', endpoint }]
  })
}

/** Endpoints whose validity is not as wanted. */
function renewalsOf(
  wanted: readonly DNSLoadBalancerEndpoint[],
  own: readonly Immutable<DNSLoadBalancerEndpoint>[],
): DNSLoadBalancerEndpoint[] {
  const before = new Map(own.map((endpoint) => [keyOf(endpoint), endpoint.status?.validUntil]))
  return wanted.filter((endpoint) => before.get(keyOf(endpoint)) !== endpoint.status?.validUntil)
}

/** Before the first lease has to be renewed, or the hold of missing targets ends. */
function nextLookMs(wanted: readonly DNSLoadBalancerEndpoint[], nowMs: number): number | undefined {
  const times = wanted.flatMap(({ metadata, status }) => {
    const remainingMs = Date.parse(status?.validUntil ?? '') - nowMs
    const holdMs = Date.parse(metadata.annotations?.[ORPHANED_ANNOTATION] ?? '') + TARGET_HOLD_MS - nowMs
    return [remainingMs - Math.min(RENEW_MS, remainingMs / 2), holdMs].filter((ms) => ms > 0)
  })
  return times.length === 0 ? undefined : Math.min(...times)
}
