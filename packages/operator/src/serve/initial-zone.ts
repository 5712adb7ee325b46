/** The first version of a served zone: an SOA and NS of its own, or the content of a zone file. Pure but for reading the file. */
import { dirname, resolve } from 'node:path'
import { isIP } from 'node:net'
import {
  createRRset,
  createZone,
  type Fqdn,
  fqdn,
  isSubdomain,
  isZoneFileError,
  loadZoneFile,
  readRegularFile,
  type RRset,
  type Zone,
} from '@seamark/dns'
import { splitPair } from './config.ts'

export interface InitialZoneOptions {
  /** NAME or NAME=ADDRESS, as in `dns.nameServers`. */
  readonly nameServers: readonly string[]
  /** Addresses that the server listens on; unspecified ones (0.0.0.0, ::) are left out. */
  readonly addresses: readonly string[]
  readonly serial: number
}

/** Seconds. Secondaries are notified of changes (NOTIFY); refresh is for a NOTIFY that was lost. */
const SOA_TIMES = { refresh: 300, retry: 60, expire: 1_209_600, minimum: 60 }
const TTL = 300

export function initialZone(origin: Fqdn, { nameServers, addresses, serial }: InitialZoneOptions): Zone {
  const own = addresses.filter((address) => address !== '0.0.0.0' && address !== '::')
  const servers =
    nameServers.length === 0
      ? [{ name: fqdn(`ns1.${origin}`), addresses: own }]
      : nameServers.map((text) => {
          const { name, value } = splitPair(text)
          return { name: fqdn(name), addresses: value === undefined ? own : [value] }
        })
  const { refresh, retry, expire, minimum } = SOA_TIMES
  const sets: RRset[] = [
    createRRset(origin, 'SOA', TTL, [
      `${servers[0]?.name} hostmaster.${origin} ${serial} ${refresh} ${retry} ${expire} ${minimum}`,
    ]),
    createRRset(
      origin,
      'NS',
      TTL,
      servers.map(({ name }) => name),
    ),
  ]
  for (const server of servers) {
    if (!isSubdomain(server.name, origin)) continue
    const v4 = server.addresses.filter((address) => isIP(address) === 4)
    const v6 = server.addresses.filter((address) => isIP(address) === 6)
    if (v4.length > 0) sets.push(createRRset(server.name, 'A', TTL, v4))
    if (v6.length > 0) sets.push(createRRset(server.name, 'AAAA', TTL, v6))
  }
  return createZone(origin, sets)
}

/** Throws with `file:line: reason` when the file is no zone of this name. */
export function zoneFromFile(origin: Fqdn, file: string): Zone {
  const include = (name: string) => readRegularFile(resolve(dirname(file), name))
  const zone = loadZoneFile(readRegularFile(file), { file, include, origin })
  if (isZoneFileError(zone)) throw new Error(`${zone.file}:${zone.line}: ${zone.reason}`)
  if (zone.origin !== origin) throw new Error(`${file}: is a file of zone ${zone.origin}, not of ${origin}`)
  return zone
}
