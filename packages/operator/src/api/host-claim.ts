/**
 * `HostClaim`, `seamark.io/v1alpha1`: who owns a host. Cluster-scoped, and named by a hash of the host: its creation is the
 * lock, so that of two roots exactly one gets the host.
 */
import { defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { FLEET_GROUP, FLEET_VERSION } from './cluster.ts'

const HostClaimSpec = z.object({
  host: z.string(),
  namespace: z.string().describe('Every owner is in this namespace.'),
  owners: z.array(z.object({ kind: z.string(), name: z.string(), uid: z.string() })),
})

export const HostClaim = defineKind({
  group: FLEET_GROUP,
  version: FLEET_VERSION,
  kind: 'HostClaim',
  plural: 'hostclaims',
  namespaced: false,
  description: 'Which roots own a host. Generated.',
  spec: HostClaimSpec,
  printerColumns: [
    { name: 'Host', type: 'string', jsonPath: '.spec.host' },
    { name: 'Namespace', type: 'string', jsonPath: '.spec.namespace' },
    { name: 'Owner', type: 'string', jsonPath: '.spec.owners[0].name' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type HostClaim = ObjectOf<typeof HostClaim>
