/**
 * Cursor over a received packet and a growing packet under construction.
 *
 * The reader checks every bound and throws DnsError MALFORMED; message.ts turns that into a value, so nothing escapes.
 * Compression pointers must point strictly backwards (RFC 1035 §4.1.4 "prior occurrence"), which makes loops impossible.
 * The writer compresses names against everything written before, case-insensitively, and never past offset 0x3fff.
 */
import { DnsError } from '../error.ts'
import { MAX_NAME, nameToText } from './name.ts'

const malformed = (why: string, at: number) => new DnsError('MALFORMED', `malformed packet at octet ${at}: ${why}`)

const scratch = new Uint8Array(MAX_NAME)

export class WireReader {
  readonly bytes: Uint8Array
  at: number
  end: number

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes
    this.at = at
    this.end = end
  }

  get left(): number {
    return this.end - this.at
  }

  #need(octets: number): void {
    if (this.at + octets > this.end) throw malformed(`${octets} octets wanted, ${this.left} left`, this.at)
  }

  u8(): number {
    this.#need(1)
    return this.bytes[this.at++]!
  }

  u16(): number {
    this.#need(2)
    const value = (this.bytes[this.at]! << 8) | this.bytes[this.at + 1]!
    this.at += 2
    return value
  }

  u32(): number {
    return this.u16() * 0x10000 + this.u16()
  }

  /** A view, not a copy. */
  take(octets: number): Uint8Array {
    this.#need(octets)
    this.at += octets
    return this.bytes.subarray(this.at - octets, this.at)
  }

  rest(): Uint8Array {
    return this.take(this.left)
  }

  /** A length octet and that many octets (RFC 1035 §3.3 character-string). */
  string(): Uint8Array {
    return this.take(this.u8())
  }

  /** An uncompressed copy of the possibly compressed name here. Pointers may leave the window but not the packet. */
  name(): Uint8Array {
    const { bytes } = this
    let at = this.at
    let limit = this.at // a pointer must go below this
    let end = this.end
    let length = 0
    let resume = -1
    for (;;) {
      if (at >= end) throw malformed('a name runs past the end', at)
      const octet = bytes[at]!
      if (octet >= 0xc0) {
        if (at + 1 >= end) throw malformed('a name runs past the end', at)
        const target = ((octet & 0x3f) << 8) | bytes[at + 1]!
        if (target >= limit) throw malformed(`a compression pointer to ${target} does not point backwards`, at)
        if (resume === -1) resume = at + 2
        at = limit = target
        end = bytes.length
        continue
      }
      if (octet > 63) throw malformed(`label type 0x${octet.toString(16)} is not known`, at)
      if (length + octet + 1 > MAX_NAME) throw malformed(`a name is longer than ${MAX_NAME} octets`, at)
      if (at + octet >= end) throw malformed('a label runs past the end', at)
      for (const last = at + octet; at <= last; at++) scratch[length++] = bytes[at]!
      if (octet === 0) break
    }
    this.at = resume === -1 ? at : resume
    return scratch.slice(0, length)
  }

  nameText(): string {
    return nameToText(this.name())
  }
}

/** Slots of the compression table; a power of two. A 64 kB transfer message rarely has more distinct suffixes. */
const SLOTS = 4096
const PROBES = 8
/** Label offsets of the name being written; 127 labels is the most that 255 octets can hold. */
const labelAt = new Uint8Array(128)

export class WireWriter {
  bytes: Buffer
  at = 0
  readonly #offsets = new Uint16Array(SLOTS)
  readonly #marks = new Uint32Array(SLOTS)
  #mark = 0
  #start = 0

  constructor(capacity = 4096) {
    this.bytes = Buffer.allocUnsafeSlow(capacity)
    this.reset()
  }

  /** Starts a new message at `at`; offsets in pointers count from there. */
  reset(at = 0): void {
    this.#start = this.at = at
    if (++this.#mark === 0x1_0000_0000) {
      this.#marks.fill(0)
      this.#mark = 1
    }
  }

  /** Cuts back to `at` (a value of `this.at` from before). Table entries beyond it fail their comparison or are rewritten. */
  rewind(at: number): void {
    this.at = at
    // Stale entries could point past `at` into octets that something else fills later, so all are discarded.
    const start = this.#start
    this.reset(start)
    this.at = at
  }

