/**
 * Which objects of the hub are roots: opt-in by class, so that controllers of the hub itself do not serve them too.
 */
import { type Client, type Immutable, type Ingress, IngressClass, type Obj, type Reader } from '@seamark/kube'
import { Gateway, GatewayClass, type HTTPRoute } from '@seamark/kube/gateway-api'
import type { Key } from '@seamark/kube/object'
import { GLOBAL_CONTROLLER, GLOBAL_LABEL, MANAGED_LABEL } from '../names.ts'
import type { RootKind } from '../roots/root-kind.ts'

type RootSelection = 'class' | 'all'

/** Names the class of an object; an Ingress without one has the default class. */
type ClassRef = { readonly ingressClass: string | undefined } | { readonly gateway: Key }

const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class'

/** Reads only caches. */
export function isRoot(
  kind: Pick<RootKind, 'kind'>,
  object: Immutable<Obj>,
  roots: RootSelection,
  cache: Pick<Reader, 'get' | 'list'>,
): boolean {
  const selected = selectByObject(kind, object, roots)
  return typeof selected === 'boolean'
    ? selected
    : selected.some((ref) => controllerInCache(ref, cache) === GLOBAL_CONTROLLER)
}

/** The same for an object that was a root: reads the server, because a cache may come from a list that was short. */
export async function isStillRoot(
  kind: Pick<RootKind, 'kind'>,
  object: Immutable<Obj>,
  roots: RootSelection,
  client: Pick<Client, 'find' | 'list'>,
): Promise<boolean> {
  const selected = selectByObject(kind, object, roots)
  if (typeof selected === 'boolean') return selected
  const controllers = await Promise.all(selected.map(async (ref) => controllerOnServer(ref, client)))
  return controllers.includes(GLOBAL_CONTROLLER)
}

/** Whether the object is a root; the classes that decide it, if the object alone does not. */
function selectByObject(
  { kind: { kind: name } }: Pick<RootKind, 'kind'>,
  object: Immutable<Obj>,
  roots: RootSelection,
): boolean | readonly ClassRef[] {
  // A leaf on the hub itself.
  if (object.metadata.labels?.[MANAGED_LABEL] === 'true') return false
  switch (name) {
    case 'Ingress':
      return roots === 'all' || [{ ingressClass: (object as Immutable<Ingress>).spec?.ingressClassName }]
    case 'HTTPRoute':
      return gatewaysOf(object)
    default:
      return object.metadata.labels?.[GLOBAL_LABEL] === 'true'
  }
}

function gatewaysOf({ spec, metadata }: Immutable<HTTPRoute>): ClassRef[] {
  return (spec?.parentRefs ?? [])
    .filter(({ kind = 'Gateway' }) => kind === 'Gateway')
    .map(({ name, namespace = metadata.namespace }) => ({ gateway: `${namespace}/${name}` }))
}

function controllerInCache(ref: ClassRef, cache: Pick<Reader, 'get' | 'list'>): string | undefined {
  if ('gateway' in ref) {
    const className = cache.get(Gateway, ref.gateway)?.spec?.gatewayClassName
    return className === undefined ? undefined : cache.get(GatewayClass, className)?.spec?.controllerName
  }
  const found =
    ref.ingressClass === undefined
      ? cache.list(IngressClass).find(isDefaultClass)
      : cache.get(IngressClass, ref.ingressClass)
  return found?.spec?.controller
}

async function controllerOnServer(ref: ClassRef, client: Pick<Client, 'find' | 'list'>): Promise<string | undefined> {
  if ('gateway' in ref) {
    const className = (await client.find(Gateway, ref.gateway))?.spec?.gatewayClassName
    return className === undefined ? undefined : (await client.find(GatewayClass, className))?.spec?.controllerName
  }
  const found =
    ref.ingressClass === undefined
      ? (await client.list(IngressClass)).items.find(isDefaultClass)
      : await client.find(IngressClass, ref.ingressClass)
  return found?.spec?.controller
}

function isDefaultClass({ metadata }: Immutable<IngressClass>): boolean {
  return metadata.annotations?.[DEFAULT_CLASS] === 'true'
}
