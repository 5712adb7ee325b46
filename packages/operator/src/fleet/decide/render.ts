/**
 * Renders a root for one cluster: the manifests of its leaf, with our labels, the overrides of the policy and a hash. Pure.
 *
 * Stripped: status, uid, resourceVersion, managedFields, finalizers, ownerReferences, labels, and every annotation that is
 * not on the allow-list. Remote name and namespace are those of the root, unless the member is the hub itself.
 */
import type { Immutable, Obj } from '@seamark/kube/object'
import type { GlobalIngressPolicySpec } from '../../api/global-ingress-policy.ts'
import { applyPatch } from '../json-patch.ts'
import { HASH_ANNOTATION, hashOf, HUB_LABEL, LEAF_ANNOTATION, ROOT_UID_LABEL } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import type { Manifest, Rendered, RenderFacts, RootKind } from '../roots/root-kind.ts'

export interface LeafRenderFacts extends RenderFacts {
  readonly cluster: string
  readonly hubId: string
  readonly leafName: string
  /** The member is the hub: a leaf of the root's own name would be the root. */
  readonly isHub: boolean
  readonly overrides: GlobalIngressPolicySpec['overrides']
}

export type RenderedLeaf =
  | { readonly manifests: readonly Manifest[]; readonly specHash: string }
  | Extract<Rendered, { refused: unknown }>

/** Clusters with equal settings have equal leaves: each is rendered once per plan. */
export type RenderCache = Map<string, RenderedLeaf>

export function renderLeaf<T extends Obj>(
  root: Immutable<T>,
  kind: RootKind<T>,
  facts: LeafRenderFacts,
  cache: RenderCache = new Map(),
): RenderedLeaf {
  const patches = (facts.overrides ?? []).filter(({ cluster }) => cluster === facts.cluster)
  const isOwn = facts.isHub || patches.length > 0
  const key = JSON.stringify([isOwn ? facts.cluster : '', facts.ingressClassMap, facts.parentRefMap])
  const shared = cache.get(key) ?? renderShared(root, kind, facts)
  cache.set(key, shared)
  if ('refused' in shared) return shared
  const { specHash } = shared
  const own = { [LEAF_ANNOTATION]: facts.leafName, [HASH_ANNOTATION]: specHash }
  return {
    specHash,
    manifests: shared.manifests.map((manifest) => ({
      ...manifest,
      metadata: { ...manifest.metadata, annotations: { ...manifest.metadata.annotations, ...own } },
    })),
  }
}

function renderShared<T extends Obj>(root: Immutable<T>, kind: RootKind<T>, facts: LeafRenderFacts): RenderedLeaf {
  const rendered = kind.render(root, facts)
  if ('refused' in rendered) return rendered
  const patches = (facts.overrides ?? []).filter(({ cluster }) => cluster === facts.cluster)
  const manifests: Manifest[] = []
  for (const manifest of rendered.manifests) {
    const patched = applyPatch(
      manifest,
      patches.flatMap((each) => each.patches),
    )
    if ('message' in patched)
      return {
        refused: 'OverrideInvalid',
        message: `overrides of cluster ${facts.cluster}, patch ${patched.index}: ${patched.message}`,
      }
    manifests.push(identify(patched.value, manifest, root, facts))
  }
  return { specHash: hashOf(manifests), manifests }
}

/** Identity is ours: a patch changes neither kind, name nor the labels that say whose object it is. */
function identify(
  patched: Manifest,
  { apiVersion, kind, metadata }: Manifest,
  root: Immutable<Obj>,
  { cluster, hubId, isHub }: LeafRenderFacts,
): Manifest {
  const name = isHub ? `${metadata.name}--${cluster}` : metadata.name
  return {
    ...patched,
    apiVersion,
    kind,
    metadata: {
      name,
      namespace: metadata.namespace,
      labels: {
        ...patched.metadata.labels,
        [MANAGED_LABEL]: 'true',
        [HUB_LABEL]: hubId,
        [ROOT_UID_LABEL]: root.metadata.uid ?? '',
      },
      ...(patched.metadata.annotations !== undefined && { annotations: patched.metadata.annotations }),
    },
  }
}