  #room(octets: number): void {
    if (this.at + octets <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.at + octets))
    this.bytes.copy(larger, 0, 0, this.at)
    this.bytes = larger
  }

  u8(value: number): void {
    this.#room(1)
    this.bytes[this.at++] = value
  }

  u16(value: number): void {
    this.#room(2)
    this.bytes[this.at++] = value >>> 8
    this.bytes[this.at++] = value
  }

  u32(value: number): void {
    this.u16(value >>> 16)
    this.u16(value & 0xffff)
  }

  put(source: Uint8Array, from = 0, to = source.length): void {
    this.#room(to - from)
    const { bytes } = this
    let { at } = this
    if (to - from > 64) {
      bytes.set(from === 0 && to === source.length ? source : source.subarray(from, to), at)
      at += to - from
    } else for (let i = from; i < to; i++) bytes[at++] = source[i]!
    this.at = at
  }

  string(value: Uint8Array): void {
    this.u8(value.length)
    this.put(value)
  }

  /** Fills in a 16-bit length counted from just after it. */
  closeLength(at: number): void {
    const length = this.at - at - 2
    this.bytes[at] = length >>> 8
    this.bytes[at + 1] = length
  }

  /**
   * Writes the uncompressed wire name in `wire` at `from`. Compressed 'folded' it may become, or end in, a pointer to the same
   * name in another case, compressed 'exact' only in the same case: data of a zone keeps its case (RFC 4343 §4).
   */
  name(wire: Uint8Array, from = 0, compress: 'folded' | 'exact' | 'none' = 'folded'): void {
    let count = 0
    let at = from
    while (wire[at] !== 0) {
      labelAt[count++] = at - from
      at += wire[at]! + 1
    }
    const length = at + 1 - from
    this.#room(length)
    // Hashes of all suffixes in one pass from the root; the longest known suffix becomes the pointer.
    let hash = 0
    let known = count
    let pointer = 0
    for (let i = count - 1; i >= 0; i--) {
      const start = from + labelAt[i]!
      for (let j = start + wire[start]!; j >= start; j--) hash = Math.imul(hash ^ (wire[j]! | 0x20), 0x01000193)
      const found = compress !== 'none' && known === i + 1 ? this.#find(hash, wire, start, compress === 'exact') : -1
      if (found >= 0) {
        known = i
        pointer = found
      } else this.#remember(hash, this.at - this.#start + labelAt[i]!)
    }
    if (known === count) {
      this.put(wire, from, from + length)
      return
    }
    this.put(wire, from, from + labelAt[known]!)
    this.u16(0xc000 | pointer)
  }

  #find(hash: number, wire: Uint8Array, at: number, isExact: boolean): number {
    for (let probe = 0; probe < PROBES; probe++) {
      const slot = (hash + probe) & (SLOTS - 1)
      if (this.#marks[slot] !== this.#mark) return -1
      const offset = this.#offsets[slot]!
      if (this.#isNameAt(offset, wire, at, isExact)) return offset
    }
    return -1
  }

  #remember(hash: number, offset: number): void {
    if (offset > 0x3fff) return
    for (let probe = 0; probe < PROBES; probe++) {
      const slot = (hash + probe) & (SLOTS - 1)
      if (this.#marks[slot] === this.#mark) continue
      this.#marks[slot] = this.#mark
      this.#offsets[slot] = offset
      return
    }
  }

  #isNameAt(offset: number, wire: Uint8Array, at: number, isExact: boolean): boolean {
    const { bytes } = this
    let here = this.#start + offset
    for (;;) {
      if (here >= this.at) return false
      const octet = bytes[here]!
      if (octet >= 0xc0) {
        here = this.#start + (((octet & 0x3f) << 8) | bytes[here + 1]!)
        continue
      }
      if (octet !== wire[at]) return false
      if (octet === 0) return true
      for (let i = 1; i <= octet; i++) {
        const x = bytes[here + i]!
        const y = wire[at + i]!
        if (x !== y && (isExact || (x ^ y) !== 0x20 || (x | 0x20) < 0x61 || (x | 0x20) > 0x7a)) return false
      }
      here += octet + 1
      at += octet + 1
    }
  }

  /** A copy of what was written since the last reset. */
  finish(): Buffer {
    return Buffer.from(this.bytes.subarray(this.#start, this.at))
  }
}
