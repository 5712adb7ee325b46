/**
 * Configuration of DNS providers: one schema for each type, discriminated by `type`. Part of the records section.
 * Secrets are referenced (environment variable, file, or key of a Secret), never written into the configuration.
 */
import { TSIG_ALGORITHMS } from '@seamark/dns'
import { z } from 'zod'

/** Exactly one of them. */
export const SecretRef = z.union([
  z.strictObject({ env: z.string() }),
  z.strictObject({ file: z.string() }),
  z.strictObject({ secret: z.string().regex(/^[^/]+\/[^/]+$/, 'is namespace/name'), key: z.string() }),
])
export type SecretRef = z.output<typeof SecretRef>

/** A password in a URL would appear in every message that contains the URL. */
const plainUrl = z.url().refine((text) => {
  const { username, password } = URL.canParse(text) ? new URL(text) : { username: '', password: '' }
  return username === '' && password === ''
}, 'has a user name or password; name credentials with a Secret, a file or the environment')

const common = {
  name: z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'is lower-case letters, digits and hyphens'),
  /** Zones by name; for aws also by id. Absent: all zones of the service, where it can list them. */
  zones: z.array(z.string()).optional(),
  requestsPerSecond: z.number().positive().max(1000).optional(),
}
const tsigKey = z.strictObject({
  name: z.string(),
  algorithm: z.enum(TSIG_ALGORITHMS).default('hmac-sha256'),
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
    url: plainUrl,
    apiKeyFrom: SecretRef,
    serverId: z.string().default('localhost'),
  }),
  z.strictObject({
    ...common,
    type: z.literal('aws'),
    /** Absent: the SDK's credential chain. */
    credentials: z
      .strictObject({
        accessKeyIdFrom: SecretRef,
        secretAccessKeyFrom: SecretRef,
        sessionTokenFrom: SecretRef.optional(),
      })
      .optional(),
    /** Providers with the same account share one rate limit. */
    account: z.string().optional(),
    region: z.string().optional(),
    endpoint: plainUrl.optional(),
    visibility: z.enum(['public', 'private']).optional(),
  }),
  z.strictObject({
    ...common,
    type: z.literal('webhook'),
    url: plainUrl,
    defaultTtl: z.number().int().positive().default(300),
  }),
  z.strictObject({
    ...common,
    type: z.literal('coredns'),
    /** Of etcd: `http://127.0.0.1:2379`. */
    url: plainUrl,
    zones: z.array(z.string()).min(1),
    /** As `path` of CoreDNS' etcd plug-in. */
    prefix: z.string().startsWith('/').default('/skydns'),
    username: z.string().optional(),
    passwordFrom: SecretRef.optional(),
  }),
  z.strictObject({
    ...common,
    type: z.literal('dnsendpoint'),
    zones: z.array(z.string()).min(1),
    namespace: z.string(),
  }),
])
export type ProviderConfig = z.output<typeof ProviderConfig>
