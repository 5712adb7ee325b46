/**
 * Owner references: which object a child belongs to, for garbage collection and for `.owns()`.
 *
 * Invariants: the owner is in the namespace of the child or cluster-scoped (Kubernetes looks up owners only there, and
 * deletes a child whose owner does not exist); a child has at most one controller.
 */
import { KubeError } from '../errors.ts'
import { keyOf, type Immutable, type Key, type Kind, type Obj, type OwnerReference } from './object.ts'

/**
 * A reference that makes `owner` the controller. Throws if the owner was not read from a server: it has no uid, or no
 * apiVersion and kind.
 */
function controllerReference(owner: Immutable<Obj>): OwnerReference {
  const { apiVersion, kind } = owner
  const { name, uid } = owner.metadata
  if (name === undefined || uid === undefined) {
    throw new KubeError(
      'OWNER_NOT_STORED',
      `${kind ?? 'object'} ${keyOf(owner)} has no uid yet and cannot own an object`,
    )
  }
  if (apiVersion === undefined || kind === undefined)
    throw new KubeError(
      'OWNER_NOT_STORED',
      `object ${keyOf(owner)} has no apiVersion and kind and cannot own an object`,
    )
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }
}

/** A copy of `child` controlled by `owner`. Throws if the namespaces differ, or if the child has another controller. */
export function withController<C extends Obj>(child: C, owner: Immutable<Obj>): C {
  const home = owner.metadata.namespace
  if (home !== undefined && child.metadata.namespace !== home) {
    const where = child.metadata.namespace ?? 'no namespace'
    throw new KubeError(
      'OWNER_ELSEWHERE',
      `${owner.kind} ${keyOf(owner)} cannot own ${keyOf(child)} in ${where}: an owner must be in the same namespace or cluster-scoped`,
    )
  }
  const reference = controllerReference(owner)
  const others = (child.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== reference.uid)
  const rival = others.find(({ controller }) => controller === true)
  if (rival !== undefined) {
    throw new KubeError('OWNED_BY_ANOTHER', `${keyOf(child)} is controlled by ${rival.kind} ${rival.name} already`)
  }
  return { ...child, metadata: { ...child.metadata, ownerReferences: [...others, reference] } }
}

/** Key of the `kind` object that controls `child`, or undefined. The API version is not compared. */
export function findControllerKey<T extends Obj>(kind: Kind<T>, child: Immutable<Obj>): Key | undefined {
  const reference = child.metadata.ownerReferences?.find(
    (each) => each.controller === true && each.kind === kind.kind && groupOf(each.apiVersion) === kind.group,
  )
  if (reference === undefined) return undefined
  const { namespace } = child.metadata
  return keyOf({
    metadata: { name: reference.name, ...(kind.namespaced && namespace !== undefined && { namespace }) },
  })
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}
