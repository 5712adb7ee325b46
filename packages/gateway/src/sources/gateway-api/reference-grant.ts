/** ReferenceGrants: whether an object may refer to one in another namespace. */
import { ReferenceGrant } from '@seamark/kube/gateway-api'
import type { Objects } from '../../draft/input.ts'

const GROUP = 'gateway.networking.k8s.io'

export function isReferenceGranted(
  objects: Objects,
  from: { readonly kind: string; readonly namespace: string },
  to: { readonly kind: 'Service' | 'Secret' | 'ConfigMap'; readonly namespace: string; readonly name: string },
): boolean {
  if (from.namespace === to.namespace) return true
  return objects.list(ReferenceGrant).some(({ metadata, spec }) => {
    if (metadata.namespace !== to.namespace) return false
    // A schema that preserves unknown fields lets anything be stored; such a grant grants nothing.
    if (!Array.isArray(spec?.from) || !Array.isArray(spec.to)) return false
    const isFrom = spec.from.some((each) => {
      return each.group === GROUP && each.kind === from.kind && each.namespace === from.namespace
    })
    const isTo = spec.to.some((each) => {
      const isSame = each.name === undefined || each.name === '' || each.name === to.name
      return each.group === '' && each.kind === to.kind && isSame
    })
    return isFrom && isTo
  })
}
