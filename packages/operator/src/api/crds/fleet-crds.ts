/** The CRDs of the fleet. */
import type { CustomResourceDefinition } from '@seamark/kube'
import { customResourceDefinition } from '@seamark/kube/crd'
import { Cluster } from '../cluster.ts'
import { CRD_REVISION_ANNOTATION } from './install-crds.ts'
import { DomainVerification } from '../domain-verification.ts'
import { GlobalIngressPolicy } from '../global-ingress-policy.ts'
import { GlobalIngress } from '../global-ingress.ts'
import { HostClaim } from '../host-claim.ts'
import { LeafIngress } from '../leaf-ingress.ts'

/** Increases with every change of a schema: an older program does not replace the CRDs of a newer one. */
const REVISION = '6'

export function fleetCrds(): CustomResourceDefinition[] {
  return [Cluster, GlobalIngressPolicy, GlobalIngress, LeafIngress, HostClaim, DomainVerification].map((kind) =>
    customResourceDefinition(kind, { annotations: { [CRD_REVISION_ANNOTATION]: REVISION } }),
  )
}
