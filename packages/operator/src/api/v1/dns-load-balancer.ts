/**
 * `DNSLoadBalancer`, `loadbalancer.gardener.cloud/v1`: the storage version where a conversion webhook is served.
 *
 * It has one spelling for each setting: everything about health checks is in `healthCheck`, and `strategy` replaces `type`
 * and `singleton`. The controllers read v1beta1, which is served in every cluster (conversions.ts).
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { durationText, HealthCheck, LOAD_BALANCER_GROUP } from '../dns-load-balancer.ts'

const HealthCheckV1 = HealthCheck.extend({
  path: z.string().max(2048).optional().describe('Path of the request. Default /.'),
  statusCodes: z.array(z.int().min(100).max(599)).min(1).max(20).optional().describe('Expected codes. Default 200.'),
})

export const DNSLoadBalancerSpecV1 = z.object({
  dnsName: z.string().min(1).max(254).describe('The managed DNS name.'),
  strategy: z
    .enum(['Balanced', 'Exclusive'])
    .optional()
    .describe('Balanced: all healthy endpoints of the best priority; Exclusive: one. Default Balanced.'),
  failBack: z
    .enum(['Never', 'Always'])
    .optional()
    .describe('Exclusive: whether to leave a healthy endpoint for one of better priority. Default Never.'),
  ttl: z.int().min(1).max(86_400).optional().describe('TTL of the records, seconds.'),
  onAllUnhealthy: z
    .enum(['ServeLast', 'ServeAll', 'Remove'])
    .optional()
    .describe('What is published while no endpoint is healthy. Default ServeLast.'),
  endpointValidityInterval: durationText.optional().describe('Endpoints expire unless renewed. Default: never.'),
  healthCheck: HealthCheckV1.optional(),
})

const ActiveEndpoint = z.object({
  name: z.string(),
  address: z.string().optional(),
  hostname: z.string().optional(),
})

const DNSLoadBalancerStatusV1 = z.object({
  state: z.string().optional().describe('healthy, unreachable or Error.'),
  message: z.string().optional(),
  active: z.array(ActiveEndpoint).optional().describe('Endpoints in the records, sorted by name.'),
  observedGeneration: z.int().optional(),
  conditions: conditionsSchema.optional(),
})

export const DNSLoadBalancerV1 = defineKind({
  group: LOAD_BALANCER_GROUP,
  version: 'v1',
  kind: 'DNSLoadBalancer',
  plural: 'dnsloadbalancers',
  shortNames: ['dnslb'],
  namespaced: true,
  description: 'A DNS name whose records follow the health of its endpoints.',
  spec: DNSLoadBalancerSpecV1,
  status: DNSLoadBalancerStatusV1,
  printerColumns: [
    { name: 'DNSName', type: 'string', jsonPath: '.spec.dnsName' },
    { name: 'Strategy', type: 'string', jsonPath: '.spec.strategy' },
    { name: 'Status', type: 'string', jsonPath: '.status.state' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
})
export type DNSLoadBalancerV1 = ObjectOf<typeof DNSLoadBalancerV1>
