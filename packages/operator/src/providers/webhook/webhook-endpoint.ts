/**
 * The endpoint of ExternalDNS' webhook protocol, and its mapping to RRsets. Used by the client and the server.
 * Names have no final dot in the protocol; a TXT target may be quoted or not.
 */
import { z } from 'zod'
import {
  canonicalName,
  canonicalValue,
  isInvalid,
  type ObservedRRset,
  type RRset,
  sortedUnique,
} from '../../rrset/rrset.ts'

export const MEDIA_TYPE = 'application/external.dns.webhook+json;version=1'

export const endpointSchema = z.object({
  dnsName: z.string().default(''),
  targets: z.array(z.string()).nullish(),
  recordType: z.string().default(''),
  setIdentifier: z.string().optional(),
  recordTTL: z.number().optional(),
  labels: z.record(z.string(), z.string()).nullish(),
  providerSpecific: z.array(z.object({ name: z.string().default(''), value: z.string().default('') })).nullish(),
})
export type WebhookEndpoint = z.infer<typeof endpointSchema>
export const endpointsSchema = z.array(endpointSchema).nullable()

/** Endpoints are validated one by one later: a request may contain hundreds of thousands. */
export const unparsedEndpointsSchema = z.array(z.unknown()).nullish()

export const changesSchema = z.object({
  create: unparsedEndpointsSchema,
  updateOld: unparsedEndpointsSchema,
  updateNew: unparsedEndpointsSchema,
  delete: unparsedEndpointsSchema,
})

const HOST_TYPES = new Set(['CNAME', 'NS', 'PTR', 'DNAME'])

export function toEndpoint(set: RRset): WebhookEndpoint {
  return {
    dnsName: withoutDot(set.name),
    recordType: set.type,
    recordTTL: set.ttl,
    targets: set.values.map((value) =>
      HOST_TYPES.has(set.type) || set.type === 'MX' || set.type === 'SRV' ? withoutDot(value) : value,
    ),
  }
}

/** `defaultTtl` is used for an endpoint without a TTL. */
export function fromEndpoint(endpoint: WebhookEndpoint, defaultTtl: number): ObservedRRset {
  const type = endpoint.recordType.toUpperCase()
  const name = canonicalName(endpoint.dnsName)
  const values = (endpoint.targets ?? []).map((target) => {
    const value = canonicalValue(type, target)
    return isInvalid(value) ? target : value
  })
  const ttl = endpoint.recordTTL === undefined || endpoint.recordTTL <= 0 ? defaultTtl : endpoint.recordTTL
  const set = {
    name: isInvalid(name) ? `${endpoint.dnsName.toLowerCase()}.` : name,
    type,
    ttl,
    values: sortedUnique(values),
  }
  const special = endpoint.setIdentifier !== undefined && endpoint.setIdentifier !== ''
  const isAlias = (endpoint.providerSpecific ?? []).some((item) => item.name === 'alias' && item.value !== 'false')
  if (special) return { ...set, opaque: `a routing policy (${endpoint.setIdentifier})` }
  return isAlias ? { ...set, opaque: 'an alias' } : set
}

function withoutDot(text: string): string {
  return text.endsWith('.') && text !== '.' ? text.slice(0, -1) : text
}
