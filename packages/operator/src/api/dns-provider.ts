/**
 * `DNSProvider`, `loadbalancer.gardener.cloud/v1beta1`: credentials of a DNS service, and the namespaces that may use it.
 * An absent scope means `Cluster`; `namespaces` counts for `Selected` only.
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { LOAD_BALANCER_GROUP } from './dns-load-balancer.ts'

export const ProviderScope = z.object({
  type: z.string().optional().describe('Cluster, Namespace or Selected. Default Cluster.'),
  namespaces: z.array(z.string()).optional().describe('For Selected: the namespaces that may use the provider.'),
})

export const DNSProviderSpec = z.object({
  type: z.string().optional().describe('Provider type, e.g. aws or rfc2136.'),
  scope: ProviderScope.optional(),
  secretRef: z
    .object({
      name: z.string().optional(),
      namespace: z.string().optional().describe("Default: the provider's namespace."),
    })
    .optional(),
})

const DNSProviderStatus = z.object({
  state: z.string().optional().describe('Active or Error.'),
  message: z.string().optional(),
  observedGeneration: z.int().optional(),
  conditions: conditionsSchema.optional(),
})

/** What all versions have in common. */
export const DNS_PROVIDER = {
  group: LOAD_BALANCER_GROUP,
  kind: 'DNSProvider',
  plural: 'dnsproviders',
  shortNames: ['dnsprov'],
  namespaced: true,
  description: 'Credentials of a DNS service, and the namespaces that may use it.',
  status: DNSProviderStatus,
  printerColumns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Status', type: 'string', jsonPath: '.status.state' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
} as const

export const DNSProvider = defineKind({ ...DNS_PROVIDER, version: 'v1beta1', spec: DNSProviderSpec })
export type DNSProvider = ObjectOf<typeof DNSProvider>
