/** The settings of records for the zones of the manager's own DNS server, for the manager and for commands. */
import type { ManagerConfiguration } from '../config.ts'
import type { RecordsConfig } from '../records/config.ts'

/** The zones of our own server have one writer: their markers need no owner id to distinguish installations, and no key. */
const OWN_ZONES_OWNER = 'seamark'

/** Without `records.enabled`: DNSEndpoints become records of these zones only. */
export function ownZonesRecords(config: RecordsConfig): RecordsConfig {
  const { markerKeyFrom: _, dnsEndpoints, ...settings } = config
  const identity = { owner: OWN_ZONES_OWNER, cluster: '', providers: [] }
  return { ...settings, ...identity, enabled: true, dnsEndpoints: { ...dnsEndpoints, enabled: true } }
}

/** The settings that a manager with this configuration has. */
export function recordsInUse({ records, dns }: Pick<ManagerConfiguration, 'records' | 'dns'>): RecordsConfig {
  return records.enabled || dns.listen.length === 0 ? records : ownZonesRecords(records)
}
