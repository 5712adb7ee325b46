/** The bands of the flow of one host: its answers, the cluster, gateway and Services behind each, and their state. Pure. */
import { isIP } from 'node:net'
import { findCondition, type Immutable } from '@seamark/kube'
import { type CachedHost, type DNSLoadBalancerEndpoint, LEAF_CLUSTER_LABEL, type LeafIngress } from '@seamark/operator'
import type { AnswerView } from '../api/state.ts'

export interface BandFacts {
  readonly host: CachedHost
  /** What clients get now: value → share. */
  readonly shares: ReadonlyMap<string, number>
  readonly isHeld: boolean
  /** Of an address that no leaf of the host has; undefined: unknown. */
  readonly clusterOf: (address: string) => string | undefined
  /** ms since the epoch. */
  readonly nowMs: number
}

export function bandsOf({ host, shares, isHeld, clusterOf, nowMs }: BandFacts): AnswerView[] {
  const { endpoints, leaves, ttl = 0, by, facts } = host
  const bands = new Map<string, AnswerView>()
  for (const endpoint of endpoints) {
    const address = targetOf(endpoint)
    if (address === '') continue
    const share = rounded(shares.get(address) ?? 0)
    const cluster = endpoint.metadata.labels?.[LEAF_CLUSTER_LABEL] ?? clusterOf(address)
    const leaf = leaves.find(({ spec }) => spec.cluster === cluster)
    const cachedUntilMs = share > 0 ? undefined : cachedUntil(endpoint, ttl, nowMs)
    bands.set(address, {
      address,
      share,
      isHeld,
      state:
        cachedUntilMs !== undefined
          ? 'cached'
          : share > 0
            ? isDraining(endpoint, leaf)
              ? 'draining'
              : 'answered'
            : endpoint.status?.healthy === false
              ? 'unhealthy'
              : 'withdrawn',
      ...(cachedUntilMs !== undefined && { cachedUntil: new Date(cachedUntilMs).toISOString() }),
      ...(cluster !== undefined && { cluster }),
      ...backendOf(leaf),
    })
  }
  // What a name of an endpoint resolves to is not known here.
  const hasNames = endpoints.some((endpoint) => isIP(targetOf(endpoint)) === 0)
  const wanted = new Set([...facts.targets, ...(facts.endpoint?.targets ?? [])])
  for (const [address, share] of shares) {
    if (bands.has(address) || share === 0) continue
    const isOurs = by === 'fleet' || by === 'balance' ? hasNames : wanted.size === 0 || wanted.has(address)
    const state = isOurs ? 'answered' : 'foreign'
    bands.set(address, { address, share: rounded(share), state, isHeld, ...named(clusterOf(address)) })
  }
  for (const address of wanted)
    if (!bands.has(address))
      bands.set(address, { address, share: 0, state: 'withdrawn', isHeld, ...named(clusterOf(address)) })
  return [...bands.values()].sort((a, b) => (a.address < b.address ? -1 : 1))
}

function named(cluster: string | undefined): Pick<AnswerView, 'cluster'> {
  return cluster === undefined ? {} : { cluster }
}

/** When the next band changes by time alone, ms since the epoch. */
export function nextChangeMs(bands: readonly AnswerView[]): number {
  return Math.min(...bands.flatMap(({ cachedUntil: until }) => (until === undefined ? [] : [Date.parse(until)])))
}

export function targetOf({ spec }: Immutable<DNSLoadBalancerEndpoint>): string {
  return (spec.cname ?? spec.ipaddress ?? '').replace(/\.$/, '')
}

function isDraining({ spec }: Immutable<DNSLoadBalancerEndpoint>, leaf: Immutable<LeafIngress> | undefined): boolean {
  return spec.drain === true || leaf?.spec.lifecycle === 'Draining' || leaf?.status?.phase === 'Draining'
}

/** It was withdrawn less than a TTL ago: a resolver that asked just before may still give it. */
function cachedUntil({ status }: Immutable<DNSLoadBalancerEndpoint>, ttl: number, nowMs: number): number | undefined {
  const active = findCondition(status?.conditions, 'Active')
  if (active?.status !== 'False' || active.lastTransitionTime === undefined) return undefined
  const untilMs = Date.parse(active.lastTransitionTime) + ttl * 1_000
  return untilMs > nowMs && wasPublished(active.reason) ? untilMs : undefined
}

/** An endpoint that never passed its health check was never published. */
function wasPublished(reason: string | undefined): boolean {
  return reason !== 'EndpointUnproven' && reason !== 'EndpointInvalid'
}

interface Manifest {
  readonly kind?: unknown
  readonly spec?: unknown
}

interface RouteSpec {
  readonly ingressClassName?: string
  readonly parentRefs?: readonly { readonly name?: string }[]
  readonly rules?: readonly {
    readonly http?: { readonly paths?: readonly { readonly backend?: { readonly service?: ServiceRef } }[] }
    readonly backendRefs?: readonly ServiceRef[]
  }[]
  readonly to?: { readonly name?: string }
}

interface ServiceRef {
  readonly name?: string
  readonly port?: number | { readonly number?: number; readonly name?: string }
}

/** The ingress class or Gateway that takes the requests of a leaf, and its Services. */
function backendOf(leaf: Immutable<LeafIngress> | undefined): Pick<AnswerView, 'gateway' | 'services'> {
  const route = (leaf?.spec.manifests as readonly Manifest[] | undefined)?.find(({ kind }) =>
    ['Ingress', 'HTTPRoute', 'Route'].includes(String(kind)),
  )
  if (leaf === undefined || route === undefined) return {}
  const spec = (route.spec ?? {}) as RouteSpec
  const namespace = leaf.metadata.namespace ?? ''
  const refs = [
    ...(spec.rules ?? []).flatMap(({ http, backendRefs = [] }) => [
      ...(http?.paths ?? []).flatMap(({ backend }) => backend?.service ?? []),
      ...backendRefs,
    ]),
    ...(spec.to === undefined ? [] : [spec.to as ServiceRef]),
  ]
  const services = [...new Set(refs.map((ref) => serviceText(namespace, ref)))]
  const gateway = spec.ingressClassName ?? spec.parentRefs?.[0]?.name
  return { ...(gateway !== undefined && { gateway }), ...(services.length > 0 && { services }) }
}

function serviceText(namespace: string, { name = '', port }: ServiceRef): string {
  const shown = typeof port === 'object' ? (port.number ?? port.name) : port
  return `${namespace}/${name}${shown === undefined ? '' : `:${shown}`}`
}

/** Small changes of rounding are no changes. */
export function rounded(share: number): number {
  return Math.round(share * 10_000) / 10_000
}
