/**
 * Addresses of a load balancer from its status: an IP address or a host name per entry, rendered canonically.
 *
 * IPv6 is written by RFC 5952 and an IPv4-mapped address is an IPv4 one, as Go's `net.IP` has it: an equal address must give
 * equal text, or a take-over would rewrite every record. Some load balancers report an IP address in `hostname`; it is an
 * address all the same: as the target of a CNAME it would be no name.
 */
import { isIP } from 'node:net'
import { findHostFault, normalizeHost } from './host-name.ts'

export interface IpAddress {
  readonly family: 4 | 6
  readonly text: string
}

/** Of `status.loadBalancer.ingress`; exactly one of the two is expected. */
export interface AddressEntry {
  readonly ip?: string | undefined
  readonly hostname?: string | undefined
}

export type Address =
  | ({ readonly type: 'IPAddress'; readonly field: keyof AddressEntry } & IpAddress)
  | { readonly type: 'Hostname'; readonly text: string }

interface ByFamily {
  readonly v4: readonly string[]
  readonly v6: readonly string[]
}

export interface Addresses extends ByFamily {
  /** IP addresses that are in `hostname`. */
  readonly inHostname: ByFamily
  readonly hostnames: readonly string[]
  /** Entries that are no address at all; they are skipped and reported. */
  readonly invalid: readonly string[]
}

const MAPPED = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/

/** Canonical text and family, or undefined for what is no IP address. */
export function parseAddress(text: string): IpAddress | undefined {
  const family = isIP(text)
  if (family === 4) return { family: 4, text }
  // A zone index (fe80::1%eth0) means nothing outside its host.
  if (family !== 6 || text.includes('%')) return undefined
  // The URL parser implements the IPv6 serializer of RFC 5952 §4.
  const bracketed = new URL(`http://[${text}]`).hostname
  const mapped = MAPPED.exec(bracketed)
  if (mapped === null) return { family: 6, text: bracketed.slice(1, -1) }
  const high = Number.parseInt(mapped[1] ?? '0', 16)
  const low = Number.parseInt(mapped[2] ?? '0', 16)
  return { family: 4, text: [high >> 8, high & 255, low >> 8, low & 255].join('.') }
}

/** Undefined: neither field has a usable address. An `ip` that is none leaves the entry to its `hostname`. */
export function readAddress({ ip = '', hostname = '' }: AddressEntry): Address | undefined {
  const address = parseAddress(ip)
  if (address !== undefined) return { type: 'IPAddress', field: 'ip', ...address }
  const name = normalizeHost(hostname)
  const named = parseAddress(name)
  if (named !== undefined) return { type: 'IPAddress', field: 'hostname', ...named }
  return name !== '' && findHostFault(name) === undefined ? { type: 'Hostname', text: name } : undefined
}

/** In the order given, duplicates kept: contour-plus does neither sort nor dedupe. */
export function sortAddresses(entries: readonly AddressEntry[]): Addresses {
  const given = { v4: [] as string[], v6: [] as string[] }
  const inHostname = { v4: [] as string[], v6: [] as string[] }
  const hostnames: string[] = []
  const invalid: string[] = []
  for (const entry of entries) {
    const { ip = '', hostname = '' } = entry
    const address = readAddress(entry)
    if (ip !== '' && parseAddress(ip) === undefined) invalid.push(ip)
    else if (address === undefined && hostname !== '') invalid.push(hostname)
    if (address === undefined) continue
    if (address.type === 'Hostname') hostnames.push(address.text)
    else (address.field === 'ip' ? given : inHostname)[address.family === 4 ? 'v4' : 'v6'].push(address.text)
  }
  return { ...given, inHostname, hostnames, invalid }
}
