/**
 * Metrics of the DNS server inside the manager, read from its counters when they are scraped: answering a query touches no
 * metric. Types and rcodes are few; a type that is not listed counts as `other`. Never by name: their number is not bounded.
 */
import type { DnsServerCounters } from '@seamark/dns'
import { addReadMetric } from '@seamark/kube/metrics'
import type { Registry } from 'prom-client'
import type { DnsService } from './dns-service.ts'

const TYPES: ReadonlySet<string> = new Set([
  'A',
  'AAAA',
  'ANY',
  'CAA',
  'CNAME',
  'DNSKEY',
  'DS',
  'HTTPS',
  'MX',
  'NS',
  'PTR',
  'SOA',
  'SRV',
  'SVCB',
  'TXT',
])

/** `service` is undefined where the DNS server is not configured: the metrics are registered without values. */
export function createDnsMetrics(
  registry: Registry,
  service: { readonly server: Pick<DnsService['server'], 'counters'>; readonly zones: DnsService['zones'] } | undefined,
): void {
  const total = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    read: (counters: DnsServerCounters) => readonly (readonly [labels: Record<Label, string>, value: number])[],
  ): void =>
    addReadMetric(registry, 'counter', {
      name,
      help,
      labelNames,
      read: () => (service === undefined ? [] : read(service.server.counters())),
    })
  total('seamark_dns_queries_total', 'Questions to the DNS server, by type', ['type'], ({ questions }) => {
    const counts = new Map<string, number>()
    for (const [name, count] of Object.entries(questions)) {
      const type = TYPES.has(name) ? name : 'other'
      counts.set(type, (counts.get(type) ?? 0) + count)
    }
    return [...counts].map(([type, count]) => [{ type }, count])
  })
  total('seamark_dns_responses_total', 'Answers of the DNS server, by rcode', ['rcode'], ({ answers }) =>
    Object.entries(answers).map(([rcode, count]) => [{ rcode }, count]),
  )
  total(
    'seamark_dns_dropped_total',
    'Packets that the DNS server did not answer in full: truncated, over the rate limit, or no query',
    ['reason'],
    ({ truncated, limited, ignored }) => [
      [{ reason: 'truncated' }, truncated],
      [{ reason: 'limited' }, limited],
      [{ reason: 'ignored' }, ignored],
    ],
  )
  total(
    'seamark_dns_transfers_total',
    'Zone transfers sent, whole (AXFR) or changes only (IXFR)',
    ['kind'],
    ({ transfers, incrementalTransfers }) => [
      [{ kind: 'AXFR' }, transfers - incrementalTransfers],
      [{ kind: 'IXFR' }, incrementalTransfers],
    ],
  )
  total('seamark_dns_updates_total', 'Dynamic updates (RFC 2136) that changed a zone', [], ({ updates }) => [
    [{}, updates],
  ])
  addReadMetric(registry, 'gauge', {
    name: 'seamark_dns_tcp_connections',
    help: 'Open TCP connections of the DNS server',
    read: () => [[{}, service?.server.counters().tcpConnections ?? 0]],
  })
  const zoneGauge = (
    name: string,
    help: string,
    read: (zone: ReturnType<DnsService['zones']>[number]) => number | undefined,
  ): void =>
    addReadMetric(registry, 'gauge', {
      name,
      help,
      labelNames: ['zone'],
      read: () =>
        (service?.zones() ?? []).flatMap((zone) => {
          const value = read(zone)
          return value === undefined ? [] : [[{ zone: zone.zone }, value]]
        }),
    })
  zoneGauge('seamark_dns_zone_serial', 'Serial of the SOA of each zone', ({ serial }) => serial)
  zoneGauge(
    'seamark_dns_zone_served',
    '1 while the names of a zone are answered, 0 while they are refused',
    ({ isServed }) => (isServed ? 1 : 0),
  )
}
