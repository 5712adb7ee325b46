/**
 * The delegation DNSEndpoint: `_acme-challenge.<host>` as a CNAME into a domain that the issuer may write, so that DNS-01
 * works without access of the issuer to the zone. Independent of TLS and of the load balancer's address.
 */
import { apiVersionOf } from '@seamark/kube/object'
import { DNSEndpoint, type Endpoint } from '../../api/dns-endpoint.ts'
import { annotation, keysUnder } from '../annotation-keys.ts'
import { childMetadata, held, unwanted, type ChildDecision } from './child.ts'
import { type Finding, warning } from '../../finding.ts'
import { findHostFault } from '@seamark/dialects'
import { dnsPlace, fitName } from './names.ts'
import type { PublishOptions } from '../options.ts'
import type { Source } from '../sources/source.ts'

const TTL_SECONDS = 3600

export function decideDelegation(source: Source, hosts: readonly string[], options: PublishOptions): ChildDecision {
  const findings: Finding[] = []
  const domain = delegatedDomain(source, options, findings)
  if (domain === '') return unwanted(...findings)
  const endpoints = [...new Set(hosts.map(challengeHost))].map((host) => delegate(host, domain))
  const tooLong = endpoints.find(({ targets }) => (targets[0] ?? '').length > 253)
  if (tooLong !== undefined || findHostFault(trimDots(domain)) !== undefined) {
    const message = `the challenge of ${source.hosts[0]} cannot be delegated to ${domain}: the name is too long or no domain`
    return held(...findings, warning('DelegationInvalid', message))
  }
  const place = dnsPlace(source, options)
  const metadata = childMetadata(source, fitName(`${place.name}-delegation`), place.namespace, options)
  const object = { apiVersion: apiVersionOf(DNSEndpoint), kind: DNSEndpoint.kind, metadata, spec: { endpoints } }
  return { state: 'wanted', desired: [{ role: 'delegation', object }], findings }
}

function delegatedDomain(source: Source, options: PublishOptions, findings: Finding[]): string {
  const asked = annotation(source.annotations, keysUnder(options.annotationPrefix).delegatedDomain) ?? ''
  if (asked === '') return options.defaultDelegatedDomain
  if (options.allowCustomDelegations && options.allowedDelegatedDomains.includes(asked)) return asked
  findings.push(
    warning('DelegationNotAllowed', `annotation delegated-domain names a domain outside the allow-list; it is ignored`),
  )
  return options.defaultDelegatedDomain
}

function trimDots(name: string): string {
  return name.replace(/^\.+|\.+$/g, '')
}

/** A wildcard is validated at its parent (RFC 8555 §8.4). */
export function challengeHost(host: string): string {
  const trimmed = trimDots(host)
  return trimmed.startsWith('*.') ? trimmed.slice(2) : trimmed
}

export function delegate(host: string, domain: string): Endpoint {
  const dnsName = `_acme-challenge.${host}`
  return { dnsName, recordType: 'CNAME', targets: [`${dnsName}.${domain}`], recordTTL: TTL_SECONDS }
}
