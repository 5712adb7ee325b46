/** Hosts that a source and another object name: what the two are told beside the decision. Pure. */
import { apiVersionOf, type Immutable, type Kind, type Obj } from '@seamark/kube/object'
import { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { type Finding, warning } from '../../finding.ts'
import type { Claim, Claimant } from '../sources/host-claim.ts'
import { claimKey, isConflict } from '../sources/host-claim.ts'
import type { Source } from '../sources/source.ts'
import { sourceKindToken } from '../sources/source-reader.ts'
import type { HostPublications } from './host-publications.ts'

/** One Event. */
export interface HostConflict {
  /** With `apiVersion` and `kind`; undefined: the source itself. */
  readonly about?: Immutable<Obj>
  readonly finding: Finding
}

export function conflictsOf(
  source: Source,
  publications: HostPublications,
  claims: ReadonlyMap<string, Claim>,
  find: (other: Claimant) => Immutable<Obj> | undefined,
): HostConflict[] {
  return [...conflictsWithBalancers(source, publications), ...conflictsWithSources(source, claims, find)]
}

function conflictsWithBalancers(source: Source, publications: HostPublications): HostConflict[] {
  const self = describe(source)
  return [...publications].flatMap(([host, publication]): HostConflict[] => {
    const { loadBalancer } = publication
    if (loadBalancer === undefined) return []
    const { namespace, name } = loadBalancer.metadata
    const other = `DNSLoadBalancer ${namespace}/${name}`
    const about = typed(DNSLoadBalancer, loadBalancer)
    if (publication.by === 'balance') {
      if (!publication.isConflict) return []
      const message = `${self} names host ${host}, too; it belongs to this object, and publish writes no record for the other`
      return [{ about, finding: warning('HostShared', message) }]
    }
    return [
      { about, finding: warning('ClaimHeldByOther', `host ${host} belongs to ${self} since ${source.createdAt}`) },
      { finding: warning('HostShared', `${other} names host ${host}, too; it belongs to this object, which is older`) },
    ]
  })
}

/** Of the source that lost its claims: the decision about it says so. One Event for each holder. */
function conflictsWithSources(
  source: Source,
  claims: ReadonlyMap<string, Claim>,
  find: (other: Claimant) => Immutable<Obj> | undefined,
): HostConflict[] {
  const lost = new Map<string, { readonly holder: Claimant; readonly hosts: string[] }>()
  for (const host of new Set(source.hosts.map(claimKey))) {
    const claim = claims.get(host)
    if (claim?.state !== 'lost' || !isConflict(source, claim.to)) continue
    const entry = lost.get(claim.to.uid) ?? { holder: claim.to, hosts: [] }
    entry.hosts.push(host)
    lost.set(claim.to.uid, entry)
  }
  return [...lost.values()].flatMap(({ holder, hosts }): HostConflict[] => {
    const object = find(holder)
    if (object === undefined) return []
    const names = `${hosts.length === 1 ? 'host' : 'hosts'} ${hosts.sort().join(', ')}`
    const message = `${describe(source)} names ${names}, too; this object has it, which is older`
    return [{ about: typed(sourceKindToken(holder.kind), object), finding: warning('HostShared', message) }]
  })
}

function describe({ kind, namespace, name }: Claimant): string {
  return `${kind} ${namespace}/${name}`
}

function typed(kind: Kind, object: Immutable<Obj>): Immutable<Obj> {
  return { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object }
}
