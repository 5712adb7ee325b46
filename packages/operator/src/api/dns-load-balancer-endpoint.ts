/**
 * `DNSLoadBalancerEndpoint`, `loadbalancer.gardener.cloud/v1beta1`: one target of a DNSLoadBalancer of the same namespace.
 * Written by the endpoint controller of a source cluster, or manually.
 */
import { conditionsSchema, defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { LOAD_BALANCER_GROUP } from './dns-load-balancer.ts'

/** How an endpoint is preferred; the same in every version. */
export const endpointPreference = {
  weight: z.int().min(0).max(1000).optional().describe('0: used only when nothing else is. Default 1.'),
  priority: z.int().min(0).max(1000).optional().describe('Lower is preferred. Default 0.'),
  geo: z
    .string()
    .regex(/^\S{1,63}$/)
    .optional()
    .describe('Region of the endpoint, as the region table of the DNS server names it.'),
  drain: z.boolean().optional().describe('Take the endpoint out while another one can serve.'),
}

const DNSLoadBalancerEndpointSpec = z.object({
  loadbalancer: z.string().describe('Name of the DNSLoadBalancer in the same namespace.'),
  ipaddress: z.string().optional().describe('IPv4 or IPv6 address.'),
  cname: z.string().optional().describe('Host name; wins over ipaddress.'),
  ...endpointPreference,
})

export const DNSLoadBalancerEndpointStatus = z.object({
  active: z.boolean().optional().describe('Whether the endpoint is in the records.'),
  healthy: z.boolean().optional().describe('Verdict of the health check.'),
  validUntil: z.string().optional().describe('RFC 3339; renewed by the endpoint controller.'),
  message: z.string().optional(),
  observedGeneration: z.int().optional(),
  conditions: conditionsSchema.optional(),
})

export const DNSLoadBalancerEndpoint = defineKind({
  group: LOAD_BALANCER_GROUP,
  version: 'v1beta1',
  kind: 'DNSLoadBalancerEndpoint',
  plural: 'dnsloadbalancerendpoints',
  shortNames: ['dnslbep'],
  namespaced: true,
  description: 'One target of a DNSLoadBalancer.',
  spec: DNSLoadBalancerEndpointSpec,
  status: DNSLoadBalancerEndpointStatus,
  printerColumns: [
    { name: 'DNSLB', type: 'string', jsonPath: '.spec.loadbalancer' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.healthy' },
    { name: 'Active', type: 'boolean', jsonPath: '.status.active' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type DNSLoadBalancerEndpoint = ObjectOf<typeof DNSLoadBalancerEndpoint>
