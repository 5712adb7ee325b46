/**
 * What an administrator may configure about publish, in one flat immutable value.
 *
 * `dropIn` is contour-plus 0.16.2 seen from outside (docs/publish.md, "Differences"); `unified` is what `seamark run` starts
 * from. Flags, environment and the config file only ever override single fields of one of the two.
 */

/** Objects an administrator lets publish write. A TLSCertificateDelegation goes with its Certificate. */
export const CHILD_KINDS = ['DNSEndpoint', 'Certificate'] as const
export type ChildKind = (typeof CHILD_KINDS)[number]

export const SOURCE_KINDS = [
  'HTTPProxy',
  'IngressRoute',
  'Ingress',
  'Gateway',
  'HTTPRoute',
  'Route',
  'Service',
] as const
export type SourceKind = (typeof SOURCE_KINDS)[number]

/** The load-balancer Service whose address the hosts of a class get. */
interface ServiceRule {
  /** `namespace/name`. */
  readonly service: string
  /** Ingress class it serves; the rule without a class serves every other source. */
  readonly className?: string
}

export interface PublishOptions {
  readonly sources: readonly SourceKind[]
  readonly children: readonly ChildKind[]
  /** Prepended verbatim to every child's name. */
  readonly namePrefix: string
  readonly services: readonly ServiceRule[]
  /** '' accepts every class. */
  readonly ingressClassName: string
  readonly defaultIssuerName: string
  readonly defaultIssuerKind: 'Issuer' | 'ClusterIssuer'
  /** '' turns DNS-01 delegation off unless an allowed annotation asks for it. */
  readonly defaultDelegatedDomain: string
  readonly allowedDelegatedDomains: readonly string[]
  readonly allowCustomDelegations: boolean
  /** 0 leaves `revisionHistoryLimit` out. */
  readonly revisionHistoryLimit: number
  readonly propagatedAnnotations: readonly string[]
  readonly propagatedLabels: readonly string[]
  /** Empty means none, not all. */
  readonly allowedDnsNamespaces: readonly string[]
  readonly allowedIssuerNamespaces: readonly string[]
  readonly certificateApply: CertificateApplyOptions
  /** Prefix of the annotations that are ours to read: exclude, delegated-domain, dns-namespace, issuer-namespace. */
  readonly annotationPrefix: string

  /** Delete a child that its living source no longer asks for. */
  readonly prune: boolean
  /** CNAME to a load balancer that has a host name and no IP. */
  readonly hostnameTargets: boolean
  /** Read TTL, target and provider-specific annotations and cert-manager's own ones. */
  readonly annotations: boolean
  /** Read `seamark.io/exclude: dns,tls`. */
  readonly excludeChildren: boolean
  /** What to do with an object of a child's name that is not ours. */
  readonly foreign: 'take' | 'refuse'
  /** The oldest source of a host owns it; the others are told. */
  readonly arbitrateHosts: boolean
  /** Copy `owned-by` into a secretTemplate that has other annotations, as contour-plus does: it shows in the Secret. */
  readonly ownedByInSecretTemplate: boolean
  /** A condition on the source, where the kind allows third-party ones. */
  readonly conditions: boolean
}

export interface CertificateApplyOptions {
  /** Certificate applies per second; 0 applies at once. */
  readonly perSecond: number
  readonly retryBaseMs: number
  readonly retryMaxMs: number
}

export const dropIn: PublishOptions = {
  sources: ['HTTPProxy'],
  children: CHILD_KINDS,
  namePrefix: '',
  services: [],
  ingressClassName: '',
  defaultIssuerName: '',
  defaultIssuerKind: 'ClusterIssuer',
  defaultDelegatedDomain: '',
  allowedDelegatedDomains: [],
  allowCustomDelegations: false,
  revisionHistoryLimit: 0,
  propagatedAnnotations: [],
  propagatedLabels: [],
  allowedDnsNamespaces: [],
  allowedIssuerNamespaces: [],
  certificateApply: { perSecond: 0, retryBaseMs: 5_000, retryMaxMs: 600_000 },
  annotationPrefix: 'contour-plus.cybozu.com/',
  prune: false,
  hostnameTargets: false,
  annotations: false,
  excludeChildren: false,
  foreign: 'take',
  arbitrateHosts: false,
  ownedByInSecretTemplate: true,
  conditions: false,
}

export const unified: PublishOptions = {
  ...dropIn,
  sources: SOURCE_KINDS,
  prune: true,
  hostnameTargets: true,
  annotations: true,
  excludeChildren: true,
  foreign: 'refuse',
  arbitrateHosts: true,
  ownedByInSecretTemplate: false,
  conditions: true,
}
