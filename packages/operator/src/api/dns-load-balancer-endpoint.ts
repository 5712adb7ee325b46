/**
 * `DNSLoadBalancerEndpoint`, `loadbalancer.gardener.cloud/v1beta1`: one target of a DNSLoadBalancer of the same namespace.
 * Written by the endpoint controller of a source cluster, or by hand.
 */
import { kind, type Obj } from '@seamark/kube/object'
import { z } from 'zod'
import { conditionList, LOAD_BALANCER_GROUP } from './dns-load-balancer.ts'

export const DNSLoadBalancerEndpointSpec = z.object({
  loadbalancer: z.string().describe('Name of the DNSLoadBalancer in the same namespace.'),
  ipaddress: z.string().optional().describe('IPv4 or IPv6 address.'),
  cname: z.string().optional().describe('Host name; wins over ipaddress.'),
  weight: z.int().min(0).max(1000).optional().describe('0: used only when nothing else is. Default 1.'),
  priority: z.int().min(0).max(1000).optional().describe('Lower is preferred. Default 0.'),
  drain: z.boolean().optional().describe('Take the endpoint out while another one can serve.'),
})

export const DNSLoadBalancerEndpointStatus = z.object({
  active: z.boolean().optional().describe('Whether the endpoint is in the records.'),
  healthy: z.boolean().optional().describe('Verdict of the health check.'),
  validUntil: z.string().optional().describe('RFC 3339; renewed by the endpoint controller.'),
  message: z.string().optional(),
  observedGeneration: z.int().optional(),
  conditions: conditionList.optional(),
})

export type DNSLoadBalancerEndpointSpec = z.output<typeof DNSLoadBalancerEndpointSpec>
export type DNSLoadBalancerEndpointStatus = z.output<typeof DNSLoadBalancerEndpointStatus>

export interface DNSLoadBalancerEndpoint extends Obj {
  spec: DNSLoadBalancerEndpointSpec
  status?: DNSLoadBalancerEndpointStatus
}

export const DNSLoadBalancerEndpoint = kind<DNSLoadBalancerEndpoint>({
  group: LOAD_BALANCER_GROUP,
  version: 'v1beta1',
  kind: 'DNSLoadBalancerEndpoint',
  plural: 'dnsloadbalancerendpoints',
  namespaced: true,
})
