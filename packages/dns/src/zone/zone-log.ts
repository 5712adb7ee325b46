/**
 * Records of a zone that is being built, packed into one buffer: a million records need no million objects. Keeps the line of
 * each record for error messages.
 */
import { DnsError } from '../error.ts'
import { wireToFqdn } from '../wire/name.ts'
import { hashName } from './name-hash.ts'

/** Entry: name length u8, name, type u16, ttl u32, line u32, data length u16, data; little endian. */
const FIXED = 13

export interface LoggedRecord {
  readonly type: number
  readonly ttl: number
  readonly line: number
  readonly data: Uint8Array
}

export class RecordLog {
  readonly origin: Uint8Array
  length = 0
  hashes = new Uint32Array(1024)
  offsets = new Uint32Array(1024)
  #bytes = Buffer.allocUnsafeSlow(1 << 16)
  #at = 0

  /** `origin` in lower-case wire form. */
  constructor(origin: Uint8Array) {
    this.origin = origin
  }

  /** Throws BAD_ZONE for a name that is not in the zone. The name may be in any case. */
  add(name: Uint8Array, type: number, ttl: number, data: Uint8Array, line: number): void {
    const size = FIXED + name.length + data.length
    if (this.#at + size > this.#bytes.length) this.#grow(size)
    if (this.length === this.hashes.length) this.#growIndex()
    const bytes = this.#bytes
    const start = this.#at
    bytes[start] = name.length
    for (let i = 0, at = start + 1; i < name.length; i++, at++) {
      const octet = name[i]!
      bytes[at] = octet >= 0x41 && octet <= 0x5a ? octet + 0x20 : octet
    }
    let at = start + 1 + name.length
    if (!this.#isInside(start + 1, at)) {
      throw new DnsError('BAD_ZONE', `${wireToFqdn(name)} is not in zone ${wireToFqdn(this.origin)}`)
    }
    bytes.writeUInt16LE(type, at)
    bytes.writeUInt32LE(ttl, at + 2)
    bytes.writeUInt32LE(line, at + 6)
    bytes.writeUInt16LE(data.length, at + 10)
    at += FIXED - 1
    bytes.set(data, at)
    this.hashes[this.length] = hashName(bytes, start + 1, start + 1 + name.length)
    this.offsets[this.length++] = start
    this.#at = at + data.length
  }

  #isInside(from: number, to: number): boolean {
    const { origin } = this
    const bytes = this.#bytes
    if (to - from < origin.length) return false
    for (let i = 1; i <= origin.length; i++) if (bytes[to - i] !== origin[origin.length - i]) return false
    // The suffix must start at a label, not inside one.
    let at = from
    while (at < to - origin.length) at += bytes[at]! + 1
    return at === to - origin.length
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + size))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }

  #growIndex(): void {
    const hashes = new Uint32Array(this.hashes.length * 2)
    hashes.set(this.hashes)
    this.hashes = hashes
    const offsets = new Uint32Array(this.offsets.length * 2)
    offsets.set(this.offsets)
    this.offsets = offsets
  }

  /** The octets behind `offsets`: name length, name, then what `recordOf` reads. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** A copy: it outlives the log. */
  nameOf(index: number): Uint8Array {
    const start = this.offsets[index]!
    return Uint8Array.prototype.slice.call(this.#bytes, start + 1, start + 1 + this.#bytes[start]!)
  }

  /** Octets of name and data together. */
  sizeOf(index: number): number {
    const bytes = this.#bytes
    const start = this.offsets[index]!
    const at = start + bytes[start]! + 11
    return bytes[start]! + (bytes[at]! | (bytes[at + 1]! << 8))
  }

  typeOf(index: number): number {
    const bytes = this.#bytes
    const at = this.offsets[index]! + 1
    const type = at + bytes[at - 1]!
    return bytes[type]! | (bytes[type + 1]! << 8)
  }

  /** Views into the log. */
  recordOf(index: number): LoggedRecord {
    const bytes = this.#bytes
    const start = this.offsets[index]!
    const at = start + 1 + bytes[start]!
    const length = bytes.readUInt16LE(at + 10)
    return {
      type: bytes.readUInt16LE(at),
      ttl: bytes.readUInt32LE(at + 2),
      line: bytes.readUInt32LE(at + 6),
      data: bytes.subarray(at + FIXED - 1, at + FIXED - 1 + length),
    }
  }

  /** Orders by name (equal hashes first, then octets), type and arrival. */
  compare(a: number, b: number): number {
    return this.hashes[a]! - this.hashes[b]! || this.compareNames(a, b) || this.typeOf(a) - this.typeOf(b) || a - b
  }

  compareNames(a: number, b: number): number {
    const bytes = this.#bytes
    const x = this.offsets[a]!
    const y = this.offsets[b]!
    return bytes.compare(bytes, y, y + 1 + bytes[y]!, x, x + 1 + bytes[x]!)
  }
}
