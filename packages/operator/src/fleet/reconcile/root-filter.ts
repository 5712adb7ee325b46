/**
 * Which objects of the hub are roots: opt-in by class, so that controllers of the hub itself do not serve them too. Reads only
 * caches.
 */
import { Ingress, IngressClass } from '@seamark/kube'
import type { Immutable, Obj, Reader } from '@seamark/kube'
import { Gateway, GatewayClass, type HTTPRoute } from '@seamark/kube/gateway-api'
import { GLOBAL_CONTROLLER, GLOBAL_LABEL, MANAGED_LABEL } from '../names.ts'
import type { RootKind } from '../roots/root-kind.ts'

const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class'

export function isRoot(
  { kind: { kind: name } }: Pick<RootKind, 'kind'>,
  object: Immutable<Obj>,
  roots: 'class' | 'all',
  cache: Pick<Reader, 'get' | 'list'>,
): boolean {
  // A leaf on the hub itself.
  if (object.metadata.labels?.[MANAGED_LABEL] === 'true') return false
  switch (name) {
    case 'Ingress':
      return roots === 'all' || isGlobalIngress(object, cache)
    case 'HTTPRoute':
      return isGlobalRoute(object, cache)
    default:
      return object.metadata.labels?.[GLOBAL_LABEL] === 'true'
  }
}

function isGlobalIngress({ spec }: Immutable<Ingress>, cache: Pick<Reader, 'get' | 'list'>): boolean {
  const className = spec?.ingressClassName
  const found =
    className === undefined
      ? cache.list(IngressClass).find(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === 'true')
      : cache.get(IngressClass, className)
  return found?.spec?.controller === GLOBAL_CONTROLLER
}

function isGlobalRoute({ spec, metadata }: Immutable<HTTPRoute>, cache: Pick<Reader, 'get'>): boolean {
  return (spec?.parentRefs ?? []).some(({ kind: parentKind = 'Gateway', name, namespace = metadata.namespace }) => {
    if (parentKind !== 'Gateway') return false
    const className = cache.get(Gateway, `${namespace}/${name}`)?.spec?.gatewayClassName
    return className !== undefined && cache.get(GatewayClass, className)?.spec?.controllerName === GLOBAL_CONTROLLER
  })
}
