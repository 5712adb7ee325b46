/**
 * The `records` section of the manager's configuration: owner, providers, zones and limits. Without `enabled` its settings, other
 * than owner, cluster, key and providers, are those of the zones of our own DNS server.
 * Secrets are referenced (environment variable, file, or key of a Secret), never written into the configuration.
 */
import { parseLabelSelector } from '@seamark/kube/object'
import { LIVE } from '../live-setting.ts'
import { z } from 'zod'
import { ProviderConfig, SecretRef } from '../providers/config.ts'
import { DEFAULT_ENDPOINT_LIMITS } from './sync/tenants/tenant-limits.ts'
import { isFieldText } from '../rrset/marker.ts'
import { canonicalName, isInvalid, MANAGEABLE_TYPES } from '../rrset/rrset.ts'

export const RecordsConfig = z
  .strictObject({
    enabled: z.boolean().default(false).describe('write DNS records through the configured providers'),
    /** Required with `enabled`: two installations with the same default would overwrite each other's records. */
    owner: z.string().default('').describe('owner id in the ownership markers; required, unique per installation'),
    cluster: z
      .string()
      .default('')
      .describe('cluster id in the ownership markers; empty: the UID of the namespace kube-system'),
    zones: z
      .array(z.string())
      .default([])
      .describe('write only to these zones of the providers; empty: to all of them')
      .meta(LIVE),
    defaultTtl: z
      .number()
      .int()
      .min(1)
      .max(86_400)
      .default(300)
      .describe('TTL in seconds of records whose source gives none')
      .meta(LIVE),
    types: z
      .array(z.enum(MANAGEABLE_TYPES))
      .default(['A', 'AAAA', 'CNAME'])
      .describe('record types that are managed')
      .meta(LIVE),
    stateFolder: z
      .string()
      .default('')
      .describe("folder of the guard state and applied plans; empty: ConfigMaps in the manager's namespace"),
    dnsEndpoints: z
      .strictObject({
        enabled: z.boolean().default(false).describe('serve DNSEndpoints, instead of leaving them to ExternalDNS'),
        labelFilter: z
          .string()
          .default('')
          .describe('serve only DNSEndpoints that match this label selector')
          .meta(LIVE),
        annotationFilter: z
          .string()
          .default('')
          .describe('serve only DNSEndpoints whose annotations match this selector')
          .meta(LIVE),
        namespace: z.string().default('').describe('serve only DNSEndpoints of this namespace; empty: of all'),
        trustedNamespaces: z
          .array(z.string())
          .default([])
          .describe('namespaces whose annotations seamark.io/adopt and seamark.io/approve count; *: every namespace')
          .meta(LIVE),
        maxPerObject: z
          .number()
          .int()
          .min(1)
          .default(DEFAULT_ENDPOINT_LIMITS.perObject)
          .describe('endpoints of one DNSEndpoint; an object with more is not served, and what is published stays')
          .meta(LIVE),
        maxPerNamespace: z
          .number()
          .int()
          .min(1)
          .default(DEFAULT_ENDPOINT_LIMITS.perNamespace)
          .describe("endpoints of all DNSEndpoints of a namespace, oldest objects first; not of the manager's own")
          .meta(LIVE),
      })
      .prefault({}),
    /** The TXT registry settings of an ExternalDNS that uses the same zones. */
    registry: z
      .strictObject({
        kind: z.string().default('txt').describe('registry of an ExternalDNS in the same zones, as its --registry'),
        prefix: z.string().default('').describe('prefix of its TXT names, as --txt-prefix'),
        suffix: z.string().default('').describe('suffix of its TXT names, as --txt-suffix'),
        wildcardReplacement: z
          .string()
          .default('')
          .describe('replacement of * in its TXT names, as --txt-wildcard-replacement'),
        aesKeyFrom: SecretRef.optional(),
        dnslbIdentity: z
          .string()
          .default('')
          .describe(
            '--identity of a dnslb-controller-manager in the same zones: load balancers take over its records of their names',
          ),
      })
      .prefault({}),
    /** Key of the HMAC on our markers. With a key, markers without a valid HMAC are rejected. */
    markerKeyFrom: SecretRef.optional(),
    providers: z.array(ProviderConfig).default([]).describe('DNS providers, each {name, type, …}; see docs/providers'),
  })
  .superRefine((config, context) => {
    if (config.owner !== '' && (!isFieldText(config.owner) || config.owner.length > 63)) {
      context.addIssue({
        code: 'custom',
        path: ['owner'],
        message: 'has 1 to 63 visible ASCII characters, none of ", comma, =, \\ and |',
      })
    }
    if (config.enabled && config.owner === '') {
      context.addIssue({
        code: 'custom',
        path: ['owner'],
        message:
          'is required: it distinguishes the records of this installation from those of others, and has no default',
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
