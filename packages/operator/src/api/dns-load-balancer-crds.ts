/** The CRDs of the load balancing kinds; only v1beta1 is served. */
import type { CustomResourceDefinition } from '@seamark/kube'
import { customResourceDefinition } from '@seamark/kube/crd'
import { DNSLoadBalancerEndpoint } from './dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from './dns-load-balancer.ts'
import { DNSProvider } from './dns-provider.ts'

export function loadBalancerCrds(): CustomResourceDefinition[] {
  return [DNSLoadBalancer, DNSLoadBalancerEndpoint, DNSProvider].map((kind) => customResourceDefinition(kind))
}
