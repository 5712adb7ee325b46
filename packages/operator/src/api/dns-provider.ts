/**
 * `DNSProvider`, `loadbalancer.gardener.cloud/v1beta1`: credentials of a DNS service, and the namespaces that may use it.
 * An absent scope means `Cluster`; `namespaces` counts for `Selected` only.
 */
import { kind, type Obj } from '@seamark/kube/object'
import { z } from 'zod'
import { conditionList, LOAD_BALANCER_GROUP } from './dns-load-balancer.ts'

export const DNSProviderSpec = z.object({
  type: z.string().optional().describe('Provider type, e.g. aws or rfc2136.'),
  scope: z
    .object({
      type: z.string().optional().describe('Cluster, Namespace or Selected. Default Cluster.'),
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

export const DNSProviderStatus = z.object({
  state: z.string().optional().describe('Active or Error.'),
  message: z.string().optional(),
  observedGeneration: z.int().optional(),
  conditions: conditionList.optional(),
})

export type DNSProviderSpec = z.output<typeof DNSProviderSpec>
export type DNSProviderStatus = z.output<typeof DNSProviderStatus>

export interface DNSProvider extends Obj {
  spec: DNSProviderSpec
  status?: DNSProviderStatus
}

export const DNSProvider = kind<DNSProvider>({
  group: LOAD_BALANCER_GROUP,
  version: 'v1beta1',
  kind: 'DNSProvider',
  plural: 'dnsproviders',
  namespaced: true,
})
