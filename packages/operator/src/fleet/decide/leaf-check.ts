/**
 * Which LeafIngress may be applied on its member. Pure.
 *
 * Guarantee: applied is what the planner rendered for an existing root, and nothing else. A LeafIngress is an object that a
 * tenant of the hub may be able to write, and the credentials of a member reach every namespace of it.
 */
import { apiVersionOf, type Immutable } from '@seamark/kube/object'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { HASH_ANNOTATION, hashOf, LEAF_ANNOTATION } from '../names.ts'
import type { Manifest } from '../roots/root-kind.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'

export type LeafCheck =
  | { readonly state: 'planned' }
  /** Not rendered in this process yet, or not any more: it stays as it is on the member. */
  | { readonly state: 'unplanned' }
  | { readonly state: 'refused'; readonly message: string }

export interface LeafCheckFacts {
  readonly leaf: Immutable<LeafIngress>
  /** What the planner rendered, as `contentOf` has it. */
  readonly planned: string | undefined
  /** Whether our field manager applied it. */
  readonly isApplied: boolean
}

export function checkLeaf({ leaf, planned, isApplied }: LeafCheckFacts): LeafCheck {
  const fault = findFault(leaf)
  if (fault !== undefined) return refuse(fault)
  if (!isApplied) return refuse('the manager did not write it')
  if (planned === undefined) return { state: 'unplanned' }
  const { spec } = leaf
  if (planned === contentOf(leaf.metadata.name ?? '', spec) && hashOf(spec.manifests.map(bare)) === spec.specHash)
    return { state: 'planned' }
  return refuse('its spec is not what the manager renders for its root')
}

/** All that the planner decides about what is applied; equal for equal leaves. */
export function contentOf(name: string, spec: Immutable<LeafIngress['spec']>): string {
  const { cluster, specHash, force = false, adopt = false, namespacePolicy = 'Require' } = spec
  return [name, cluster, specHash, force, adopt, namespacePolicy].join(' ')
}

/** The manifests that may be looked at and deleted on the member, whoever wrote them: in the namespace of the leaf. */
export function usableManifests({ metadata, spec }: Immutable<LeafIngress>): readonly Immutable<Manifest>[] {
  return manifestsOf(spec).filter(
    (manifest) => isRootKind(manifest) && manifest.metadata.namespace === metadata.namespace,
  )
}

function findFault({ metadata, spec }: Immutable<LeafIngress>): string | undefined {
  for (const manifest of manifestsOf(spec)) {
    const { namespace, name } = manifest.metadata
    if (!isRootKind(manifest)) return `it has a manifest of kind ${quote(manifest.kind)}`
    if (namespace !== metadata.namespace)
      return `its ${manifest.kind} ${quote(name)} is in the namespace ${quote(namespace)}`
  }
  return undefined
}

function refuse(fault: string): LeafCheck {
  return {
    state: 'refused',
    message: `${fault}; nothing of it is applied. Delete it: only the manager writes LeafIngresses`,
  }
}

function bare({ metadata, ...manifest }: Immutable<LeafIngress['spec']['manifests'][number]>): unknown {
  const {
    [LEAF_ANNOTATION]: _leaf,
    [HASH_ANNOTATION]: _hash,
    ...annotations
  } = (metadata['annotations'] ?? {}) as Readonly<Record<string, unknown>>
  return { ...manifest, metadata: { ...metadata, annotations } }
}

function manifestsOf(spec: Immutable<LeafIngress['spec']>): readonly Immutable<Manifest>[] {
  return spec.manifests as unknown as readonly Immutable<Manifest>[]
}

function isRootKind({ apiVersion, kind }: Immutable<Manifest>): boolean {
  return ROOT_KINDS.some((each) => each.kind.kind === kind && apiVersionOf(each.kind) === apiVersion)
}

/** Of a text that somebody else wrote. */
function quote(text: unknown): string {
  return JSON.stringify(String(text).slice(0, 64))
}
