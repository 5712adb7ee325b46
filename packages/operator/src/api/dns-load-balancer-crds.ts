/** The CRDs of the load balancing kinds; only v1beta1 is served. */
import type { CustomResourceDefinition } from '@seamark/kube'
import { customResourceDefinition } from '@seamark/kube/crd'
import { DNSLoadBalancerEndpoint } from './dns-load-balancer-endpoint.ts'
import { DNSLoadBalancer } from './dns-load-balancer.ts'
import { DNSProvider } from './dns-provider.ts'
import { CRD_REVISION_ANNOTATION } from './install-crds.ts'

/** Increase it with every change of one of the schemas. */
const REVISION = '2'

export function loadBalancerCrds(): CustomResourceDefinition[] {
  const annotations = { [CRD_REVISION_ANNOTATION]: REVISION }
  return [DNSLoadBalancer, DNSLoadBalancerEndpoint, DNSProvider].map((kind) =>
    customResourceDefinition(kind, { annotations }),
  )
}
