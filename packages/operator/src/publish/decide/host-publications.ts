/**
 * Which hosts of a source balance publishes, from the caches, through `publisherOf` (hosts/publisher.ts).
 *
 * A host that publish published before balance had it is handed over: publish's records stay until balance's DNSEndpoint has
 * the name. One watch contains both DNSEndpoints in the order of their writes, so that a plan of records always has one.
 */
import { ageOf, findGrantFault } from '@seamark/dialects'
import { IngressClass, type Informers, NotSynced, type Reader } from '@seamark/kube'
import { Gateway, GatewayClass } from '@seamark/kube/gateway-api'
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { DNSEndpoint, type Endpoint } from '../../api/dns-endpoint.ts'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { hostOf, isPublished, loadBalancerOf, refOf } from '../../hosts/load-balancer.ts'
import { type HostBalancer, type HostPublisher, mayTake, publisherOf, publishesRoots } from '../../hosts/publisher.ts'
import { isRoot, ROOT_FINALIZER, ROOT_UID_LABEL } from '../../hosts/root.ts'
import type { PublishOptions, SourceKind } from '../options.ts'
import { claimKey, type Claimant } from '../sources/host-claim.ts'
import type { Source } from '../sources/source.ts'
import { sourceKindToken } from '../sources/source-reader.ts'

type HostPublication = HostPublisher & {
  /** The oldest load balancer with the host. */
  readonly loadBalancer?: Immutable<DNSLoadBalancer>
  /** Of balance's hosts: its DNSEndpoint has the name. */
  readonly isInPlace: boolean
}

/** By `claimKey`; a host without an entry is published by publish. */
export type HostPublications = ReadonlyMap<string, HostPublication>

export const NO_PUBLICATIONS: HostPublications = new Map()

/** Balance publishes the name, and its DNSEndpoint has it. */
export function isInPlace(publications: HostPublications, dnsName: string): boolean {
  const publication = publications.get(claimKey(dnsName))
  return publication?.by === 'balance' && publication.isInPlace
}

/** Kinds whose objects can be roots of a fleet. */
const ROOT_KINDS: ReadonlySet<SourceKind> = new Set(['Ingress', 'HTTPRoute', 'Route'])

/** Whether it matters who publishes a host. */
export function readsPublishers({ roots, children }: PublishOptions): boolean {
  return roots !== 'ignored' && children.includes('DNSEndpoint')
}

/** Kinds that are read only to find what balance publishes: without the right to list one, nothing of it is known. */
export function kindsOfPublishers(options: PublishOptions): Kind[] {
  if (!readsPublishers(options)) return []
  const { sources } = options
  return [
    DNSLoadBalancer,
    ...(sources.includes('Ingress') ? [IngressClass] : []),
    ...(sources.includes('HTTPRoute') ? [Gateway, GatewayClass] : []),
  ]
}

type Caches = Pick<Informers, 'get' | 'list' | 'by' | 'index'>

export interface PublicationReader {
  of(source: Source, object: Immutable<Obj>): HostPublications
  /** Whether the load balancer may publish a host that the source holds. */
  mayTake(loadBalancer: Immutable<DNSLoadBalancer>, source: Source, object: Immutable<Obj>): boolean
  /** A root of a fleet of this process. */
  isOfFleetHere(source: Source, object: Immutable<Obj>): boolean
  /** A load balancer names the host. */
  isNamed(host: string): boolean
}

const PUBLISH_ALONE: PublicationReader = {
  of: () => NO_PUBLICATIONS,
  mayTake: () => true,
  isOfFleetHere: () => false,
  isNamed: () => false,
}

