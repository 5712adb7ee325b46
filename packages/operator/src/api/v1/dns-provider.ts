/** `DNSProvider`, `loadbalancer.gardener.cloud/v1`: as v1beta1, with the values that a provider can have in the schema. */
import { defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { LOAD_BALANCER_GROUP } from '../dns-load-balancer.ts'
import { DNSProviderStatus } from '../dns-provider.ts'

export const DNSProviderSpecV1 = z.object({
  type: z.string().min(1).describe('Provider type, e.g. aws or rfc2136.'),
  scope: z
    .object({
      type: z
        .enum(['Cluster', 'Namespace', 'Selected'])
        .optional()
        .describe('Which namespaces may use the provider. Default Cluster.'),
      namespaces: z.array(z.string()).optional().describe('For Selected: the namespaces that may use the provider.'),
    })
    .optional(),
  secretRef: z
    .object({
      name: z.string().optional(),
      namespace: z.string().optional().describe("Default: the provider's namespace."),
    })
    .optional(),
})

export const DNSProviderV1 = defineKind({
  group: LOAD_BALANCER_GROUP,
  version: 'v1',
  kind: 'DNSProvider',
  plural: 'dnsproviders',
  shortNames: ['dnsprov'],
  namespaced: true,
  description: 'Credentials of a DNS service, and the namespaces that may use it.',
  spec: DNSProviderSpecV1,
  status: DNSProviderStatus,
  printerColumns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Status', type: 'string', jsonPath: '.status.state' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
})
export type DNSProviderV1 = ObjectOf<typeof DNSProviderV1>
