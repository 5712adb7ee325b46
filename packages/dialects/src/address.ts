/**
 * Addresses of a load balancer from its status, sorted into IPv4, IPv6 and host names, rendered canonically.
 *
 * IPv6 is written by RFC 5952 and an IPv4-mapped address is an IPv4 one, as Go's `net.IP` has it: an equal address must give
 * equal text, or a take-over would rewrite every record.
 */
import { isIP } from 'node:net'
import { findHostFault, normalizeHost } from './host-name.ts'

export interface Addresses {
  readonly v4: readonly string[]
  readonly v6: readonly string[]
  readonly hostnames: readonly string[]
  /** Entries that are no address at all; they are skipped and reported. */
  readonly invalid: readonly string[]
}

const MAPPED = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/

/** Canonical text and family, or undefined for what is no IP address. */
export function parseAddress(text: string): { family: 4 | 6; text: string } | undefined {
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

/** In the order given, duplicates kept: contour-plus does neither sort nor dedupe. */
export function sortAddresses(entries: readonly { readonly ip?: string; readonly hostname?: string }[]): Addresses {
  const v4: string[] = []
  const v6: string[] = []
  const hostnames: string[] = []
  const invalid: string[] = []
  for (const { ip, hostname } of entries) {
    if (ip !== undefined && ip !== '') {
      const parsed = parseAddress(ip)
      if (parsed === undefined) invalid.push(ip)
      else (parsed.family === 4 ? v4 : v6).push(parsed.text)
    } else if (hostname !== undefined && hostname !== '') {
      const name = normalizeHost(hostname)
      if (findHostFault(name) === undefined && isIP(name) === 0) hostnames.push(name)
      else invalid.push(hostname)
    }
  }
  return { v4, v6, hostnames, invalid }
}
