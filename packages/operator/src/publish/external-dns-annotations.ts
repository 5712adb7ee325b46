/**
 * ExternalDNS' annotations on a source. ExternalDNS ignores them on a DNSEndpoint, so TTL, target, set identifier and
 * provider-specific settings are written into the DNSEndpoint itself.
 *
 * Each value is accepted or refused as a whole, with a finding: an invalid TTL never prevents a record.
 */
import { parseAddress, findHostFault, normalizeHost } from '@seamark/dialects'
import { annotation, type Annotations, EXTERNAL_DNS_PREFIXES } from './annotation-keys.ts'
import { type Finding, warning } from '../finding.ts'
import { parseDurationMs } from './flags.ts'

export interface DnsSettings {
  readonly ttl?: number
  /** Replaces the addresses of the load balancer. */
  readonly targets?: { readonly v4: readonly string[]; readonly v6: readonly string[]; readonly hostname?: string }
  readonly setIdentifier?: string
  readonly providerSpecific: readonly { name: string; value: string }[]
  readonly findings: readonly Finding[]
}

const NO_SETTINGS: DnsSettings = { providerSpecific: [], findings: [] }
/** RFC 2181 §8. */
const TTL_LIMIT = 2 ** 31 - 1
const TEXT_LIMIT = 255
/** Annotation prefixes whose settings ExternalDNS names `<provider>/<setting>`. */
const PROVIDERS = ['aws', 'scw', 'ibmcloud', 'coredns', 'webhook'] as const

/** The new prefix wins. */
export function externalDns(annotations: Annotations, name: string): string | undefined {
  for (const prefix of EXTERNAL_DNS_PREFIXES) {
    const value = annotation(annotations, `${prefix}${name}`)
    if (value !== undefined) return value
  }
  return undefined
}

export function readDnsSettings(annotations: Annotations): DnsSettings {
  const keys = Object.keys(annotations).filter((key) => EXTERNAL_DNS_PREFIXES.some((prefix) => key.startsWith(prefix)))
  if (keys.length === 0) return NO_SETTINGS
  const findings: Finding[] = []
  const ttl = readTtl(externalDns(annotations, 'ttl'), findings)
  const targets = readTargets(externalDns(annotations, 'target'), findings)
  const setIdentifier = readText(externalDns(annotations, 'set-identifier'), 'set-identifier', findings)
  return {
    ...(ttl !== undefined && { ttl }),
    ...(targets !== undefined && { targets }),
    ...(setIdentifier !== undefined && { setIdentifier }),
    providerSpecific: readProviderSpecific(annotations, keys, findings),
    findings,
  }
}

function refuse(findings: Finding[], name: string, value: string, why: string): undefined {
  findings.push(
    warning('AnnotationInvalid', `annotation ${name}: ${JSON.stringify(value.slice(0, 100))} ${why}; it is ignored`),
  )
  return undefined
}

/** Seconds, or a Go duration of whole seconds. */
function readTtl(text: string | undefined, findings: Finding[]): number | undefined {
  if (text === undefined) return undefined
  const seconds = /^\d+$/.test(text) ? Number(text) : (parseDurationMs(text) ?? Number.NaN) / 1_000
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= TTL_LIMIT) return seconds
  return refuse(findings, 'ttl', text, `is no TTL between 1 s and ${TTL_LIMIT} s`)
}

function readTargets(text: string | undefined, findings: Finding[]): DnsSettings['targets'] {
  if (text === undefined) return undefined
  const v4 = new Set<string>()
  const v6 = new Set<string>()
  const hostnames = new Set<string>()
  for (const item of text.split(',').map((part) => part.trim())) {
    const address = parseAddress(item)
    if (address !== undefined) {
      if (isUnspecified(address.text))
        return refuse(findings, 'target', text, `names the unspecified address ${address.text}`)
      ;(address.family === 4 ? v4 : v6).add(address.text)
      continue
    }
    const host = normalizeHost(item)
    const fault = host.startsWith('*') ? 'is a wildcard' : (findHostFault(host) ?? findNumericFault(host))
    if (fault !== undefined)
      return refuse(findings, 'target', text, `holds ${JSON.stringify(item.slice(0, 63))}, which ${fault}`)
    hostnames.add(host)
  }
  const [hostname, second] = hostnames
  if (second !== undefined) return refuse(findings, 'target', text, 'names two hosts, and a CNAME has one target')
  if (hostname !== undefined && v4.size + v6.size > 0) {
    return refuse(findings, 'target', text, 'mixes addresses and a host name')
  }
  return { v4: [...v4], v6: [...v6], ...(hostname !== undefined && { hostname }) }
}

function isUnspecified(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}

/** `010.1` or `999.1.1.1` have the form of labels, and resolvers parse them as addresses. */
function findNumericFault(host: string): string | undefined {
  return /^\d+$/.test(host.slice(host.lastIndexOf('.') + 1)) ? 'ends in a number and is no address' : undefined
}

function readText(text: string | undefined, name: string, findings: Finding[]): string | undefined {
  if (text === undefined || text === '') return undefined
  if (text.length <= TEXT_LIMIT && isPrintable(text)) return text
  return refuse(findings, name, text, `is longer than ${TEXT_LIMIT} bytes or has control characters`)
}

function isPrintable(text: string): boolean {
  return /^[\u0020-\u007e]*$/.test(text)
}

function readProviderSpecific(
  annotations: Annotations,
  keys: readonly string[],
  findings: Finding[],
): DnsSettings['providerSpecific'] {
  const settings = new Map<string, string>()
  if (externalDns(annotations, 'alias') === 'true') settings.set('alias', 'true')
  // Old prefix first, so that the new one overwrites it.
  for (const prefix of EXTERNAL_DNS_PREFIXES.toReversed()) {
    for (const key of keys) {
      if (!key.startsWith(prefix)) continue
      const name = propertyName(key.slice(prefix.length))
      const value = annotation(annotations, key) ?? ''
      if (name === undefined) continue
      if (isPrintable(value) && value.length <= 1024) settings.set(name, value)
      else refuse(findings, key.slice(prefix.length), value, 'is longer than 1024 bytes or has control characters')
    }
  }
  return [...settings].map(([name, value]) => ({ name, value })).toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function propertyName(setting: string): string | undefined {
  // Cloudflare's settings use the whole annotation as their name; ExternalDNS looks them up under the old prefix.
  if (setting.startsWith('cloudflare-')) return `${EXTERNAL_DNS_PREFIXES[1]}${setting}`
  const provider = PROVIDERS.find((name) => setting.startsWith(`${name}-`))
  return provider === undefined ? undefined : `${provider}/${setting.slice(provider.length + 1)}`
}
