/** The SOA of a zone: its fields, and the prebuilt authority section of NXDOMAIN and NODATA answers (RFC 2308 §3). */
import { type Fqdn, wireLength, wireToFqdn } from '../wire/name.ts'
import { WireReader } from '../wire/wire.ts'

export interface Soa {
  readonly ttl: number
  readonly data: Uint8Array
  readonly primary: Fqdn
  readonly mailbox: Fqdn
  readonly serial: number
  readonly refresh: number
  readonly retry: number
  readonly expire: number
  /** TTL of negative answers: the minimum field, at most the record's own TTL. */
  readonly negativeTtl: number
  /**
   * The SOA record of the authority section of a negative answer. At each offset in `pointers` a compression pointer to the
   * apex inside the question's name has to be filled in: its value depends on the length of that name.
   */
  readonly negative: Uint8Array
  readonly pointers: readonly number[]
}

export function createSoa(origin: Uint8Array, ttl: number, data: Uint8Array): Soa {
  const from = new WireReader(data)
  const primary = from.name()
  const mailbox = from.name()
  const [serial, refresh, retry, expire, minimum] = [from.u32(), from.u32(), from.u32(), from.u32(), from.u32()]
  const negativeTtl = Math.min(ttl, minimum)
  const bytes: number[] = []
  const pointers: number[] = []
  const pointer = () => {
    pointers.push(bytes.length)
    bytes.push(0xc0, 0)
  }
  pointer()
  bytes.push(
    0,
    6,
    0,
    1,
    negativeTtl >>> 24,
    (negativeTtl >>> 16) & 255,
    (negativeTtl >>> 8) & 255,
    negativeTtl & 255,
    0,
    0,
  )
  const lengthAt = bytes.length - 2
  for (const name of [primary, mailbox]) {
    const kept = prefixBefore(origin, name)
    if (kept === undefined) bytes.push(...name)
    else {
      bytes.push(...name.subarray(0, kept))
      pointer()
    }
  }
  bytes.push(...data.subarray(data.length - 20))
  const length = bytes.length - lengthAt - 2
  bytes[lengthAt] = length >> 8
  bytes[lengthAt + 1] = length & 255
  return {
    ttl,
    data,
    primary: wireToFqdn(primary),
    mailbox: wireToFqdn(mailbox),
    serial,
    refresh,
    retry,
    expire,
    negativeTtl,
    negative: Uint8Array.from(bytes),
    pointers,
  }
}

/** Octets of `name` before the suffix `origin` in exactly its case, or undefined. */
function prefixBefore(origin: Uint8Array, name: Uint8Array): number | undefined {
  for (let at = 0; ; at += name[at]! + 1) {
    if (wireLength(name, at) < origin.length) return undefined
    if (wireLength(name, at) === origin.length) return Buffer.compare(name.subarray(at), origin) === 0 ? at : undefined
  }
}

/** The serial in wire data. */
export const serialOf = (data: Uint8Array): number => new WireReader(data, data.length - 20).u32()

/** Wire data with another serial. */
export function withSerial(data: Uint8Array, serial: number): Uint8Array {
  const copy = Uint8Array.from(data)
  new DataView(copy.buffer).setUint32(copy.length - 20, serial >>> 0)
  return copy
}

/** RFC 1982 §3.2: is serial `a` after `b`? */
export const isNewer = (a: number, b: number): boolean => a !== b && (a - b) >>> 0 < 0x8000_0000

/**
 * The serial of the next version (RFC 1982 §3.1); `floor` when that is newer still, so that serials can follow the clock.
 * Zero is skipped: some secondaries read it as "unknown".
 */
export function nextSerial(serial: number, floor?: number): number {
  const next = (serial + 1) >>> 0 || 1
  return floor !== undefined && floor !== 0 && isNewer(floor, next) ? floor : next
}
