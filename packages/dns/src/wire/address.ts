/**
 * IP addresses between text and octets. Only the strict forms: four decimal parts for IPv4, RFC 4291 for IPv6 without a
 * zone id; printing follows RFC 5952 as inet_ntop does, so that our text equals dig's.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { DnsError } from '../error.ts'

const notIpv4 = (text: string) => new DnsError('BAD_ADDRESS', `'${text}' is not an IPv4 address`)

/** A parser of its own: `isIPv4` with a split takes five times as long, which counts in a zone of a million addresses. */
export function ipv4Octets(text: string): Uint8Array {
  const octets = new Uint8Array(4)
  let part = 0
  let digits = 0
  let value = 0
  for (let i = 0; i <= text.length; i++) {
    const code = i < text.length ? text.charCodeAt(i) : 0x2e
    if (code === 0x2e) {
      if (digits === 0 || part > 3) throw notIpv4(text)
      octets[part++] = value
      value = digits = 0
      continue
    }
    // Leading zeros are refused: some programs read them as octal.
    if (code < 0x30 || code > 0x39 || (digits > 0 && value === 0)) throw notIpv4(text)
    value = value * 10 + code - 0x30
    if (++digits > 3 || value > 255) throw notIpv4(text)
  }
  if (part !== 4) throw notIpv4(text)
  return octets
}

export const ipv4Text = (octets: Uint8Array): string => octets.join('.')

const words = (part: string): number[] =>
  part === ''
    ? []
    : part.split(':').flatMap((word) => {
        if (!word.includes('.')) return [Number.parseInt(word, 16)]
        const [a, b, c, d] = word.split('.').map(Number) as [number, number, number, number]
        return [a * 256 + b, c * 256 + d]
      })

export function ipv6Octets(text: string): Uint8Array {
  if (!isIPv6(text) || text.includes('%')) throw new DnsError('BAD_ADDRESS', `'${text}' is not an IPv6 address`)
  const [head, tail] = text.split('::')
  const before = words(head!)
  const after = tail === undefined ? [] : words(tail)
  const all = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
  return Uint8Array.from(all.flatMap((word) => [word >> 8, word & 255]))
}

export function ipv6Text(octets: Uint8Array): string {
  const all = Array.from({ length: 8 }, (_, i) => octets[2 * i]! * 256 + octets[2 * i + 1]!)
  let start = 0
  let length = 0
  for (let i = 0, run = 0; i < 8; i++) {
    run = all[i] === 0 ? run + 1 : 0
    if (run > length) {
      length = run
      start = i + 1 - run
    }
  }
  if (start === 0 && (length === 6 || (length === 5 && all[5] === 0xffff))) {
    return `::${length === 5 ? 'ffff:' : ''}${ipv4Text(octets.subarray(12))}`
  }
  const hex = (from: number, to: number) =>
    all
      .slice(from, to)
      .map((word) => word.toString(16))
      .join(':')
  return length < 2 ? hex(0, 8) : `${hex(0, start)}::${hex(start + length, 8)}`
}

/** Octets of either family: 4 or 16. An IPv4-mapped IPv6 address counts as IPv4, as a dual-stack socket reports it. */
export function addressOctets(text: string): Uint8Array {
  if (isIPv4(text)) return ipv4Octets(text)
  const octets = ipv6Octets(text.split('%', 1)[0]!)
  const isMapped = octets[10] === 0xff && octets[11] === 0xff && octets.subarray(0, 10).every((octet) => octet === 0)
  return isMapped ? octets.subarray(12) : octets
}

export const addressText = (octets: Uint8Array): string => (octets.length === 4 ? ipv4Text(octets) : ipv6Text(octets))

export function isLoopback(octets: Uint8Array): boolean {
  if (octets.length === 4) return octets[0] === 127
  return octets[15] === 1 && octets.subarray(0, 15).every((octet) => octet === 0)
}
