/** How this process reaches its own DNS server, for names of the zones that it has. */
import type { ServerAddress } from '@seamark/dns'
import type { DnsService } from './dns-service.ts'

/** Listening on every address includes loopback. */
export const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Empty: no zone of this server has the name. */
export function ownServers(
  { addresses, zones }: Pick<DnsService, 'addresses' | 'zones'>,
  name: string,
): ServerAddress[] {
  const absolute = `${name.toLowerCase().replace(/\.$/, '')}.`
  const isOurs = zones().some(({ zone }) => absolute === zone || absolute.endsWith(`.${zone}`))
  return isOurs ? addresses.map(({ address, port }) => ({ address: LOOPBACK[address] ?? address, port })) : []
}
