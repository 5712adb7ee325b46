/** `DNSLoadBalancerEndpoint`, `loadbalancer.gardener.cloud/v1`: one target of a DNSLoadBalancer of the same namespace. */
import { defineKind, type ObjectOf } from '@seamark/kube/crd'
import { z } from 'zod'
import { DNSLoadBalancerEndpointStatus, endpointPreference } from '../dns-load-balancer-endpoint.ts'
import { LOAD_BALANCER_GROUP } from '../dns-load-balancer.ts'

export const DNSLoadBalancerEndpointSpecV1 = z.object({
  loadBalancer: z.string().min(1).describe('Name of the DNSLoadBalancer in the same namespace.'),
  address: z.string().optional().describe('IPv4 or IPv6 address.'),
  hostname: z.string().optional().describe('Host name; wins over address.'),
  ...endpointPreference,
})

export const DNSLoadBalancerEndpointV1 = defineKind({
  group: LOAD_BALANCER_GROUP,
  version: 'v1',
  kind: 'DNSLoadBalancerEndpoint',
  plural: 'dnsloadbalancerendpoints',
  shortNames: ['dnslbep'],
  namespaced: true,
  description: 'One target of a DNSLoadBalancer.',
  spec: DNSLoadBalancerEndpointSpecV1,
  status: DNSLoadBalancerEndpointStatus,
  printerColumns: [
    { name: 'DNSLB', type: 'string', jsonPath: '.spec.loadBalancer' },
    { name: 'Healthy', type: 'boolean', jsonPath: '.status.healthy' },
    { name: 'Active', type: 'boolean', jsonPath: '.status.active' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type DNSLoadBalancerEndpointV1 = ObjectOf<typeof DNSLoadBalancerEndpointV1>
