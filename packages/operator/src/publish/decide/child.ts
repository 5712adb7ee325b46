/** The desired children of a source and the decisions about them: the types between decide and plan. */
import type { Obj } from '@seamark/kube/object'
import type { Certificate } from '../../api/certificate.ts'
import type { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { TLSCertificateDelegation } from '@seamark/kube/contour'
import { annotation, CLASS_MARK, OWNED_BY, OWNED_BY_ANY } from '../annotation-keys.ts'
import type { Finding } from '../../finding.ts'
import type { PublishOptions } from '../options.ts'
import { type Source, sourceKey } from '../sources/source.ts'

export const CHILD_ROLES = ['dns', 'delegation', 'certificate', 'tls-delegation'] as const
export type ChildRole = (typeof CHILD_ROLES)[number]

export type DesiredChild =
  | { readonly role: 'dns' | 'delegation'; readonly object: DNSEndpoint }
  | { readonly role: 'certificate'; readonly object: Certificate }
  | { readonly role: 'tls-delegation'; readonly object: TLSCertificateDelegation }

/**
 * The decision about one child: written, deleted if we wrote it, or left unchanged. Unknown or invalid facts always result
 * in `held`.
 */
export type ChildDecision =
  | { readonly state: 'wanted'; readonly desired: readonly DesiredChild[]; readonly findings: readonly Finding[] }
  | { readonly state: 'unwanted'; readonly findings: readonly Finding[] }
  | { readonly state: 'held'; readonly findings: readonly Finding[] }

export const unwanted = (...findings: Finding[]): ChildDecision => ({ state: 'unwanted', findings })
export const held = (...findings: Finding[]): ChildDecision => ({ state: 'held', findings })

/** The value of the `owned-by` annotation on a source's children. */
export function ownerMark(source: Pick<Source, 'kind' | 'namespace' | 'name'>): { key: string; value: string } {
  return source.kind === 'HTTPProxy'
    ? { key: OWNED_BY, value: sourceKey(source) }
    : { key: OWNED_BY_ANY, value: `${source.kind}/${sourceKey(source)}` }
}

/** One form for both annotations, so that one index serves all kinds: `HTTPProxy/ns/name`. */
export function findOwner(object: {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
}): string | undefined {
  const any = annotation(object.metadata.annotations, OWNED_BY_ANY)
  if (any !== undefined) return any
  const proxy = annotation(object.metadata.annotations, OWNED_BY)
  return proxy === undefined ? undefined : `HTTPProxy/${proxy}`
}

export function ownerKey(source: Pick<Source, 'kind' | 'namespace' | 'name'>): string {
  return `${source.kind}/${sourceKey(source)}`
}

/**
 * Metadata of a child. Empty maps are omitted: with them the server would change the resourceVersion on every apply.
 * An owner reference exists only within the namespace; elsewhere the annotation and the finalizer replace it.
 */
export function childMetadata(
  source: Source,
  name: string,
  namespace: string,
  options: PublishOptions,
): Obj['metadata'] {
  const owner = ownerMark(source)
  const annotations = pick(source.annotations, options.propagatedAnnotations)
  annotations[owner.key] = owner.value
  if (options.prune && options.ingressClassName !== '') annotations[CLASS_MARK] = options.ingressClassName
  const metadata: Obj['metadata'] = { name, namespace, annotations }
  const labels = pick(source.labels, options.propagatedLabels)
  if (Object.keys(labels).length > 0) metadata.labels = labels
  if (namespace === source.namespace) {
    metadata.ownerReferences = [
      {
        apiVersion: source.apiVersion,
        kind: source.kind,
        name: source.name,
        uid: source.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]
  }
  return metadata
}

/** The listed keys that are present. */
export function pick(from: Readonly<Record<string, string>>, keys: readonly string[]): Record<string, string> {
  if (keys.length === 0) return {}
  const picked: [string, string][] = []
  for (const key of keys) {
    const value = annotation(from, key)
    if (value !== undefined) picked.push([key, value])
  }
  // fromEntries defines own properties, so `__proto__` stays an ordinary key.
  return Object.fromEntries(picked)
}
