/**
 * The neutral form of every kind publish reads: one `Source` per object, whatever dialect said "this host should be reachable".
 * sources/<kind>.ts makes it; everything after it (decide, plan, explain) knows only this.
 */
import type { Addresses } from '../../address.ts'
import type { Annotations } from '../annotation-keys.ts'
import type { Finding } from '../../finding.ts'
import type { SourceKind } from '../options.ts'

/** One Secret and the hosts whose certificate it holds. */
export interface TlsBlock {
  /** As written: may be '' (nothing asked for) or `namespace/name` (a delegated Secret). */
  readonly secretName: string
  /** Of the Secret, when the source may name one elsewhere (a Gateway with a ReferenceGrant). */
  readonly namespace?: string
  readonly hosts: readonly string[]
}

/** Where the hosts point: at the Service configured for the class, or at what the source itself or its parents publish. */
type Origin =
  | { readonly type: 'service' }
  | { readonly type: 'addresses'; readonly addresses: Addresses }
  /** Parents or status that cannot be read now: hold what is published. */
  | { readonly type: 'unknown'; readonly message: string }

export interface Source {
  readonly kind: SourceKind
  readonly apiVersion: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly createdAt: string
  readonly isDeleting: boolean
  readonly hasFinalizer: boolean
  readonly annotations: Annotations
  readonly labels: Annotations
  /** `spec.ingressClassName` or its like; '' when not set. */
  readonly className: string
  /** Verbatim for HTTPProxy, normalized for every other kind; unchecked. */
  readonly hosts: readonly string[]
  readonly tls: readonly TlsBlock[]
  /** TLS ends behind the ingress: no certificate of ours would be used. */
  readonly isPassthrough: boolean
  readonly origin: Origin
  /** A Gateway only holds certificates, a route only names hosts. */
  readonly asks: 'dns' | 'tls' | 'both'
  /** What the adapter already had to refuse. */
  readonly findings: readonly Finding[]
}

/** `namespace/name`: unique within a kind. */
export function sourceKey(source: Pick<Source, 'namespace' | 'name'>): string {
  return `${source.namespace}/${source.name}`
}

/** Oldest first, then by namespace, name and kind: the same order on every replica (INV-14). */
export function compareAge(
  a: Pick<Source, 'createdAt' | 'namespace' | 'name' | 'kind'>,
  b: Pick<Source, 'createdAt' | 'namespace' | 'name' | 'kind'>,
): number {
  return (
    compareText(a.createdAt, b.createdAt) ||
    compareText(a.namespace, b.namespace) ||
    compareText(a.name, b.name) ||
    compareText(a.kind, b.kind)
  )
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
