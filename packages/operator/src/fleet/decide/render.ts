/**
 * Renders a root for one cluster: the manifests of its leaf, with our labels, the overrides of the policy and a hash. Pure.
 *
 * Stripped: status, uid, resourceVersion, managedFields, finalizers, ownerReferences, labels, and every annotation that is
 * not on the allow-list. Remote name and namespace are those of the root, unless the member is the hub itself.
 *
 * Guarantee: overrides are of a tenant, so that they give a leaf nothing that the root could not have: its hosts are owned by
 * the root, its annotations allowed, its labels ours, and its class and parents those of the maps of the Cluster.
 */
import type { Immutable, Obj } from '@seamark/kube/object'
import type { GlobalIngressPolicySpec } from '../../api/global-ingress-policy.ts'
import { applyPatch, type PatchOperation } from '../json-patch.ts'
import { HASH_ANNOTATION, hashOf, HUB_LABEL, LEAF_ANNOTATION } from '../names.ts'
import { MANAGED_LABEL, ROOT_UID_LABEL } from '../../hosts/root.ts'
import {
  copyAnnotations,
  isRecord,
  type Manifest,
  type Rendered,
  type RenderFacts,
  type RootKind,
  type Spec,
} from '../roots/root-kind.ts'

export interface LeafRenderFacts extends RenderFacts {
  readonly cluster: string
  readonly hubId: string
  readonly leafName: string
  /** The member is the hub: a leaf of the root's own name would be the root. */
  readonly isHub: boolean
  readonly overrides: GlobalIngressPolicySpec['overrides']
}

export type RenderedLeaf =
  | {
      readonly manifests: readonly Manifest[]
      readonly specHash: string
      /** What overrides asked for and is not in the leaf, as one text; '' for nothing. */
      readonly dropped: string
    }
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
  const { specHash, dropped } = shared
  const own = { [LEAF_ANNOTATION]: facts.leafName, [HASH_ANNOTATION]: specHash }
  return {
    specHash,
    dropped,
    manifests: shared.manifests.map((manifest) => ({
      ...manifest,
      metadata: { ...manifest.metadata, annotations: { ...manifest.metadata.annotations, ...own } },
    })),
  }
}

function renderShared<T extends Obj>(root: Immutable<T>, kind: RootKind<T>, facts: LeafRenderFacts): RenderedLeaf {
  const rendered = kind.render(root, facts)
  if ('refused' in rendered) return rendered
  const patches = (facts.overrides ?? [])
    .filter(({ cluster }) => cluster === facts.cluster)
    .flatMap((each) => each.patches)
  const manifests: Manifest[] = []
  const dropped = new Set<string>()
  for (const manifest of rendered.manifests) {
    const patched = patches.length === 0 ? { manifest, dropped: [] } : override(manifest, patches, kind, facts)
    if ('message' in patched)
      return { refused: 'OverrideInvalid', message: `overrides of cluster ${facts.cluster}, ${patched.message}` }
    for (const each of patched.dropped) dropped.add(each)
    manifests.push(identify(patched.manifest, manifest, root, facts))
  }
  return { specHash: hashOf(manifests), manifests, dropped: [...dropped].sort().join(', ').slice(0, MAX_DROPPED) }
}

/** Characters of a message: a patch may name thousands of hosts. */
const MAX_DROPPED = 512

function override<T extends Obj>(
  manifest: Manifest,
  patches: readonly PatchOperation[],
  kind: RootKind<T>,
  { ownedHosts, managedHosts, allowedAnnotations }: LeafRenderFacts,
): { readonly manifest: Manifest; readonly dropped: readonly string[] } | { readonly message: string } {
  const patched = applyPatch<unknown>(manifest, patches)
  if ('message' in patched) return { message: `patch ${patched.index}: ${patched.message}` }
  const { metadata, spec } = isRecord(patched.value) ? patched.value : {}
  if (!isRecord(metadata) || !isRecord(spec)) return { message: 'their result is no object with metadata and spec' }
  const managed = new Set(managedHosts.values())
  const confined = kind.confine(
    spec,
    (manifest as { spec?: Spec }).spec ?? {},
    (host) => ownedHosts.has(host) || managed.has(host),
  )
  if ('message' in confined) return confined
  const given = isRecord(metadata['annotations']) ? metadata['annotations'] : {}
  const annotations = copyAnnotations(given, allowedAnnotations)
  const labels = isRecord(metadata['labels']) ? metadata['labels'] : {}
  return {
    // Without labels: routers are chosen by those of a Route, as controllers are by the class of an Ingress.
    manifest: { ...manifest, metadata: { ...manifest.metadata, annotations }, spec: confined.spec } as Manifest,
    dropped: [
      ...confined.dropped,
      ...Object.keys(labels).map((key) => `label ${key}`),
      ...Object.keys(given)
        .filter((key) => !Object.hasOwn(annotations, key))
        .map((key) => `annotation ${key}`),
    ],
  }
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
