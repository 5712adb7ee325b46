/** What a server holds, by a signed transfer: one line a record set, sorted, the SOA among them. */
import { type DnsClient, fqdn, type ServerAddress, TsigKey } from '@seamark/dns'
import type { Key } from '../dns/peers.ts'

export async function zoneLines(client: DnsClient, server: ServerAddress, zone: string, key: Key): Promise<string[]> {
  const sets = await client.transferRRsets({
    server,
    zone: fqdn(zone),
    key: new TsigKey(key.name, key.algorithm, key.secret),
  })
  return sets.map((set) => `${set.name} ${set.ttl} ${set.type} ${set.values.toSorted().join(' | ')}`).sort()
}

export const isSoa = (line: string): boolean => line.includes(' SOA ')
