/** The DNSEndpoint of a cluster's wildcard: name, targets, and whom it belongs to. */
import { isDeepStrictEqual } from 'node:util'
import { apiVersionOf, type Immutable } from '@seamark/kube/object'
import { DNSEndpoint, type Endpoint } from '../api/dns-endpoint.ts'
import { findHostFault, normalizeHost } from '../host-name.ts'
import type { WildcardOptions } from './options.ts'

export const CLUSTER_LABEL = 'seamark.io/cluster'
/** On a cluster's Secret: its own zone. */
export const ZONE_ANNOTATION = 'seamark.io/zone'
export const OWNED_BY = 'seamark.io/owned-by'
/** Records of ours write a wildcard only when somebody approved it: here whoever configured the zone did. */
const APPROVE = 'seamark.io/approve'

export interface WildcardOwner {
  /** Cluster id, as in the label. */
  readonly cluster: string
  readonly namespace: string
  /** The Secret that registered the cluster; none for the local one. */
  readonly secret?: { readonly name: string; readonly uid: string }
}

/** `*.<cluster>.<zone>`, or what is wrong with it. */
export function wildcardName(cluster: string, zone: string): { name: string } | { fault: string } {
  const base = normalizeHost(`${cluster}.${zone}`)
  const name = `*.${base}`
  if (zone === '') return { fault: 'no zone is configured' }
  const fault = findHostFault(name)
  return fault === undefined ? { name } : { fault: `${name} ${fault}` }
}

export function wildcardEndpoint(
  place: WildcardOwner,
  name: string,
  targets: { readonly v4: readonly string[]; readonly v6: readonly string[] },
  options: Pick<WildcardOptions, 'namePrefix' | 'ttlSeconds' | 'apex'>,
): DNSEndpoint {
  const names = options.apex ? [name, name.slice(2)] : [name]
  return {
    apiVersion: apiVersionOf(DNSEndpoint),
    kind: DNSEndpoint.kind,
    metadata: {
      name: objectName(place, options),
      namespace: place.namespace,
      labels: { [CLUSTER_LABEL]: place.cluster },
      annotations: { [OWNED_BY]: `Cluster/${place.namespace}/${place.cluster}`, [APPROVE]: 'true' },
      ...(place.secret !== undefined && {
        ownerReferences: [
          {
            apiVersion: 'v1',
            kind: 'Secret',
            name: place.secret.name,
            uid: place.secret.uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      }),
    },
    spec: { endpoints: names.flatMap((dnsName) => endpointsFor(dnsName, targets, options.ttlSeconds)) },
  }
}

/** Would an apply change nothing? The object is ours alone, so what we want of it is all there is to compare. */
export function isAsWanted(live: Immutable<DNSEndpoint> | undefined, want: DNSEndpoint): boolean {
  if (live === undefined || !isDeepStrictEqual(live.spec, want.spec)) return false
  const { labels = {}, annotations = {}, ownerReferences = [] } = live.metadata
  const holds = (map: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>> = {}): boolean =>
    Object.entries(wanted).every(([key, value]) => map[key] === value)
  return (
    holds(labels, want.metadata.labels) &&
    holds(annotations, want.metadata.annotations) &&
    (want.metadata.ownerReferences ?? []).every((owner) =>
      ownerReferences.some((item) => isDeepStrictEqual(item, owner)),
    )
  )
}

export function objectName(
  place: Pick<WildcardOwner, 'cluster'>,
  options: Pick<WildcardOptions, 'namePrefix'>,
): string {
  return `${options.namePrefix}${normalizeHost(place.cluster)}-wildcard`
}

function endpointsFor(
  dnsName: string,
  targets: { v4: readonly string[]; v6: readonly string[] },
  recordTTL: number,
): Endpoint[] {
  const endpoints: Endpoint[] = []
  if (targets.v4.length > 0) endpoints.push({ dnsName, recordType: 'A', recordTTL, targets: [...targets.v4] })
  if (targets.v6.length > 0) endpoints.push({ dnsName, recordType: 'AAAA', recordTTL, targets: [...targets.v6] })
  return endpoints
}
