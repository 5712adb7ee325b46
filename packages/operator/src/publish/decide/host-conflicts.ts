/** Hosts that a source and a load balancer of another namespace name: what each of the two is told. Pure. */
import type { Immutable } from '@seamark/kube/object'
import type { DNSLoadBalancer } from '../../api/dns-load-balancer.ts'
import { type Finding, warning } from '../../finding.ts'
import type { Source } from '../sources/source.ts'
import type { HostPublications } from './host-publications.ts'

export interface HostConflict {
  readonly loadBalancer: Immutable<DNSLoadBalancer>
  readonly ofLoadBalancer: Finding
  /** Undefined: the decision about the host has it. */
  readonly ofSource?: Finding
}

export function conflictsOf(source: Source, publications: HostPublications): HostConflict[] {
  const self = `${source.kind} ${source.namespace}/${source.name}`
  return [...publications].flatMap(([host, publication]): HostConflict[] => {
    const { loadBalancer } = publication
    if (loadBalancer === undefined) return []
    const { namespace, name } = loadBalancer.metadata
    const other = `DNSLoadBalancer ${namespace}/${name}`
    if (publication.by === 'balance') {
      if (!publication.isConflict) return []
      const message = `${self} names host ${host}, too; it belongs to this object, and publish writes no record for the other`
      return [{ loadBalancer, ofLoadBalancer: warning('HostShared', message) }]
    }
    return [
      {
        loadBalancer,
        ofLoadBalancer: warning('ClaimHeldByOther', `host ${host} belongs to ${self} since ${source.createdAt}`),
        ofSource: warning('HostShared', `${other} names host ${host}, too; it belongs to this object, which is older`),
      },
    ]
  })
}
