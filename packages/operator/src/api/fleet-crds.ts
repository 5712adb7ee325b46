/** The CRDs of the fleet. */
import type { CustomResourceDefinition } from '@seamark/kube'
import { customResourceDefinition } from '@seamark/kube/crd'
import { Cluster } from './cluster.ts'
import { DomainVerification } from './domain-verification.ts'
import { GlobalIngressPolicy } from './global-ingress-policy.ts'
import { GlobalIngress } from './global-ingress.ts'
import { HostClaim } from './host-claim.ts'
import { LeafIngress } from './leaf-ingress.ts'

export function fleetCrds(): CustomResourceDefinition[] {
  return [Cluster, GlobalIngressPolicy, GlobalIngress, LeafIngress, HostClaim, DomainVerification].map((kind) =>
    customResourceDefinition(kind),
  )
}
