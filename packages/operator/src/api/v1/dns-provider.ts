/** `DNSProvider`, `loadbalancer.gardener.cloud/v1`: as v1beta1, with the values that a provider can have in the schema. */
import { defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { DNS_PROVIDER, DNSProviderSpec, ProviderScope } from '../dns-provider.ts'

export const DNSProviderSpecV1 = DNSProviderSpec.extend({
  type: z.string().min(1).describe('Provider type, e.g. aws or rfc2136.'),
  scope: ProviderScope.extend({
    type: z
      .enum(['Cluster', 'Namespace', 'Selected'])
      .optional()
      .describe('Which namespaces may use the provider. Default Cluster.'),
  }).optional(),
})

export const DNSProviderV1 = defineKind({ ...DNS_PROVIDER, version: 'v1', spec: DNSProviderSpecV1 })
export type DNSProviderV1 = ObjectOf<typeof DNSProviderV1>
