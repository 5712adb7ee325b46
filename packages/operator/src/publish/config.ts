/**
 * The `publish` section of the manager's configuration. This schema is the only declaration of publish's settings: the
 * options inside (options.ts), the contour-plus flags (flags.ts), their defaults and their help texts derive from it.
 *
 * Defaults are those of `seamark run`.
 */
import { LIVE } from '../live-setting.ts'
import { z } from 'zod'
import { duration } from '../duration.ts'

export const SOURCE_KINDS = [
  'HTTPProxy',
  'IngressRoute',
  'Ingress',
  'Gateway',
  'HTTPRoute',
  'Route',
  'Service',
] as const

/** Kinds that publish may write. A TLSCertificateDelegation is written with its Certificate. */
export const CHILD_KINDS = ['DNSEndpoint', 'Certificate'] as const

const namespacedName = z.string().regex(/^[^/]+\/[^/]+$/, { error: 'is not NAMESPACE/NAME' })

const flag = (byDefault: boolean, description: string) => z.boolean().default(byDefault).describe(description)
const text = (byDefault: string, description: string) => z.string().default(byDefault).describe(description)
const list = (description: string) => z.array(z.string()).default([]).describe(description)

export const PublishConfig = z.strictObject({
  enabled: flag(true, 'create DNSEndpoints and Certificates for hosts declared in the cluster'),
  sources: z
    .array(z.enum(SOURCE_KINDS))
    .default([...SOURCE_KINDS])
    .describe('kinds that declare hosts; a kind whose CRD is absent is waited for'),
  children: z
    .array(z.enum(CHILD_KINDS))
    .default([...CHILD_KINDS])
    .describe('kinds that are written; a TLSCertificateDelegation goes with its Certificate'),
  namePrefix: text('', 'prefix of the name of every generated object'),
  services: z
    .array(
      z.strictObject({
        service: namespacedName.describe('NAMESPACE/NAME'),
        className: z
          .string()
          .optional()
          .describe('ingress class it serves; the rule without a class serves every other source'),
      }),
    )
    .default([])
    .describe('load-balancer Services whose addresses hosts get: {service: NAMESPACE/NAME, className: CLASS}'),
  ingressClassName: text('', 'read only sources of this ingress class; empty: of every class'),
  defaultIssuerName: text(
    '',
    'issuer of Certificates whose source names none; empty: no Certificate for such a source',
  ).meta(LIVE),
  defaultIssuerKind: z
    .enum(['Issuer', 'ClusterIssuer'])
    .default('ClusterIssuer')
    .describe('kind of the default issuer: Issuer or ClusterIssuer')
    .meta(LIVE),
  defaultDelegatedDomain: text(
    '',
    'domain to which DNS-01 challenges are delegated; empty: no delegation by default',
  ).meta(LIVE),
  allowedDelegatedDomains: list('delegated domains that the annotation delegated-domain may name').meta(LIVE),
  allowCustomDelegations: flag(false, 'let the annotation delegated-domain name any domain').meta(LIVE),
  revisionHistoryLimit: z
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('revisionHistoryLimit of Certificates; 0 leaves the field out')
    .meta(LIVE),
  propagatedAnnotations: list('annotation keys copied from the source to generated objects').meta(LIVE),
  propagatedLabels: list('label keys copied from the source to generated objects').meta(LIVE),
  allowedDnsNamespaces: list('namespaces that the annotation dns-namespace may name; empty: none').meta(LIVE),
  allowedIssuerNamespaces: list('namespaces that the annotation issuer-namespace may name; empty: none').meta(LIVE),
  certificateApplyLimit: z
    .number()
    .min(0)
    .default(0)
    .describe('Certificate applies per second; 0: no limit')
    .meta(LIVE),
  certificateApplyRetryBaseDelay: duration
    .default('5s')
    .describe('first delay before a Certificate is applied, with certificateApplyLimit')
    .meta(LIVE),
  certificateApplyRetryMaxDelay: duration
    .default('10m')
    .describe('longest delay before a Certificate is applied, with certificateApplyLimit')
    .meta(LIVE),
  annotationPrefix: text(
    'contour-plus.cybozu.com/',
    'prefix of the annotations exclude, delegated-domain, dns-namespace and issuer-namespace',
  ),
  prune: flag(true, 'delete a generated object that its existing source no longer requests'),
  hostnameTargets: flag(true, 'CNAME to a load balancer that has a host name and no IP address'),
  annotations: flag(true, "read ExternalDNS' and cert-manager's other annotations"),
  exclude: flag(true, 'read the annotation seamark.io/exclude: dns,tls'),
  foreign: z
    .enum(['refuse', 'take'])
    .default('refuse')
    .describe('what to do with an existing object of the same name that another controller made'),
  arbitrateHosts: flag(true, 'the oldest source of a host owns it; the others get the reason ClaimHeldByOther'),
  roots: z
    .enum(['auto', 'always', 'never'])
    .default('auto')
    .describe(
      'publish hosts of roots that no load balancer has; auto: only where the fleet runs in this process, and no balance publishes its hosts',
    ),
  conditions: flag(true, 'write the condition seamark.io/Published to sources whose kind has conditions'),
})

export type PublishConfig = z.output<typeof PublishConfig>
