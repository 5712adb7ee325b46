/** IP addresses and CIDRs as CEL values: strict parsing, canonical text, containment. */
import { isIP } from 'node:net'

/** An address as 4 or 16 bytes. */
export class IpAddress {
  readonly bytes: readonly number[]

  constructor(bytes: readonly number[]) {
    this.bytes = bytes
  }

  get family(): 4 | 6 {
    return this.bytes.length === 4 ? 4 : 6
  }

  toString(): string {
    return this.family === 4 ? this.bytes.join('.') : ipv6Text(this.bytes)
  }
}

/** Undefined unless the text is an address: no zones, no leading zeros, no IPv4-mapped IPv6. */
export function parseIp(text: string): IpAddress | undefined {
  const family = isIP(text)
  if (family === 4) return new IpAddress(text.split('.').map(Number))
  if (family !== 6 || text.includes('%') || /^::ffff:.*\./i.test(text)) return undefined
  const bytes = ipv6Bytes(text)
  return bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
    ? undefined
    : new IpAddress(bytes)
}

function ipv6Bytes(text: string): number[] {
  const groups = (part: string): number[] =>
    part === ''
      ? []
      : part.split(':').flatMap((group) => (group.includes('.') ? group.split('.').map(Number) : groupBytes(group)))
  const [head = '', tail] = text.split('::')
  const left = groups(head)
  if (tail === undefined) return left
  const right = groups(tail)
  return [...left, ...Array<number>(16 - left.length - right.length).fill(0), ...right]
}

function groupBytes(text: string): number[] {
  const group = Number.parseInt(text, 16)
  return [group >> 8, group & 255]
}

/** RFC 5952: the longest run of two or more zero groups is compressed. */
function ipv6Text(bytes: readonly number[]): string {
  const groups = Array.from({ length: 8 }, (_, i) => bytes[2 * i]! * 256 + bytes[2 * i + 1]!)
  let best = { start: -1, length: 1 }
  for (let start = 0; start < 8; start++) {
    let length = 0
    while (start + length < 8 && groups[start + length] === 0) length++
    if (length > best.length) best = { start, length }
  }
  const hex = (part: number[]): string => part.map((group) => group.toString(16)).join(':')
  if (best.start < 0) return hex(groups)
  return `${hex(groups.slice(0, best.start))}::${hex(groups.slice(best.start + best.length))}`
}

export class Cidr {
  readonly ip: IpAddress
  readonly prefix: number

  constructor(ip: IpAddress, prefix: number) {
    this.ip = ip
    this.prefix = prefix
  }

  toString(): string {
    return `${this.ip.toString()}/${this.prefix}`
  }

  masked(): Cidr {
    const bytes = this.ip.bytes.map((byte, i) => byte & maskByte(this.prefix - 8 * i))
    return new Cidr(new IpAddress(bytes), this.prefix)
  }

  containsIp(ip: IpAddress): boolean {
    if (ip.family !== this.ip.family) return false
    return this.ip.bytes.every((byte, i) => ((byte ^ ip.bytes[i]!) & maskByte(this.prefix - 8 * i)) === 0)
  }

  containsCidr(other: Cidr): boolean {
    return other.prefix >= this.prefix && this.containsIp(other.ip)
  }
}

function maskByte(bits: number): number {
  return bits >= 8 ? 255 : bits <= 0 ? 0 : (255 << (8 - bits)) & 255
}

export function parseCidr(text: string): Cidr | undefined {
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text)
  const ip = match === null ? undefined : parseIp(match[1]!)
  if (ip === undefined) return undefined
  const prefix = Number(match![2])
  return prefix <= ip.bytes.length * 8 ? new Cidr(ip, prefix) : undefined
}

function startsWith(ip: IpAddress, ...bytes: number[]): boolean {
  return bytes.every((byte, i) => ip.bytes[i] === byte)
}

export function isUnspecified(ip: IpAddress): boolean {
  return ip.bytes.every((byte) => byte === 0)
}

export function isLoopback(ip: IpAddress): boolean {
  return ip.family === 4 ? startsWith(ip, 127) : ip.toString() === '::1'
}

export function isLinkLocalMulticast(ip: IpAddress): boolean {
  return ip.family === 4 ? startsWith(ip, 224, 0, 0) : ip.bytes[0] === 255 && (ip.bytes[1]! & 15) === 2
}

export function isLinkLocalUnicast(ip: IpAddress): boolean {
  return ip.family === 4 ? startsWith(ip, 169, 254) : ip.bytes[0] === 254 && (ip.bytes[1]! & 192) === 128
}

export function isGlobalUnicast(ip: IpAddress): boolean {
  const isMulticast = ip.family === 4 ? (ip.bytes[0]! & 240) === 224 : ip.bytes[0] === 255
  const isBroadcast = ip.family === 4 && ip.bytes.every((byte) => byte === 255)
  return !isMulticast && !isBroadcast && !isUnspecified(ip) && !isLoopback(ip) && !isLinkLocalUnicast(ip)
}
