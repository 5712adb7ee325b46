/**
 * EDNS(0) (RFC 6891) and its options: client subnet (RFC 7871), cookies (RFC 7873), NSID (RFC 5001), extended errors
 * (RFC 8914). Unknown options are kept as octets: a server ignores them, a client can read them.
 */
import { addressOctets, addressText } from './address.ts'
import { DnsError } from '../error.ts'
import { WireReader, type WireWriter } from './wire.ts'

export const OPTION = { NSID: 3, CLIENT_SUBNET: 8, COOKIE: 10, PADDING: 12, EXTENDED_ERROR: 15 } as const

/** RFC 8914 §5.2: those that the server sends. */
export const EXTENDED_ERROR = { OTHER: 0, NOT_READY: 14, PROHIBITED: 18, NOT_AUTHORITATIVE: 20 } as const

/** DNS flag day 2020: a message of this size is not fragmented. */
export const SAFE_UDP_SIZE = 1232

export interface EdnsOption {
  readonly code: number
  readonly data: Uint8Array
}

export interface Edns {
  /** UDP payload size that the sender accepts. */
  readonly size: number
  readonly version: number
  /** DNSSEC OK. */
  readonly isDo: boolean
  readonly options: readonly EdnsOption[]
}

export interface ClientSubnet {
  readonly address: string
  readonly sourcePrefix: number
  readonly scopePrefix: number
}

export function encodeSubnet(subnet: ClientSubnet): EdnsOption {
  const octets = addressOctets(subnet.address)
  const kept = octets.slice(0, Math.ceil(subnet.sourcePrefix / 8))
  const spare = kept.length * 8 - subnet.sourcePrefix
  if (spare > 0) kept[kept.length - 1]! &= 0xff << spare
  const head = [0, octets.length === 4 ? 1 : 2, subnet.sourcePrefix, subnet.scopePrefix]
  return { code: OPTION.CLIENT_SUBNET, data: Uint8Array.from([...head, ...kept]) }
}

/** Throws MALFORMED as RFC 7871 §7.1.2 demands: wrong family, length, or bits beyond the prefix. */
export function decodeSubnet(data: Uint8Array): ClientSubnet {
  const from = new WireReader(data)
  const family = from.u16()
  const sourcePrefix = from.u8()
  const scopePrefix = from.u8()
  const size = family === 1 ? 4 : family === 2 ? 16 : 0
  const kept = from.rest()
  if (size === 0 || sourcePrefix > size * 8 || kept.length !== Math.ceil(sourcePrefix / 8)) {
    throw new DnsError('MALFORMED', `client subnet of family ${family}/${sourcePrefix} with ${kept.length} octets`)
  }
  const spare = kept.length * 8 - sourcePrefix
  if (spare > 0 && (kept.at(-1)! & ~(0xff << spare)) !== 0)
    throw new DnsError('MALFORMED', 'client subnet has bits beyond its prefix')
  const octets = new Uint8Array(size)
  octets.set(kept)
  return { address: addressText(octets), sourcePrefix, scopePrefix }
}

export function encodeExtendedError(code: number, text = ''): EdnsOption {
  return { code: OPTION.EXTENDED_ERROR, data: Buffer.concat([Uint8Array.of(code >> 8, code), Buffer.from(text)]) }
}

export function decodeExtendedError(data: Uint8Array): { code: number; text: string } {
  const from = new WireReader(data)
  return { code: from.u16(), text: Buffer.from(from.rest()).toString('utf8') }
}

export function readOptions(data: Uint8Array): EdnsOption[] {
  const from = new WireReader(data)
  const options: EdnsOption[] = []
  while (from.left > 0) options.push({ code: from.u16(), data: from.take(from.u16()) })
  return options
}

/** Writes the OPT record with the upper eight bits of `rcode`. */
export function writeOpt(edns: Edns, rcode: number, out: WireWriter): void {
  out.u8(0)
  out.u16(41)
  out.u16(edns.size)
  out.u8(rcode >> 4)
  out.u8(edns.version)
  out.u16(edns.isDo ? 0x8000 : 0)
  const at = out.at
  out.u16(0)
  for (const option of edns.options) {
    out.u16(option.code)
    out.u16(option.data.length)
    out.put(option.data)
  }
  out.closeLength(at)
}
