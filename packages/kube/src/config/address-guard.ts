/**
 * Checks the addresses that an untrusted URL or name resolves to (prevents server-side request forgery). A guard is
 * called for every resolved address, and the connection is made to the address that was checked, so a second, different
 * DNS response has no effect.
 *
 * Private ranges are allowed by default, because member clusters use them. Loopback, link-local (cloud metadata),
 * multicast and the unspecified address are not, in any of their IPv6 encodings.
 */
import { BlockList, isIP, isIPv6 } from 'node:net'

/** Why this IP address must not be connected to; undefined if it is allowed. */
export type AddressGuard = (address: string) => string | undefined

export interface GuardOptions {
  /** @default false */
  allowLoopback?: boolean
  /** Further CIDR ranges to reject, e.g. the cluster's own service network. */
  deny?: readonly string[]
}

const REFUSED: readonly [range: string, name: string][] = [
  ['0.0.0.0/8', 'unspecified'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['100.100.100.200/32', 'cloud metadata'],
  ['168.63.129.16/32', 'cloud metadata'],
  ['192.0.0.0/24', 'reserved'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'site-local'],
  // Teredo (RFC 4380) reaches any IPv4 address through a relay, and is not used by clusters.
  ['2001::/32', 'Teredo'],
  ['fd00:ec2::254/128', 'cloud metadata'],
  ['fd20:ce::254/128', 'cloud metadata'],
  ['ff00::/8', 'multicast'],
]

/** Whether this is `ADDRESS` or `ADDRESS/BITS`, of either family. */
export function isAddressRange(range: string): boolean {
  const [address = '', bits, ...rest] = range.split('/')
  const family = isIP(address)
  if (family === 0 || address.includes('%') || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32))
}

function blockListOf(range: string): BlockList {
  const [address = '', bits = ''] = range.split('/')
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  list.addSubnet(address, Number(bits === '' ? (family === 'ipv6' ? 128 : 32) : bits), family)
  return list
}

export function addressGuard(options: GuardOptions = {}): AddressGuard {
  const ranges = [
    ...REFUSED,
    ...(options.deny ?? []).map((range): [string, string] => [range, 'denied by configuration']),
  ]
    .filter(([, name]) => !(name === 'loopback' && options.allowLoopback === true))
    .map(([range, name]) => ({ range, name, list: blockListOf(range) }))
  return (address) => {
    if (isIP(address) === 0) return `${address} is not an IP address`
    for (const candidate of [address, ...embeddedIPv4(address)]) {
      const family = isIPv6(candidate) ? 'ipv6' : 'ipv4'
      const hit = ranges.find(({ list }) => list.check(candidate, family))
      if (hit === undefined) continue
      const help = hit.name === 'loopback' ? '; allowLoopback lets it be used' : ''
      return `${address} is in the refused range ${hit.range} (${hit.name})${help}`
    }
    return undefined
  }
}

/**
 * IPv4 addresses embedded in an IPv6 address: mapped (`::ffff:a.b.c.d`), compatible (`::a.b.c.d`), translated
 * (`::ffff:0:a.b.c.d`, RFC 2765), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056), ISATAP (RFC 5214).
 */
function embeddedIPv4(address: string): string[] {
  if (!isIPv6(address)) return []
  const words = expandIPv6(address)
  if (words === undefined) return []
  const dotted = (high: number, low: number) => `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = words
  const isZeroTo = (end: number) => words.slice(0, end).every((word) => word === 0)
  const found: string[] = []
  if (isZeroTo(5) && f === 0xff_ff) found.push(dotted(g, h))
  if (isZeroTo(6) && (g !== 0 || h > 1)) found.push(dotted(g, h))
  if (isZeroTo(4) && e === 0xff_ff && f === 0) found.push(dotted(g, h))
  if (a === 0x64 && b === 0xff_9b) {
    found.push(dotted(g, h))
    // RFC 6052 §2.2: in prefixes of 48, 56 and 64 bits the address skips bits 64 to 71.
    if (c === 1) {
      const low = ((e & 255) << 8) | (f >> 8)
      found.push(dotted(d, low), dotted(((d & 255) << 8) | (e & 255), f), dotted(low, ((f & 255) << 8) | (g >> 8)))
    }
  }
  if (a === 0x20_02) found.push(dotted(b, c))
  if ((e === 0 || e === 0x02_00) && f === 0x5e_fe) found.push(dotted(g, h))
  return found
}

function expandIPv6(address: string): number[] | undefined {
  const bare = address.split('%', 1)[0] ?? ''
  const dot = bare.lastIndexOf(':')
  const tail = bare.slice(dot + 1)
  const text = tail.includes('.') ? `${bare.slice(0, dot + 1)}${hexOf(tail)}` : bare
  const [head = '', rest] = text.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = rest === undefined || rest === '' ? [] : rest.split(':')
  const missing = rest === undefined ? 0 : 8 - left.length - right.length
  const words = [...left, ...Array.from({ length: missing }, () => '0'), ...right].map((word) =>
    Number.parseInt(word, 16),
  )
  return words.length === 8 && words.every(Number.isInteger) ? words : undefined
}

function hexOf(dotted: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}
