/** References of Gateway API routes to Services. */
import type { BackendRef } from '@seamark/kube/gateway-api'
import type { Immutable } from '@seamark/kube/object'
import type { BuildSettings, Objects } from '../../draft/input.ts'
import { resolveService, type ResolvedService } from '../../draft/services.ts'
import { isReferenceGranted } from './reference-grant.ts'
import type { RouteFault } from './route-attachment.ts'

export function resolveBackend(
  objects: Objects,
  settings: BuildSettings,
  from: { readonly kind: string; readonly namespace: string },
  ref: Immutable<BackendRef>,
): ResolvedService | RouteFault {
  const target = { kind: 'Service' as const, namespace: ref.namespace ?? from.namespace, name: ref.name }
  if ((ref.group ?? '') !== '' || (ref.kind ?? 'Service') !== 'Service')
    return { reason: 'InvalidKind', message: `backendRefs must be Services, not ${ref.kind ?? ref.group ?? ''}` }
  if (!isReferenceGranted(objects, from, target)) {
    const message = `no ReferenceGrant permits Service ${target.namespace}/${target.name}`
    return { reason: 'RefNotPermitted', message }
  }
  if (ref.port === undefined) return { reason: 'UnsupportedValue', message: `backendRef ${ref.name} needs a port` }
  const resolved = resolveService(objects, settings, `${target.namespace}/${target.name}`, ref.port)
  return 'fault' in resolved ? { reason: 'BackendNotFound', message: resolved.fault } : resolved
}
