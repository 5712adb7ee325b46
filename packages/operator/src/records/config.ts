/**
 * The records part of the manager's configuration: who we are, which providers and zones there are, what may be written.
 * Secrets are named (environment, file, or one Secret by name), never written into the configuration.
 */
import { parseLabelSelector } from '@seamark/kube/object'
import { z } from 'zod'
import { isFieldText } from '../rrset/marker.ts'
import { canonicalName, isInvalid, MANAGEABLE_TYPES } from '../rrset/rrset.ts'

/** Exactly one of them. */
export const SecretRef = z.union([
  z.strictObject({ env: z.string() }),
  z.strictObject({ file: z.string() }),
  z.strictObject({ secret: z.string().regex(/^[^/]+\/[^/]+$/, 'is namespace/name'), key: z.string() }),
])
export type SecretRef = z.output<typeof SecretRef>

const common = {
  name: z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'is lower-case letters, digits and hyphens'),
  /** Zones by name; for aws also by id. Absent: all that the service has, where it can be asked. */
  zones: z.array(z.string()).optional(),
  requestsPerSecond: z.number().positive().max(1000).optional(),
}
const tsigKey = z.strictObject({
  name: z.string(),
  algorithm: z.string().default('hmac-sha256'),
  secretFrom: SecretRef,
})

export const ProviderConfig = z.discriminatedUnion('type', [
  z.strictObject({ ...common, type: z.literal('memory'), zones: z.array(z.string()).min(1) }),
  z.strictObject({
    ...common,
    type: z.literal('rfc2136'),
    zones: z.array(z.string()).min(1),
    /** `192.0.2.1:53` */
    server: z.string(),
    key: tsigKey.optional(),
    transfer: z.strictObject({ server: z.string().optional(), key: tsigKey.optional() }).optional(),
  }),
  z.strictObject({
    ...common,
    type: z.literal('powerdns'),
    url: z.url(),
    apiKeyFrom: SecretRef,
    serverId: z.string().default('localhost'),
  }),
  z.strictObject({
    ...common,
    type: z.literal('aws'),
    /** Absent: the SDK's chain. */
    credentials: z
      .strictObject({
        accessKeyIdFrom: SecretRef,
        secretAccessKeyFrom: SecretRef,
        sessionTokenFrom: SecretRef.optional(),
      })
      .optional(),
    /** Providers with one account share one rate limit. */
    account: z.string().optional(),
    region: z.string().optional(),
    endpoint: z.url().optional(),
    visibility: z.enum(['public', 'private']).optional(),
  }),
  z.strictObject({
    ...common,
    type: z.literal('webhook'),
    url: z.url(),
    defaultTtl: z.number().int().positive().default(300),
  }),
  z.strictObject({
    ...common,
    type: z.literal('dnsendpoint'),
    zones: z.array(z.string()).min(1),
    namespace: z.string(),
  }),
])
export type ProviderConfig = z.output<typeof ProviderConfig>

export const RecordsConfig = z
  .strictObject({
    enabled: z.boolean().default(false),
    /** Required with `enabled`: two installations with one default would fight over records. */
    owner: z.string().default(''),
    /** '' is the UID of the namespace kube-system. */
    cluster: z.string().default(''),
    /** Only these zones, of all that the providers have; empty is all of them. */
    zones: z.array(z.string()).default([]),
    /** Seconds, for wishes without one. */
    defaultTtl: z.number().int().min(1).max(86_400).default(300),
    types: z.array(z.enum(MANAGEABLE_TYPES)).default(['A', 'AAAA', 'CNAME']),
    /** Folder of the guard state; '' keeps it in a ConfigMap beside the manager. */
    stateFolder: z.string().default(''),
    dnsEndpoints: z
      .strictObject({
        /** Serve DNSEndpoints ourselves, instead of leaving them to ExternalDNS. */
        enabled: z.boolean().default(false),
        labelFilter: z.string().default(''),
        annotationFilter: z.string().default(''),
        /** '' is all namespaces. */
        namespace: z.string().default(''),
      })
      .prefault({}),
    /** How ExternalDNS, if it is there, writes down what it owns. */
    registry: z
      .strictObject({
        kind: z.string().default('txt'),
        prefix: z.string().default(''),
        suffix: z.string().default(''),
        wildcardReplacement: z.string().default(''),
        aesKeyFrom: SecretRef.optional(),
      })
      .prefault({}),
    /** Signs our markers, and is then required of every marker we believe. */
    markerKeyFrom: SecretRef.optional(),
    providers: z.array(ProviderConfig).default([]),
  })
  .superRefine((config, context) => {
    if (config.owner !== '' && (!isFieldText(config.owner) || config.owner.length > 63)) {
      context.addIssue({
        code: 'custom',
        path: ['owner'],
        message: 'has 1 to 63 characters without spaces, quotes, commas, equals or bars',
      })
    }
    if (config.enabled && config.owner === '') {
      context.addIssue({
        code: 'custom',
        path: ['owner'],
        message: 'is required: it tells your records from those of others, and has no default',
      })
    }
    for (const filter of ['labelFilter', 'annotationFilter'] as const) {
      const selector = parseLabelSelector(config.dnsEndpoints[filter], { hasFreeValues: filter === 'annotationFilter' })
      if (isInvalid(selector))
        context.addIssue({ code: 'custom', path: ['dnsEndpoints', filter], message: selector.invalid })
    }
    for (const zone of config.zones) {
      const name = canonicalName(zone)
      if (isInvalid(name)) context.addIssue({ code: 'custom', path: ['zones'], message: `'${zone}': ${name.invalid}` })
    }
    const names = config.providers.map(({ name }) => name)
    const doubled = names.find((name, index) => names.indexOf(name) !== index)
    if (doubled !== undefined)
      context.addIssue({ code: 'custom', path: ['providers'], message: `the name '${doubled}' is used twice` })
  })
export type RecordsConfig = z.output<typeof RecordsConfig>
