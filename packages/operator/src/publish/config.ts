/** The `publish` section of the manager's configuration. Every key has the meaning of the field it becomes (options.ts). */
import { parseDurationMs } from '@seamark/kube'
import { z } from 'zod'
import { duration } from '../duration.ts'
import { CHILD_KINDS, type PublishOptions, SOURCE_KINDS, unified } from './options.ts'

const namespacedName = z.string().regex(/^[^/]+\/[^/]+$/, { error: 'is not NAMESPACE/NAME' })

export const PublishConfig = z.strictObject({
  enabled: z.boolean().default(true),
  sources: z.array(z.enum(SOURCE_KINDS)).default([...unified.sources]),
  children: z.array(z.enum(CHILD_KINDS)).default([...unified.children]),
  namePrefix: z.string().default(unified.namePrefix),
  services: z.array(z.strictObject({ service: namespacedName, className: z.string().optional() })).default([]),
  ingressClassName: z.string().default(unified.ingressClassName),
  defaultIssuerName: z.string().default(unified.defaultIssuerName),
  defaultIssuerKind: z.enum(['Issuer', 'ClusterIssuer']).default(unified.defaultIssuerKind),
  defaultDelegatedDomain: z.string().default(unified.defaultDelegatedDomain),
  allowedDelegatedDomains: z.array(z.string()).default([]),
  allowCustomDelegations: z.boolean().default(unified.allowCustomDelegations),
  revisionHistoryLimit: z.number().int().min(0).default(unified.revisionHistoryLimit),
  propagatedAnnotations: z.array(z.string()).default([]),
  propagatedLabels: z.array(z.string()).default([]),
  allowedDnsNamespaces: z.array(z.string()).default([]),
  allowedIssuerNamespaces: z.array(z.string()).default([]),
  certificateApplyLimit: z.number().min(0).default(unified.certificateApply.perSecond),
  certificateApplyRetryBaseDelay: duration.default('5s'),
  certificateApplyRetryMaxDelay: duration.default('10m'),
  annotationPrefix: z.string().default(unified.annotationPrefix),
  prune: z.boolean().default(unified.prune),
  hostnameTargets: z.boolean().default(unified.hostnameTargets),
  annotations: z.boolean().default(unified.annotations),
  exclude: z.boolean().default(unified.excludeChildren),
  foreign: z.enum(['refuse', 'take']).default(unified.foreign),
  arbitrateHosts: z.boolean().default(unified.arbitrateHosts),
  conditions: z.boolean().default(unified.conditions),
})

export function publishOptions(config: z.output<typeof PublishConfig>): PublishOptions {
  const {
    certificateApplyLimit,
    certificateApplyRetryBaseDelay,
    certificateApplyRetryMaxDelay,
    exclude,
    enabled: _,
    services,
    ...same
  } = config
  return {
    ...same,
    services: services.map(({ service, className }) => ({ service, ...(className !== undefined && { className }) })),
    excludeChildren: exclude,
    certificateApply: {
      perSecond: certificateApplyLimit,
      retryBaseMs: parseDurationMs(certificateApplyRetryBaseDelay) ?? 0,
      retryMaxMs: parseDurationMs(certificateApplyRetryMaxDelay) ?? 0,
    },
    ownedByInSecretTemplate: unified.ownedByInSecretTemplate,
  }
}
