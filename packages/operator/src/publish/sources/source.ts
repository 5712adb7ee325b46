/**
 * The common form of every source kind: one `Source` per object.
 * sources/<kind>.ts creates it; all later parts (decide, plan, explain) use only this form.
 */
import type { Addresses } from '@seamark/dialects'
import type { Annotations } from '../annotation-keys.ts'
import type { Finding } from '../../finding.ts'
import type { SourceKind } from '../options.ts'

/** One Secret and the hosts of its certificate. */
export interface TlsBlock {
  /** As written: may be '' (not requested) or `namespace/name` (a delegated Secret). */
  readonly secretName: string
  /** Namespace of the Secret, when the source may refer to another one (a Gateway with a ReferenceGrant). */
  readonly namespace?: string
  readonly hosts: readonly string[]
}

/** The targets of the hosts: the Service configured for the class, or the addresses of the source itself or its parents. */
type Origin =
  | { readonly type: 'service' }
  | { readonly type: 'addresses'; readonly addresses: Addresses }
  /** Parents or status that cannot be read now: published records are held. */
  | { readonly type: 'unknown'; readonly message: string }

/** The known targets of the hosts. */
export type Target =
  | { readonly state: 'known'; readonly addresses: Addresses; readonly from: string }
  | { readonly state: 'unknown'; readonly finding: Finding }

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
  /** `spec.ingressClassName` or its equivalent; '' when not set. */
  readonly className: string
  /** Verbatim for HTTPProxy, normalized for every other kind; not validated. */
  readonly hosts: readonly string[]
  readonly tls: readonly TlsBlock[]
  /** TLS is terminated behind the ingress: a certificate would not be used. */
  readonly isPassthrough: boolean
  readonly origin: Origin
  /** A Gateway requests only certificates, a route only names. */
  readonly asks: 'dns' | 'tls' | 'both'
  /** Findings of the adapter. */
  readonly findings: readonly Finding[]
}

/** `namespace/name`: unique within a kind. */
export function sourceKey(source: Pick<Source, 'namespace' | 'name'>): string {
  return `${source.namespace}/${source.name}`
}
