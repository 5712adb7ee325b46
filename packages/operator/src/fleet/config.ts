/** Settings of the fleet capability. */
import { z } from 'zod'

export const FleetConfig = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe('place root Ingresses, HTTPRoutes and Routes on registered clusters, and merge their status'),
  roots: z
    .enum(['class', 'all'])
    .default('class')
    .describe(
      'class: only roots of an IngressClass or GatewayClass of the controller seamark.io/global; all: every Ingress of a hub without ingress controllers of its own',
    ),
  hubId: z
    .string()
    .regex(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/, { error: 'is no label value' })
    .or(z.literal(''))
    .default('')
    .describe('identity of this hub on leaves; empty: the UID of its namespace kube-system'),
  dns: z
    .boolean()
    .default(true)
    .describe('write a DNSLoadBalancer for each host; off: only leaves and the merged status'),
  installCRDs: z.boolean().default(false).describe('create the CRDs of the fleet and of load balancing at the start'),
  leafAnnotations: z
    .array(z.string())
    .default([
      'nginx.ingress.kubernetes.io/backend-protocol',
      'nginx.ingress.kubernetes.io/force-ssl-redirect',
      'nginx.ingress.kubernetes.io/proxy-body-size',
      'nginx.ingress.kubernetes.io/rewrite-target',
      'nginx.ingress.kubernetes.io/ssl-redirect',
    ])
    .describe('annotations of roots that are copied to leaves; a trailing * allows a prefix; snippets never are'),
  orphanAfterSeconds: z
    .number()
    .int()
    .min(0)
    .default(900)
    .describe('how long the deletion of a leaf waits for a cluster that cannot be reached'),
})

export type FleetConfig = z.output<typeof FleetConfig>

export type FleetOptions = Readonly<Omit<FleetConfig, 'enabled'>>
