/** Settings that only work together: what a configuration lacks, and what to add. Pure. */
import type { BalanceConfig } from './balance/config.ts'
import type { FleetConfig } from './fleet/config.ts'
import type { RecordsConfig } from './records/config.ts'
import type { DnsConfig } from './serve/config.ts'

interface Gap {
  /** Of the setting that lacks another one. */
  readonly path: readonly string[]
  readonly message: string
}

interface Settings {
  readonly dns: Pick<DnsConfig, 'listen' | 'zones'>
  readonly fleet: Pick<FleetConfig, 'enabled' | 'dns' | 'answeredElsewhere'>
  readonly balance: Pick<BalanceConfig, 'enabled'>
  readonly records: Pick<RecordsConfig, 'enabled' | 'providers'> & {
    readonly dnsEndpoints: Pick<RecordsConfig['dnsEndpoints'], 'enabled'>
  }
}

export function findGaps({ dns, fleet, balance, records }: Settings): Gap[] {
  const gaps: Gap[] = []
  if (dns.listen.length > 0 && dns.zones.length === 0)
    gaps.push({
      path: ['dns', 'listen'],
      message: 'a DNS server without zones answers nothing; add dns.zones, such as [example.com]',
    })
  if (dns.zones.length > 0 && dns.listen.length === 0)
    gaps.push({ path: ['dns', 'zones'], message: 'nobody answers for the zones; add dns.listen, such as [":53"]' })
  if (!fleet.enabled || !fleet.dns || fleet.answeredElsewhere) return gaps
  const elsewhere =
    'or set fleet.answeredElsewhere: true where another process such as ExternalDNS publishes the hosts, or fleet.dns: false'
  if (!balance.enabled)
    gaps.push({
      path: ['fleet', 'enabled'],
      message: `no host of the fleet would answer: add balance.enabled: true, which probes and publishes them, ${elsewhere}`,
    })
  const isServed = dns.listen.length > 0 && dns.zones.length > 0
  const isWritten = records.enabled && records.dnsEndpoints.enabled && records.providers.length > 0
  if (balance.enabled && !isServed && !isWritten)
    gaps.push({
      path: ['fleet', 'enabled'],
      message: `no host of the fleet would answer: add dns.listen and dns.zones for the DNS server of the manager, or records.enabled, records.owner, records.dnsEndpoints.enabled and records.providers for another one, ${elsewhere}`,
    })
  return gaps
}
