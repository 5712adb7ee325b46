/**
 * The records part of the manager's configuration: who we are, which providers and zones there are, what may be written.
 * Secrets are named (environment, file, or one Secret by name), never written into the configuration.
 */
import { z } from 'zod'
import { ProviderConfig, SecretRef } from '../providers/config.ts'
import { isFieldText } from '../rrset/marker.ts'
import { canonicalName, isInvalid, MANAGEABLE_TYPES } from '../rrset/rrset.ts'
import { parseSelector } from './sync/selector.ts'

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
        /** Namespaces whose annotations seamark.io/adopt and seamark.io/approve count; * is every one. */
        trustedNamespaces: z.array(z.string()).default([]),
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
      const selector = parseSelector(config.dnsEndpoints[filter])
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
