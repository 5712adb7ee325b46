/** Every annotation that publish reads or writes. Our own have the configurable prefix of `PublishOptions`. */

export const TLS_ACME = 'kubernetes.io/tls-acme'
export const ISSUER = 'cert-manager.io/issuer'
export const CLUSTER_ISSUER = 'cert-manager.io/cluster-issuer'
export const REVISION_HISTORY_LIMIT = 'cert-manager.io/revision-history-limit'
export const KEY_ALGORITHM = 'cert-manager.io/private-key-algorithm'
export const KEY_SIZE = 'cert-manager.io/private-key-size'

/** `dns`, `tls` or both, comma-separated. */
export const EXCLUDE_CHILDREN = 'seamark.io/exclude'
/** Written on the children of sources other than HTTPProxy: `<kind>/<namespace>/<name>`. */
export const OWNED_BY_ANY = 'seamark.io/owned-by'

/** Written on children when pruning by class is on: the class of the instance that wrote them. */
export const CLASS_MARK = 'seamark.io/class'

/** ExternalDNS moved its annotations in 0.22; the new prefix wins when both are present. */
export const EXTERNAL_DNS_PREFIXES = ['external-dns.kubernetes.io/', 'external-dns.alpha.kubernetes.io/'] as const

/** contour-plus writes these two whatever the prefix of the annotations it reads. */
export const OWNED_BY = 'contour-plus.cybozu.com/owned-by'
export const FINALIZER = 'contour-plus.cybozu.com/finalizer'

export type Annotations = Readonly<Record<string, string>>

/** contour-plus' own annotations, whose prefix is a flag. */
interface PrefixedKeys {
  readonly exclude: string
  readonly dnsNamespace: string
  readonly issuerNamespace: string
  readonly delegatedDomain: string
}

const prefixed = new Map<string, PrefixedKeys>()

/** Created once per prefix: they are looked up in every source, and a newly concatenated string is a slow key. */
export function keysUnder(prefix: string): PrefixedKeys {
  let keys = prefixed.get(prefix)
  if (keys === undefined) {
    keys = {
      exclude: `${prefix}exclude`,
      dnsNamespace: `${prefix}dns-namespace`,
      issuerNamespace: `${prefix}issuer-namespace`,
      delegatedDomain: `${prefix}delegated-domain`,
    }
    prefixed.set(prefix, keys)
  }
  return keys
}

/** Own properties only: the annotation keys of a tenant must not reach the prototype. */
export function annotation(annotations: Annotations | undefined, key: string): string | undefined {
  return annotations !== undefined && Object.hasOwn(annotations, key) ? annotations[key] : undefined
}
