/**
 * The endpoints of a load balancer: which are usable targets, which have expired, which lost their load balancer. Pure.
 *
 * An endpoint is deleted only after the start-up grace (source clusters get time to renew what expired while no manager ran), and
 * for a missing load balancer only when that object really does not exist: an invalid one keeps its endpoints.
 */
import { isIP } from 'node:net'
import type { Immutable } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { parseAddress } from '@seamark/dialects'
import type { DNSLoadBalancerEndpoint } from '../../api/dns-load-balancer-endpoint.ts'
import { canonicalName, compareText, isInvalid } from '../../rrset/rrset.ts'

/** After the start, expired endpoints are still used. */
export const STARTUP_GRACE_MS = 3 * 60_000

export type Target =
  | { readonly type: 'A' | 'AAAA'; readonly value: string }
  /** Canonical name, with a trailing dot. */
  | { readonly type: 'CNAME'; readonly value: string }

export interface Candidate {
  readonly key: string
  readonly name: string
  readonly target: Target
  /** As written: messages and status repeat it. */
  readonly host: string
  readonly weight: number
  readonly priority: number
  /** Region, as the region table of the DNS server names it; undefined: everywhere. */
  readonly geo?: string
  /** `drain` of the spec. */
  readonly isDraining: boolean
  /** The last decision left it out: if its address is in the records, another endpoint put it there. */
  readonly wasLeftOut: boolean
}

/** The target of an endpoint; a cname wins over an address. Undefined: neither is usable. */
export function targetOf({ spec }: Immutable<DNSLoadBalancerEndpoint>): Target | undefined {
  const cname = spec.cname ?? ''
  if (cname !== '') {
    const name = canonicalName(cname)
    return isInvalid(name) || isIP(cname) !== 0 ? undefined : { type: 'CNAME', value: name }
  }
  const address = parseAddress(spec.ipaddress ?? '')
  if (address === undefined) return undefined
  return { type: address.family === 4 ? 'A' : 'AAAA', value: address.text }
}

export function candidateOf(endpoint: Immutable<DNSLoadBalancerEndpoint>): Candidate | undefined {
  const target = targetOf(endpoint)
  if (target === undefined) return undefined
  const { spec } = endpoint
  return {
    key: keyOf(endpoint),
    name: endpoint.metadata.name ?? '',
    target,
    host: target.type === 'CNAME' ? (spec.cname ?? '') : (spec.ipaddress ?? ''),
    weight: spec.weight ?? 1,
    priority: spec.priority ?? 0,
    ...(spec.geo !== undefined && spec.geo !== '' && { geo: spec.geo }),
    isDraining: spec.drain === true,
    wasLeftOut: endpoint.status?.active === false,
  }
}

/** Preference among equals: priority, weight, name. The same on every replica. */
export function comparePreference(a: Candidate, b: Candidate): number {
  return a.priority - b.priority || b.weight - a.weight || compareText(a.key, b.key)
}

export type EndpointFate =
  | { readonly fate: 'use' }
  /** Expired, but still used during the start-up grace, for this long. */
  | { readonly fate: 'grace'; readonly forMs: number }
  | { readonly fate: 'delete'; readonly reason: 'EndpointExpired' | 'LoadBalancerMissing' }
  /** No load balancer yet; hand-written endpoints may come first. */
  | { readonly fate: 'ignore'; readonly reason: 'LoadBalancerMissing' }

export function judgeEndpoint(
  endpoint: Immutable<DNSLoadBalancerEndpoint>,
  loadBalancerExists: boolean,
  startedMs: number,
  nowMs: number,
): EndpointFate {
  const graceMs = Math.max(0, startedMs + STARTUP_GRACE_MS - nowMs)
  const validUntilMs = Date.parse(endpoint.status?.validUntil ?? '')
  if (!Number.isNaN(validUntilMs) && validUntilMs <= nowMs) {
    if (graceMs === 0) return { fate: 'delete', reason: 'EndpointExpired' }
    return loadBalancerExists ? { fate: 'grace', forMs: graceMs } : { fate: 'ignore', reason: 'LoadBalancerMissing' }
  }
  if (loadBalancerExists) return { fate: 'use' }
  const isLeased = !Number.isNaN(validUntilMs)
  return !isLeased && graceMs === 0
    ? { fate: 'delete', reason: 'LoadBalancerMissing' }
    : { fate: 'ignore', reason: 'LoadBalancerMissing' }
}
