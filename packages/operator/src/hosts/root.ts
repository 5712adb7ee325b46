/**
 * Which objects of the hub are roots: opt-in by class, so that controllers of the hub itself do not serve them too.
 *
 * Place in the flow: beneath fleet, which places roots, and publish, which leaves their names to balance. The object and its
 * classes decide, so that a process without the fleet knows the roots of another one.
 */
import { type Client, type Immutable, type Ingress, IngressClass, type Obj, type Reader } from '@seamark/kube'
import { Gateway, GatewayClass, type HTTPRoute } from '@seamark/kube/gateway-api'
import type { Key, Kind } from '@seamark/kube/object'
import { classOf } from '@seamark/dialects'
import { FLEET_GROUP } from '../api/cluster.ts'

/** Controller name of the IngressClass and of the GatewayClass whose objects are roots. */
export const GLOBAL_CONTROLLER = `${FLEET_GROUP}/global`
/** A Route with this label is a root. */
const GLOBAL_LABEL = `${FLEET_GROUP}/global`
/** On leaves. */
export const MANAGED_LABEL = `${FLEET_GROUP}/managed`
/** On what is generated for a root. */
export const ROOT_UID_LABEL = `${FLEET_GROUP}/root-uid`
/** On a root, from before its first leaf until after its last one. */
export const ROOT_FINALIZER = `${FLEET_GROUP}/global`

/** `all`: every Ingress is a root. */
export type RootSelection = 'class' | 'all'

interface OfKind {
  readonly kind: Kind
}

/** Names the class of an object; an Ingress without one ('') has the default class. */
type ClassRef = { readonly ingressClass: string } | { readonly gateway: Key }

const DEFAULT_CLASS = 'ingressclass.kubernetes.io/is-default-class'

/** Reads only caches. */
export function isRoot(
  kind: OfKind,
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
  kind: OfKind,
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
  { kind: { kind: name } }: OfKind,
  object: Immutable<Obj>,
  roots: RootSelection,
): boolean | readonly ClassRef[] {
  // A leaf on the hub itself.
  if (object.metadata.labels?.[MANAGED_LABEL] === 'true') return false
  switch (name) {
    case 'Ingress':
      return roots === 'all' || [{ ingressClass: classNameOf(object) }]
    case 'HTTPRoute':
      return gatewaysOf(object)
    default:
      return object.metadata.labels?.[GLOBAL_LABEL] === 'true'
  }
}

function classNameOf({ spec, metadata }: Immutable<Ingress>): string {
  return classOf(metadata.annotations, spec?.ingressClassName)
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
    ref.ingressClass === '' ? findDefaultClass(cache.list(IngressClass)) : cache.get(IngressClass, ref.ingressClass)
  return found?.spec?.controller
}

async function controllerOnServer(ref: ClassRef, client: Pick<Client, 'find' | 'list'>): Promise<string | undefined> {
  if ('gateway' in ref) {
    const className = (await client.find(Gateway, ref.gateway))?.spec?.gatewayClassName
    return className === undefined ? undefined : (await client.find(GatewayClass, className))?.spec?.controllerName
  }
  const found =
    ref.ingressClass === ''
      ? findDefaultClass((await client.list(IngressClass)).items)
      : await client.find(IngressClass, ref.ingressClass)
  return found?.spec?.controller
}

/** The class created last if several are marked, then the first by name: as the admission plugin DefaultIngressClass. */
function findDefaultClass(classes: readonly Immutable<IngressClass>[]): Immutable<IngressClass> | undefined {
  return classes.filter(({ metadata }) => metadata.annotations?.[DEFAULT_CLASS] === 'true').toSorted(compareNewest)[0]
}

function compareNewest({ metadata: a }: Immutable<IngressClass>, { metadata: b }: Immutable<IngressClass>): number {
  const [aTime, bTime] = [a.creationTimestamp ?? '', b.creationTimestamp ?? '']
  if (aTime !== bTime) return aTime > bTime ? -1 : 1
  return (a.name ?? '') < (b.name ?? '') ? -1 : 1
}
