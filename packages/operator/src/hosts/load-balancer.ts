/**
 * How a DNSLoadBalancer names its host, its sources and its records. Beneath balance, which publishes it, and publish and
 * records, which leave the host to it. Pure.
 */
import { normalizeHost } from '@seamark/dialects'
import type { Immutable, Obj, OwnerReference } from '@seamark/kube/object'
import { DNSLoadBalancer } from '../api/dns-load-balancer.ts'

/** On a Service, an Ingress or a Gateway: the load balancer whose endpoints its addresses are. */
export const LOAD_BALANCER_ANNOTATION = 'loadbalancer.gardener.cloud/dnsloadbalancer'

export interface LoadBalancerRef {
  readonly namespace: string
  readonly name: string
}

/** `name` or `namespace/name`; undefined when there is no annotation. */
export function refOf(object: Immutable<Obj>): LoadBalancerRef | { readonly invalid: string } | undefined {
  const text = object.metadata.annotations?.[LOAD_BALANCER_ANNOTATION]
  if (text === undefined || text === '') return undefined
  const parts = text.split('/')
  const [first = '', second] = parts
  if (parts.length > 2 || first === '' || second === '') return { invalid: `invalid dns loadbalancer ref '${text}'` }
  return second === undefined
    ? { namespace: object.metadata.namespace ?? '', name: first }
    : { namespace: first, name: second }
}

/** '' : it names none. */
export function hostOf({ spec }: Immutable<DNSLoadBalancer>): string {
  return normalizeHost(spec.DNSName ?? spec.dnsname ?? '')
}

/**
 * Whether a controller publishes it: balance in this process, or one that wrote a status. An invalid one is published by
 * none, and one that is being deleted claims nothing. Balance of this process decides claims by the rule of publisher.ts; of
 * another one the status is all that is known.
 */
export function isPublished({ metadata, status }: Immutable<DNSLoadBalancer>, isBalanceHere: boolean): boolean {
  if (metadata.deletionTimestamp !== undefined) return false
  const has = (wanted: readonly string[]): boolean =>
    status?.conditions?.some(({ reason }) => wanted.includes(reason)) === true
  if (has(['LoadBalancerInvalid'])) return false
  return isBalanceHere || ((status?.state ?? '') !== '' && !has(LOST_CLAIMS))
}

const LOST_CLAIMS: readonly string[] = ['NameClaimed', 'NameNotGranted', 'ClaimHeldByOther', 'ClaimPending']

interface Owned {
  readonly metadata: {
    readonly ownerReferences?: readonly Pick<OwnerReference, 'apiVersion' | 'kind' | 'uid' | 'controller'>[]
  }
}

/** UID of the load balancer whose records the DNSEndpoint has. */
export function loadBalancerOf({ metadata }: Owned): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true)
  const isOurs = owner?.kind === DNSLoadBalancer.kind && owner.apiVersion.startsWith(`${DNSLoadBalancer.group}/`)
  return isOurs ? owner.uid : undefined
}
