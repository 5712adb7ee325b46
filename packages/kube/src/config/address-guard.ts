/**
 * Judges the addresses that an untrusted URL or name leads to (safety: server-side request forgery). A guard is asked
 * for every resolved address, and the connection is made to the address that was judged, so a name cannot answer
 * differently the second time.
 *
 * Private ranges are open by default: member clusters live there. Loopback, link-local (cloud metadata), multicast
 * and the unspecified address are not, in any of their IPv6 disguises.
 */
import { BlockList, isIP, isIPv6 } from 'node:net'

/** Why this IP address must not be connected to; undefined when it may. */
export type AddressGuard = (address: string) => string | undefined

export interface GuardOptions {
  /** @default false */
  allowLoopback?: boolean
  /** Further CIDR ranges to refuse, e.g. the cluster's own service network. */
  deny?: readonly string[]
}

const REFUSED: readonly [range: string, name: string][] = [
  ['0.0.0.0/8', 'unspecified'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['100.100.100.200/32', 'cloud metadata'],
  ['192.0.0.0/24', 'reserved'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['fe80::/10', 'link-local'],
  ['fd00:ec2::254/128', 'cloud metadata'],
  ['fd20:ce::254/128', 'cloud metadata'],
  ['ff00::/8', 'multicast'],
]

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
      if (hit !== undefined) return `${address} is in the refused range ${hit.range} (${hit.name})`
    }
    return undefined
  }
}

/** IPv4 addresses that an IPv6 address stands for: mapped, compatible, NAT64 (RFC 6052), 6to4 (RFC 3056). */
function embeddedIPv4(address: string): string[] {
  if (!isIPv6(address)) return []
  const words = expandIPv6(address)
  if (words === undefined) return []
  const dotted = (high: number, low: number) => `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
  const [a = 0, b = 0, , , , f = 0, g = 0, h = 0] = words
  const isZeroTo = (end: number) => words.slice(0, end).every((word) => word === 0)
  const found: string[] = []
  if (isZeroTo(5) && f === 0xff_ff) found.push(dotted(g, h))
  if (isZeroTo(6) && (g !== 0 || h > 1)) found.push(dotted(g, h))
  if (a === 0x64 && b === 0xff_9b) found.push(dotted(g, h))
  if (a === 0x20_02) found.push(dotted(b, words[2] ?? 0))
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
