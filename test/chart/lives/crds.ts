/** Every kind that a capability uses: others' and ours. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fleetCrds, loadBalancerCrds } from '@seamark/operator'
import { parse } from 'yaml'
import { gatewayClassCrd } from '../../integration/gateway/crds.ts'
import { crds } from '../../integration/publish/test-environment.ts'

const GATEWAY_API = join(import.meta.dirname, '../../../../shared/crds/gateway-api-v1.7')
const FURTHER = ['grpcroutes', 'tlsroutes', 'backendtlspolicies']

/** Kinds that the playground does not have: only the upstream CRDs have all that the gateway reads. */
export const hasEveryKind = existsSync(GATEWAY_API)

export function allCrds({ without = '' } = {}): object[] {
  const further = hasEveryKind
    ? FURTHER.map(
        (name) => parse(readFileSync(join(GATEWAY_API, `gateway.networking.k8s.io_${name}.yaml`), 'utf8')) as object,
      )
    : []
  const all = [...crds(), ...gatewayClassCrd(), ...fleetCrds(), ...loadBalancerCrds(), ...further]
  return all.filter((crd) => nameOf(crd) !== without)
}

/** One that is installed later than the others. */
export function crdNamed(name: string): object {
  const found = allCrds().find((crd) => nameOf(crd) === name)
  if (found === undefined) throw new Error(`no CRD ${name}`)
  return found
}

function nameOf(crd: object): string {
  return (crd as { metadata: { name: string } }).metadata.name
}
