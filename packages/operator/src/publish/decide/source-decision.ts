/**
 * Observe and decide for one source: facts from the caches, through `decide` and `planWrites`. Synchronous and without
 * effects, so the controller, `--dry-run`, `--shadow` and `explain` get the same result.
 */
import { type Index, type Informers, Service } from '@seamark/kube'
import { type Immutable, keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { Certificate } from '../../api/certificate.ts'
import { DNSEndpoint, type Endpoint } from '../../api/dns-endpoint.ts'
import type { Finding } from '../../finding.ts'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import { findOwner, ownerKey } from './child.ts'
import type { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { hostOf } from '../../hosts/load-balancer.ts'
import type { HostHolding } from '../../hosts/host-sources.ts'
import { conflictsOf, type HostConflict } from './host-conflicts.ts'
import { createHostPublications, type HostPublications, isInPlace, NO_PUBLICATIONS } from './host-publications.ts'
import { childKinds } from '../child-kinds.ts'
import { decide, type Decision, findingsOf } from './decide.ts'
import { compareAge, findGrantFault } from '@seamark/dialects'
import { certificateNames } from './requested-names.ts'
import { type Claim, type Claimant, claimHost, claimKey } from '../sources/host-claim.ts'
import type { PublishOptions, SourceKind } from '../options.ts'
import { type Child, type Observed, type OwnedChild, type Plan, planCleanup, planWrites } from './plan.ts'
import { targetOf } from '../sources/service-rule.ts'
import { type Source, sourceKey } from '../sources/source.ts'
import { createSourceReader, mayClaim, type SourceReader } from '../sources/source-reader.ts'

export type PublishCaches = Pick<Informers, 'get' | 'list' | 'by' | 'index' | 'ownFields'>

export interface SourceDecision {
  readonly source: Source
  readonly object: Immutable<Obj>
  /** Undefined for a source that is being deleted. */
  readonly decision: Decision | undefined
  readonly plan: Plan
  /** Its existing children. */
  readonly owned: readonly OwnedChild[]
  /** Of decision and plan, in that order. */
  readonly findings: readonly Finding[]
  /** When a pending claim takes effect. */
  readonly againAtMs?: number
  readonly publications: HostPublications
  /** Objects of other namespaces that name a host of the source: each is told of the other. */
  readonly conflicts: readonly HostConflict[]
  /** Not to be acted on while one of these exists and still claims its host. */
  readonly unconfirmed: readonly UnconfirmedOwner[]
}

/**
 * The owner of a published DNSEndpoint with a host that this source claims now. The caches do not contain it: it was deleted,
 * or a list omitted it. A live read decides which (former-owner.ts).
 */
interface UnconfirmedOwner {
  readonly kind: SourceKind
  /** `namespace/name` */
  readonly key: string
  readonly host: string
}

interface FormerHolder {
  readonly source: Source
  readonly object: Immutable<Obj>
  /** Monotonic. */
  readonly atMs: number
}

type SourceName = Pick<Source, 'kind' | 'namespace' | 'name'>

export interface SourceDecider {
  readonly sources: SourceReader
  /** Undefined when the source does not exist. */
  decide(kind: SourceKind, key: string, nowMs: number): SourceDecision | undefined
  /** Records that a source released a host. */
  release(host: string, former: FormerHolder): void
  /** A load balancer names the host. */
  isBalanced(host: string): boolean
  /** The oldest source of the host of a load balancer, or the one that released it, where it keeps the host from that one. */
  holdingOf(loadBalancer: Immutable<DNSLoadBalancer>, nowMs: number): HostHolding | undefined
  /** Owners of existing children of ours that the caches lack: deleted, or omitted by a list. */
  absentOwners(): readonly SourceName[]
  /** Existing children: the base of the share for mass changes. */
  countPublished(): number
}

/** ms that a released host stays reserved before another namespace may claim it. */
const HANDOVER_GRACE_MS = 30_000

export function createSourceDecider(caches: PublishCaches, options: PublishOptions): SourceDecider {
  const sources = createSourceReader(caches, options)
  const kinds = childKinds(options)
  const owned = new Map<Kind<Child>, Index<Child>>(
    kinds.map((kind) => [kind, caches.index(kind, 'publish-owner', ownerOf)]),
  )
  const secrets = options.children.includes('Certificate')
    ? caches.index(Certificate, 'publish-secret', (object) => [
        `${object.metadata.namespace}/${object.spec.secretName}`,
      ])
    : undefined
  const published = options.arbitrateHosts
    ? caches.index(DNSEndpoint, 'publish-child-host', (object) =>
        findOwner(object) === undefined ? [] : hostsOf(object),
      )
    : undefined
  const publications = createHostPublications(caches, options, (host) => sources.claimants(host))
  const released = new Map<string, FormerHolder>()

  function isCached(owner: string): boolean {
    const { kind, key } = parseOwner(owner)
    return options.sources.includes(kind) && sources.find(kind, key) !== undefined
  }

  function observe(source: Source, publications: HostPublications): Observed {
    return {
      find: (kind, key) => caches.get(kind, key),
      owned: findOwned(source),
      isAlive: isCached,
      isBalanced: (dnsName) => isInPlace(publications, dnsName),
      findSecretHolder(namespace, secretName, except) {
        if (secrets === undefined) return undefined
        const holders = caches.by(secrets, `${namespace}/${secretName}`).map((object) => object.metadata.name ?? '')
        return holders.find((name) => name !== except)
      },
    }
  }

  function findOwned(source: Source): OwnedChild[] {
    const found: OwnedChild[] = []
    const owner = ownerKey(source)
    for (const [kind, index] of owned) {
      for (const object of caches.by(index, owner)) {
        const key = `${object.metadata.namespace}/${object.metadata.name}`
        if (caches.ownFields(kind, key, FIELD_MANAGER) !== undefined) found.push({ kind, object })
      }
    }
    return found
  }

  /** For a wildcard: all sources with a host that it covers. Such names are rare, so all sources are scanned. */
  function claimantsOf(name: string): readonly Claimant[] {
    if (!name.startsWith('*.')) return sources.claimants(name)
    const isCovered = (host: string): boolean => claimKey(host).replace(/^[^.]+/, '*') === name
    return sources.all().filter((source) => source.hosts.some(isCovered))
  }

  function claimsOf(source: Source, nowMs: number): { claims: Map<string, Claim>; againAtMs: number | undefined } {
    const claims = new Map<string, Claim>()
    let againAtMs: number | undefined
    const { namespace } = source
    for (const host of [...source.hosts, ...certificateNames(source, options)]) {
      const why = findGrantFault(options.grants, namespace, host)
      if (why !== undefined) claims.set(claimKey(host), { state: 'denied', why })
    }
    if (!options.arbitrateHosts || source.asks === 'tls') return { claims, againAtMs }
    for (const name of certificateNames(source, options)) {
      // A name in a certificate is not a claim: another source with that host keeps it, older or not.
      const other = claimantsOf(name).find((claimant) => claimant.namespace !== namespace)
      if (other !== undefined && !claims.has(claimKey(name))) claims.set(claimKey(name), { state: 'lost', to: other })
    }
    for (const host of source.hosts) {
      const key = claimKey(host)
      if (claims.get(key)?.state === 'denied') continue
      const former = releasedAt(key, nowMs)
      const freed = former === undefined ? undefined : { namespace: former.source.namespace, atMs: former.atMs }
      const claim = claimHost(source, sources.claimants(host), freed, HANDOVER_GRACE_MS, nowMs)
      if (claim.state === 'waiting') againAtMs = Math.min(claim.untilMs, againAtMs ?? claim.untilMs)
      claims.set(key, claim)
    }
    return { claims, againAtMs }
  }

  /** Of the last `HANDOVER_GRACE_MS`. */
  function releasedAt(host: string, nowMs: number): FormerHolder | undefined {
    const former = released.get(host)
    if (former !== undefined && nowMs >= former.atMs + HANDOVER_GRACE_MS) released.delete(host)
    return released.get(host)
  }

  function holdingOf(loadBalancer: Immutable<DNSLoadBalancer>, nowMs: number): HostHolding | undefined {
    const host = hostOf(loadBalancer)
    const [oldest] = sources.claimants(host).toSorted(compareAge)
    const found = oldest === undefined ? undefined : sources.find(oldest.kind, sourceKey(oldest))
    if (found !== undefined && !publications.mayTake(loadBalancer, found.source, found.object))
      return { source: found.source, isInPlace: hasRecords(found.source, host) }
    const former = releasedAt(host, nowMs)
    if (former === undefined || publications.mayTake(loadBalancer, former.source, former.object)) return undefined
    return { source: former.source, isInPlace: false, forMs: former.atMs + HANDOVER_GRACE_MS - nowMs }
  }

  function hasRecords(source: Source, host: string): boolean {
    const isOfHost = ({ dnsName, targets }: Immutable<Endpoint>) => claimKey(dnsName) === host && targets.length > 0
    return findOwned(source).some(
      ({ object: child }) => 'endpoints' in child.spec && child.spec.endpoints.some(isOfHost),
    )
  }

  /** Owners of other children with a host of `source` that won its claim. */
  function unconfirmedOwners(source: Source, claims: ReadonlyMap<string, Claim>): UnconfirmedOwner[] {
    if (published === undefined) return []
    const found: UnconfirmedOwner[] = []
    const own = ownerKey(source)
    for (const [host, { state }] of claims) {
      if (state !== 'won') continue
      for (const child of caches.by(published, host)) {
        const owner = findOwner(child)
        if (owner === undefined || owner === own || isCached(owner)) continue
        const { kind, key } = parseOwner(owner)
        const isOurs = caches.ownFields(DNSEndpoint, keyOf(child), FIELD_MANAGER) !== undefined
        if (isOurs && options.sources.includes(kind)) found.push({ kind, key, host })
      }
    }
    return found
  }

  return {
    sources,
    decide(kind, key, nowMs) {
      const found = sources.find(kind, key)
      if (found === undefined) return undefined
      const { source, object } = found
      const byBalance = source.isDeleting ? NO_PUBLICATIONS : publications.of(source, object)
      const observed = observe(source, byBalance)
      if (source.isDeleting)
        return {
          source,
          object,
          decision: undefined,
          plan: planCleanup(source, observed),
          owned: observed.owned,
          findings: [],
          conflicts: [],
          publications: byBalance,
          unconfirmed: [],
        }
      const { claims, againAtMs } = claimsOf(source, nowMs)
      const target = targetOf(source, options, (name) => caches.get(Service, name))
      const published = observed.owned.flatMap(({ object: child }) =>
        'endpoints' in child.spec ? (structuredClone(child.spec.endpoints) as Endpoint[]) : [],
      )
      const decision = decide({ source, target, claims, publications: byBalance, published }, options)
      const plan = planWrites(source, decision, observed, options)
      // The fleet tells two roots of each other itself.
      const isToldByFleet = publications.isOfFleetHere(source, object)
      const conflicts = conflictsOf(source, byBalance, claims, (other) => {
        const holder = sources.find(other.kind, sourceKey(other))
        if (holder === undefined) return undefined
        return isToldByFleet && publications.isOfFleetHere(holder.source, holder.object) ? undefined : holder.object
      })
      const findings = [...findingsOf(decision), ...plan.findings]
      return {
        source,
        object,
        decision,
        plan,
        owned: observed.owned,
        findings,
        conflicts,
        publications: byBalance,
        unconfirmed: unconfirmedOwners(source, claims),
        ...(againAtMs !== undefined && { againAtMs }),
      }
    },
    absentOwners() {
      const absent = new Map<string, SourceName>()
      for (const kind of kinds) {
        for (const object of caches.list(kind)) {
          const owner = findOwner(object)
          if (owner === undefined || absent.has(owner) || isCached(owner)) continue
          const [sourceKind, namespace = '', name = ''] = owner.split('/') as [SourceKind, string?, string?]
          const isOurs = caches.ownFields(kind, keyOf(object), FIELD_MANAGER) !== undefined
          if (isOurs && options.sources.includes(sourceKind)) absent.set(owner, { kind: sourceKind, namespace, name })
        }
      }
      return [...absent.values()]
    },
    release: (host, former) => void released.set(claimKey(host), former),
    isBalanced: (host) => publications.isNamed(host),
    holdingOf,
    countPublished: () =>
      kinds.reduce(
        (sum, kind) => sum + caches.list(kind).filter((object) => findOwner(object) !== undefined).length,
        0,
      ),
  }
}

function ownerOf(object: Immutable<Child>): readonly string[] {
  const owner = findOwner(object)
  return owner === undefined ? [] : [owner]
}

/** Whether a former owner, as the API server has it, keeps the host: it still claims it and is older than `source`. */
export function keepsHost(owner: Source, source: Source, host: string, options: PublishOptions): boolean {
  const isNamed = owner.hosts.some((other) => claimKey(other) === host)
  return isNamed && mayClaim(owner, host, options) && compareAge(owner, source) < 0
}

/** Of the form `Kind/namespace/name`. */
function parseOwner(owner: string): { kind: SourceKind; key: string } {
  const [kind = '', namespace = '', name = ''] = owner.split('/')
  return { kind: kind as SourceKind, key: `${namespace}/${name}` }
}

function hostsOf(object: Immutable<DNSEndpoint>): string[] {
  return [...new Set((object.spec?.endpoints ?? []).map(({ dnsName }) => claimKey(dnsName)))]
}
