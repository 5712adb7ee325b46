/** The DNSEndpoint of a cluster's wildcard: name, targets and owner. */
import { isDeepStrictEqual } from 'node:util'
import { apiVersionOf, type Immutable } from '@seamark/kube/object'
import { DNSEndpoint, type Endpoint } from '../api/dns-endpoint.ts'
import { CLUSTER_LABEL } from '../clusters/registry.ts'
import { findHostFault, normalizeHost } from '@seamark/dialects'
import type { WildcardOptions } from './options.ts'

export const OWNED_BY = 'seamark.io/owned-by'
/** `records` writes a wildcard only with an approval, which the configuration of the zone implies. */
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
  owner: WildcardOwner,
  name: string,
  targets: { readonly v4: readonly string[]; readonly v6: readonly string[] },
  options: Pick<WildcardOptions, 'namePrefix' | 'ttlSeconds' | 'apex'>,
): DNSEndpoint {
  const names = options.apex ? [name, name.slice(2)] : [name]
  return {
    apiVersion: apiVersionOf(DNSEndpoint),
    kind: DNSEndpoint.kind,
    metadata: {
      name: objectName(owner, options),
      namespace: owner.namespace,
      labels: { [CLUSTER_LABEL]: owner.cluster },
      annotations: { [OWNED_BY]: `Cluster/${owner.namespace}/${owner.cluster}`, [APPROVE]: 'true' },
      ...(owner.secret !== undefined && {
        ownerReferences: [
          {
            apiVersion: 'v1',
            kind: 'Secret',
            name: owner.secret.name,
            uid: owner.secret.uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      }),
    },
    spec: { endpoints: names.flatMap((dnsName) => endpointsFor(dnsName, targets, options.ttlSeconds)) },
  }
}

/** Would an apply change nothing? The object is ours alone, so the desired fields are all there is to compare. */
export function isUpToDate(live: Immutable<DNSEndpoint> | undefined, desired: DNSEndpoint): boolean {
  if (live === undefined || !isDeepStrictEqual(live.spec, desired.spec)) return false
  const { labels = {}, annotations = {}, ownerReferences = [] } = live.metadata
  const includes = (map: Readonly<Record<string, string>>, part: Readonly<Record<string, string>> = {}): boolean =>
    Object.entries(part).every(([key, value]) => map[key] === value)
  return (
    includes(labels, desired.metadata.labels) &&
    includes(annotations, desired.metadata.annotations) &&
    (desired.metadata.ownerReferences ?? []).every((reference) =>
      ownerReferences.some((item) => isDeepStrictEqual(item, reference)),
    )
  )
}

export function objectName(
  owner: Pick<WildcardOwner, 'cluster'>,
  options: Pick<WildcardOptions, 'namePrefix'>,
): string {
  return `${options.namePrefix}${normalizeHost(owner.cluster)}-wildcard`
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
