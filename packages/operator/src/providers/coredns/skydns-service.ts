/**
 * The JSON of one record in SkyDNS' layout, which CoreDNS' etcd plug-in reads
 * (https://github.com/skynetservices/skydns, "Service"). Pure.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { z } from 'zod'
import { txtText, txtValue } from '../../rrset/rrset.ts'

const Service = z.object({
  host: z.string().optional(),
  text: z.string().optional(),
  port: z.number().int().optional(),
  priority: z.number().int().optional(),
  weight: z.number().int().optional(),
  mail: z.boolean().optional(),
  ttl: z.number().int().min(0).optional(),
})

/** CoreDNS' default for records without a TTL. */
const DEFAULT_TTL = 300

/** Undefined: the layout cannot express the record. */
export function toService(type: string, value: string, ttl: number): string | undefined {
  const parts = value.split(' ')
  const host = (text = ''): string => text.replace(/\.$/, '')
  switch (type) {
    case 'A':
    case 'AAAA':
      return JSON.stringify({ host: value, ttl })
    case 'CNAME':
      return JSON.stringify({ host: host(value), ttl })
    case 'TXT': {
      const text = txtText(value)
      return text === undefined ? undefined : JSON.stringify({ text, ttl })
    }
    case 'MX':
      return JSON.stringify({ host: host(parts[1]), mail: true, priority: Number(parts[0]), ttl })
    case 'SRV': {
      const [priority, weight, port] = parts.map(Number)
      return JSON.stringify({ host: host(parts[3]), port, priority, weight, ttl })
    }
    default:
      return undefined
  }
}

/** `type` as our own keys state it; that of another writer's record is inferred, as CoreDNS does. */
export function readService(
  json: string,
  type: string | undefined,
): { readonly type: string; readonly value: string; readonly ttl: number } | undefined {
  let document: unknown
  try {
    document = JSON.parse(json)
  } catch {
    return undefined
  }
  const parsed = Service.safeParse(document)
  if (!parsed.success) return undefined
  const { host = '', text = '', port = 0, priority = 0, weight = 0, mail = false, ttl = DEFAULT_TTL } = parsed.data
  const inferred = isIPv4(host)
    ? 'A'
    : isIPv6(host)
      ? 'AAAA'
      : mail
        ? 'MX'
        : host === ''
          ? 'TXT'
          : port > 0
            ? 'SRV'
            : 'CNAME'
  const kind = type ?? inferred
  switch (kind) {
    case 'TXT':
      return { type: kind, value: txtValue(text), ttl }
    case 'MX':
      return { type: kind, value: `${priority} ${host}.`, ttl }
    case 'SRV':
      return { type: kind, value: `${priority} ${weight} ${port} ${host}.`, ttl }
    case 'CNAME':
      return { type: kind, value: `${host}.`, ttl }
    default:
      return { type: kind, value: host, ttl }
  }
}
