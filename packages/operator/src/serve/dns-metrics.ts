/**
 * Metrics of the DNS server inside the manager, read from its counters when they are scraped: answering a query touches no
 * metric. Types and rcodes are few; a type that is not listed counts as `other`. Never by name: their number is not bounded.
 */
import type { DnsServerCounters } from '@seamark/dns'
import { Counter, Gauge, type Registry } from 'prom-client'
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
  /** A counter whose total is read; prom-client's own is only incremented. */
  const total = <Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    read: (counters: DnsServerCounters) => readonly (readonly [labels: Record<Label, string>, value: number])[],
  ): void => {
    const metric = new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [],
      collect() {
        this.reset()
        if (service === undefined) return
        for (const [labels, value] of read(service.server.counters())) this.inc(labels, value)
      },
    })
    registry.registerMetric(metric)
  }
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
  const connections = new Gauge({
    name: 'seamark_dns_tcp_connections',
    help: 'Open TCP connections of the DNS server',
    registers: [],
    collect() {
      this.set(service?.server.counters().tcpConnections ?? 0)
    },
  })
  registry.registerMetric(connections)
  const zoneGauge = (
    name: string,
    help: string,
    read: (zone: ReturnType<DnsService['zones']>[number]) => number | undefined,
  ): void => {
    const metric = new Gauge({
      name,
      help,
      labelNames: ['zone'] as const,
      registers: [],
      collect() {
        this.reset()
        for (const zone of service?.zones() ?? []) {
          const value = read(zone)
          if (value !== undefined) this.set({ zone: zone.zone }, value)
        }
      },
    })
    registry.registerMetric(metric)
  }
  zoneGauge('seamark_dns_zone_serial', 'Serial of the SOA of each zone', ({ serial }) => serial)
  zoneGauge(
    'seamark_dns_zone_served',
    '1 while the names of a zone are answered, 0 while they are refused',
    ({ isServed }) => (isServed ? 1 : 0),
  )
}
