/** Every kind that a capability uses: others' and ours. */
import { fleetCrds, loadBalancerCrds } from '@seamark/operator'
import { gatewayClassCrd } from '../../integration/gateway/crds.ts'
import { crds } from '../../integration/publish/test-environment.ts'

export function allCrds(): object[] {
  return [...crds(), ...gatewayClassCrd(), ...fleetCrds(), ...loadBalancerCrds()]
}