/** @param claimants the sources that name a host */
export function createHostPublications(
  caches: Caches,
  options: PublishOptions,
  claimants: (host: string) => readonly Claimant[],
): PublicationReader {
  const { roots, parts, grants } = options
  if (roots === 'ignored' || !readsPublishers(options)) return PUBLISH_ALONE
  const balancers = caches.index(DNSLoadBalancer, 'publish-balanced-host', (object) => [hostOf(object)])
  const records = caches.index(DNSEndpoint, 'publish-balanced-record', (object) =>
    loadBalancerOf(object) === undefined ? [] : namesOf(object),
  )
  const reader = tolerant(caches)
  const toPublish = publishesRoots(roots, parts)

  function isOfFleet({ kind }: Source, object: Immutable<Obj>): boolean {
    if (!ROOT_KINDS.has(kind)) return false
    // A fleet of another process has it, whatever that one selects.
    if (object.metadata.finalizers?.includes(ROOT_FINALIZER) === true) return true
    return isRoot({ kind: sourceKindToken(kind) }, object, parts.fleet?.roots ?? 'class', reader)
  }

  function balancersOf(host: string): Immutable<DNSLoadBalancer>[] {
    return reader
      .by(balancers, host)
      .filter((each) => isPublished(each, parts.balance))
      .filter(({ metadata }) => findGrantFault(grants, metadata.namespace ?? '', host) === undefined)
  }

  const factsOf = (source: Source, object: Immutable<Obj>) => ({
    source,
    isRoot: isOfFleet(source, object),
    publishesRoots: toPublish,
  })

  function publicationsOf(source: Source, object: Immutable<Obj>): HostPublications {
    if (source.asks === 'tls') return NO_PUBLICATIONS
    const facts = factsOf(source, object)
    const publications = new Map<string, HostPublication>()
    for (const host of source.hosts.map(claimKey)) {
      const found = new Map(balancersOf(host).map((each) => [describe(each, object, claimants), each]))
      const publisher = publisherOf({ ...facts, balancers: [...found.keys()] })
      const other = publisher.by === 'balance' ? publisher.holder : publisher.rival
      if (publisher.by === 'publish' && other === undefined) continue
      const loadBalancer = other === undefined ? undefined : found.get(other)
      const isInPlace = loadBalancer !== undefined && hasRecords(loadBalancer, host)
      publications.set(host, { ...publisher, isInPlace, ...(loadBalancer !== undefined && { loadBalancer }) })
    }
    return publications
  }

  return {
    of: publicationsOf,
    mayTake: (loadBalancer, source, object) =>
      mayTake(describe(loadBalancer, object, claimants), factsOf(source, object)),
    isOfFleetHere: (source, object) => parts.fleet !== undefined && isOfFleet(source, object),
    isNamed: (host) => balancersOf(claimKey(host)).length > 0,
  }

  function hasRecords({ metadata }: Immutable<DNSLoadBalancer>, host: string): boolean {
    return caches
      .by(records, host)
      .some(
        (object) =>
          object.metadata.namespace === metadata.namespace &&
          loadBalancerOf(object) === metadata.uid &&
          endpointsOf(object, host).some(({ targets }) => targets.length > 0),
      )
  }
}

/** A load balancer that was generated for a root is as old as the root. */
function describe(
  loadBalancer: Immutable<DNSLoadBalancer>,
  object: Immutable<Obj>,
  claimants: (host: string) => readonly Claimant[],
): HostBalancer {
  const { namespace, labels } = loadBalancer.metadata
  const ref = refOf(object)
  const isNamed = ref !== undefined && !('invalid' in ref) && `${ref.namespace}/${ref.name}` === keyOf(loadBalancer)
  const root = claimants(hostOf(loadBalancer)).find(
    (each) => each.namespace === namespace && each.uid === labels?.[ROOT_UID_LABEL],
  )
  return { age: root ?? ageOf(DNSLoadBalancer, loadBalancer), isOfSource: isNamed }
}

/** `claimKey` of each name. */
export function namesOf(object: Immutable<DNSEndpoint>): string[] {
  return [...new Set((object.spec?.endpoints ?? []).map(({ dnsName }) => claimKey(dnsName)))]
}

/** The endpoints of the host in a DNSEndpoint. */
function endpointsOf(object: Immutable<DNSEndpoint>, host: string): Immutable<Endpoint>[] {
  return (object.spec?.endpoints ?? []).filter(({ dnsName }) => claimKey(dnsName) === host)
}

/** A kind that the server does not let this process list is empty. */
function tolerant(caches: Caches): Reader {
  const orEmpty = <T>(read: () => T, empty: T): T => {
    try {
      return read()
    } catch (error) {
      if (error instanceof NotSynced) return empty
      throw error
    }
  }
  return {
    get: (kind, key) => orEmpty(() => caches.get(kind, key), undefined),
    list: (kind, namespace) => orEmpty(() => caches.list(kind, namespace), []),
    by: (index, value) => orEmpty(() => caches.by(index, value), []),
  }
}
