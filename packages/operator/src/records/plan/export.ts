/** Exports our records as a DNSEndpoint for ExternalDNS or as a zone file. Pure. */
import { stringify } from 'yaml'
import { toEndpoint } from '../../providers/webhook/webhook-endpoint.ts'
import { type Owner, ownershipOf } from './ownership.ts'
import { compareText, type ObservedRRset, type RRset } from '../../rrset/rrset.ts'
import type { ZoneView } from './zone-view.ts'

/** Our own sets; with `isWhole`, every set that is readable as a plain set. */
export function exportedSets(view: ZoneView, owner: Owner, types: readonly string[], isWhole: boolean): RRset[] {
  const isOurs = (set: ObservedRRset) =>
    types.includes(set.type) && ownershipOf(view, set.name, set.type, owner).kind === 'ours'
  return view.sets
    .filter((set) => set.opaque === undefined && (isWhole || isOurs(set)))
    .toSorted((a, b) => compareText(a.name, b.name) || compareText(a.type, b.type))
}

/** One DNSEndpoint for the zone, in the given namespace. */
export function exportDnsEndpoint(zone: string, sets: readonly RRset[], namespace: string): string {
  return stringify({
    apiVersion: 'externaldns.k8s.io/v1alpha1',
    kind: 'DNSEndpoint',
    metadata: { name: `export-${zone.slice(0, -1).replaceAll('.', '-')}`, namespace },
    spec: {
      endpoints: sets.map((set) => {
        const { dnsName, recordType, recordTTL, targets } = toEndpoint(set)
        return { dnsName, recordType, recordTTL, targets }
      }),
    },
  })
}
