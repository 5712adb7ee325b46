/**
 * The changes that cause a reconcile of a source: its own, those of its children, load balancers and Gateways, and those of
 * other sources with the same hosts. Predicates and mappings only; the controller uses them.
 */
import { annotationsChanged, anyOf, type Change, labelsChanged, type Service, specChanged } from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import type { DNSEndpoint } from '../api/dns-endpoint.ts'
import type { DNSLoadBalancer } from '../api/dns-load-balancer.ts'
import { hostOf, isPublished, loadBalancerOf } from '../hosts/load-balancer.ts'
import { findOwner } from './decide/child.ts'
import type { SourceDecider } from './decide/source-decision.ts'
import type { SourceKind } from './options.ts'
import { findHeldDns, isObserved } from './report/report.ts'

export function isSourceChange(kind: SourceKind): (change: Change<Obj>) => boolean {
  // The addresses of these kinds are in their status.
  const readsStatus = kind !== 'HTTPProxy' && kind !== 'IngressRoute'
  return readsStatus ? () => true : anyOf(specChanged, labelsChanged, annotationsChanged)
}

/**
 * The status of a child and metadata of others cause no reconcile. One that is added and not written by this process was omitted by an
 * earlier list, or another process made it.
 */
export function isChildChange(change: Change<Obj>): boolean {
  return change.type !== 'updated' || specChanged(change) || findOwner(change.old) !== findOwner(change.object)
}

/** Records of a child became held or are no longer held: the condition of the source contains this. */
export function isHeldDnsChange(change: Change<Obj>): boolean {
  if (change.type !== 'updated') return false
  if (isObserved(change.old) !== isObserved(change.object)) return true
  const [before, after] = [findHeldDns([{ object: change.old }]), findHeldDns([{ object: change.object }])]
  return before?.reason !== after?.reason || before?.message !== after?.message
}

export function isAddressChange(change: Change<Service>): boolean {
  if (change.type !== 'updated') return true
  return (
    JSON.stringify(change.old.status?.loadBalancer?.ingress) !==
    JSON.stringify(change.object.status?.loadBalancer?.ingress)
  )
}

export function keysOfOwner(object: Immutable<Obj>, kind: SourceKind): string[] {
  const owner = findOwner(object)
  return owner?.startsWith(`${kind}/`) === true ? [owner.slice(kind.length + 1)] : []
}

/** Sources of `kind` that name a host of the changed object. */
export function sourcesWithSameHost(
  { sources }: SourceDecider,
  changed: SourceKind,
  object: Immutable<Obj>,
  kind: SourceKind,
): string[] {
  const hosts = sources.read(changed, object).hosts
  const rivals = hosts.flatMap((host) => sources.claimants(host))
  return rivals
    .filter((rival) => rival.kind === kind && rival.uid !== object.metadata.uid)
    .map((rival) => `${rival.namespace}/${rival.name}`)
}

/** Sources of `kind` that name one of the hosts. */
export function sourcesNaming({ sources }: SourceDecider, hosts: readonly string[], kind: SourceKind): string[] {
  const found = hosts.flatMap((host) => sources.claimants(host)).filter((source) => source.kind === kind)
  return [...new Set(found.map(({ namespace, name }) => `${namespace}/${name}`))]
}

/** Which host a load balancer has, or whether it is published; its health changes nothing. */
export function isPublicationChange(isBalanceHere: boolean): (change: Change<DNSLoadBalancer>) => boolean {
  return (change) =>
    change.type !== 'updated' ||
    hostOf(change.old) !== hostOf(change.object) ||
    isPublished(change.old, isBalanceHere) !== isPublished(change.object, isBalanceHere)
}

/** The records of a load balancer. */
export function isBalancedRecordChange(change: Change<DNSEndpoint>): boolean {
  return loadBalancerOf(change.object) !== undefined && (change.type !== 'updated' || specChanged(change))
}
