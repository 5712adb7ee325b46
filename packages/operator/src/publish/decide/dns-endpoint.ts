/**
 * The main DNSEndpoint of a source: its hosts at the addresses of its load balancer.
 *
 * A before AAAA, targets in the order of the status, TTL 3600: byte for byte contour-plus' object unless a setting beyond
 * it is used. Never an endpoint without targets: without an address the DNSEndpoint is held (INV-1).
 */
import { DNSEndpoint, type Endpoint } from '../../api/dns-endpoint.ts'
import { apiVersionOf } from '@seamark/kube/object'
import { childMetadata, held, type ChildDecision } from './child.ts'
import { type DnsSettings, readDnsSettings } from '../external-dns-annotations.ts'
import { type Finding, note, warning } from '../../finding.ts'
import { dnsPlace, fitName, type Place } from './names.ts'
import type { PublishOptions } from '../options.ts'
import type { Source, Target } from '../sources/source.ts'

const TTL_SECONDS = 3600

const NO_SETTINGS: DnsSettings = { providerSpecific: [], findings: [] }

export function decideDns(
  source: Source,
  /** `kept`: endpoints of other hosts that stay as they are. */
  { hosts, kept }: { readonly hosts: readonly string[]; readonly kept: readonly Endpoint[] },
  target: Target,
  options: PublishOptions,
): ChildDecision {
  const place = dnsPlace(source, options)
  const settings = options.annotations ? readDnsSettings(source.annotations) : NO_SETTINGS
  const findings = [...settings.findings, ...placeFindings(place, 'dns-namespace')]
  const chosen = chooseTargets(target, settings, options, findings)
  if (chosen === undefined) return held(...findings)
  const endpoints = [...hosts.flatMap((host) => endpointsFor(host, chosen, settings)), ...kept]
  const metadata = childMetadata(source, fitName(place.name), place.namespace, options)
  const object = { apiVersion: apiVersionOf(DNSEndpoint), kind: DNSEndpoint.kind, metadata, spec: { endpoints } }
  return { state: 'wanted', desired: [{ role: 'dns', object }], findings }
}

export function placeFindings(place: Place, annotationName: string): Finding[] {
  if (!place.isElsewhere || place.isAllowed) return []
  const message = `annotation ${annotationName} names a namespace outside the allow-list; the object stays in ${place.namespace}`
  return [warning('NamespaceNotAllowed', message)]
}

type Targets = NonNullable<DnsSettings['targets']>

function chooseTargets(
  target: Target,
  settings: DnsSettings,
  options: PublishOptions,
  findings: Finding[],
): Targets | undefined {
  if (settings.targets !== undefined) return settings.targets
  if (target.state === 'unknown') {
    findings.push(target.finding)
    return undefined
  }
  const { inHostname, hostnames, invalid } = target.addresses
  const [v4, v6] = (['v4', 'v6'] as const).map((family) => [
    ...target.addresses[family],
    ...(options.hostnameTargets ? inHostname[family] : []),
  ]) as [string[], string[]]
  if (invalid.length > 0) {
    findings.push(
      warning(
        'TargetInvalid',
        `${target.from} lists ${JSON.stringify(invalid[0])}, which is not a valid IP address or host name; it is skipped`,
      ),
    )
  }
  if (v4.length + v6.length > 0) return { v4, v6 }
  const hostname = [...hostnames, ...inHostname.v4, ...inHostname.v6][0]
  if (hostname === undefined) {
    findings.push(warning('NoLoadBalancerAddress', `no IP address for ${target.from}; published records are unchanged`))
    return undefined
  }
  if (options.hostnameTargets) return { v4: [], v6: [], hostname }
  const message = `${target.from} has the host name ${hostname} and no IP address, and hostname-targets is off`
  findings.push(note('HostnameTargetIgnored', message))
  return undefined
}

function endpointsFor(dnsName: string, targets: Targets, settings: DnsSettings): Endpoint[] {
  if (targets.hostname !== undefined) return [endpoint(dnsName, 'CNAME', [targets.hostname], settings)]
  const endpoints: Endpoint[] = []
  if (targets.v4.length > 0) endpoints.push(endpoint(dnsName, 'A', targets.v4, settings))
  if (targets.v6.length > 0) endpoints.push(endpoint(dnsName, 'AAAA', targets.v6, settings))
  return endpoints
}

function endpoint(
  dnsName: string,
  recordType: Endpoint['recordType'],
  targets: readonly string[],
  settings: DnsSettings,
): Endpoint {
  const { ttl = TTL_SECONDS, setIdentifier, providerSpecific } = settings
  const made: Endpoint = { dnsName, recordType, targets: [...targets], recordTTL: ttl }
  if (setIdentifier !== undefined) made.setIdentifier = setIdentifier
  if (providerSpecific.length > 0) made.providerSpecific = [...providerSpecific]
  return made
}
