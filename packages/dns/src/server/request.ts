/**
 * A received query, parsed in place and without allocation into one reused object: the first step of every answer.
 *
 * Reads only what the answer path needs: the header, the question in lower case with its hashes, OPT, and whether TSIG is
 * present. Every offset is bounds-checked. A malformed message gets FORMERR; one that must not be answered (too short, or a
 * response itself) gets no answer. Opcodes other than QUERY are recognised here and decoded by message.ts.
 */
import { RCODE, TYPE } from '../wire/codes.ts'
import { OPTION } from '../wire/edns.ts'
import { MAX_NAME } from '../wire/name.ts'
import { createNameScan, scanName } from '../zone/name-hash.ts'

/** Result of `parse` instead of an rcode: send no answer. */
export const SILENT = -1

export class Request {
  bytes: Uint8Array = new Uint8Array(0)
  length = 0
  opcode = 0
  /** 0 when the question could not be read: an answer then carries none. */
  questionEnd = 0
  /** Lower-case wire name. */
  readonly name = new Uint8Array(MAX_NAME)
  nameLength = 0
  readonly scan = createNameScan()
  type = 0
  class = 0
  hasEdns = false
  ednsVersion = 0
  isDo = false
  /** UDP payload size that the sender accepts. */
  size = 512
  /** Offset and length of the cookie option's data; length 0 when there is none. */
  cookieAt = 0
  cookieLength = 0
  /** Only the cookie is malformed: then the error response still carries OPT (RFC 7873 §5.2.2). */
  isCookieBad = false
  subnetAt = 0
  subnetLength = 0
  /** Offset of the TSIG record, 0 when there is none. */
  tsigAt = 0

  /** NOERROR for a query to answer; else the rcode of the error response, or SILENT. */
  parse(bytes: Uint8Array, length: number): number {
    this.bytes = bytes
    this.length = length
    this.questionEnd = 0
    this.hasEdns = false
    this.ednsVersion = 0
    this.isDo = false
    this.size = 512
    this.cookieLength = 0
    this.isCookieBad = false
    this.subnetLength = 0
    this.tsigAt = 0
    this.type = 0
    if (length < 12 || (bytes[2]! & 0x80) !== 0) return SILENT
    this.opcode = (bytes[2]! >> 3) & 15
    const questions = (bytes[4]! << 8) | bytes[5]!
    const records = ((bytes[6]! << 8) | bytes[7]!) + ((bytes[8]! << 8) | bytes[9]!)
    const additionals = (bytes[10]! << 8) | bytes[11]!
    let at = 12
    if (questions === 1) {
      at = this.#question()
      if (at === 0) return RCODE.FORMERR
    } else if (questions > 1) return RCODE.FORMERR
    if (records + additionals === 0) return at === length && questions === 1 ? RCODE.NOERROR : RCODE.FORMERR
    for (let i = records + additionals; i > 0; i--) {
      at = this.#record(at, i <= additionals, i === 1)
      if (at === 0) return this.#malformed()
    }
    if (at !== length) return this.#malformed()
    // RFC 7873 §5.4: a message with a cookie and without a question requests a cookie only.
    return questions === 1 || this.cookieLength > 0 ? RCODE.NOERROR : RCODE.FORMERR
  }

  /** The OPT of a malformed message is ignored: the error response carries none, as with BIND and Knot. */
  #malformed(): number {
    this.hasEdns &&= this.isCookieBad
    return RCODE.FORMERR
  }

  /** Returns the offset after the question, or 0. */
  #question(): number {
    const { bytes, length, name } = this
    let at = 12
    let end = 0
    for (;;) {
      if (at >= length) return 0
      const octet = bytes[at]!
      // No compression: there is no earlier name to point to.
      if (octet > 63 || at + octet >= length || end + octet >= MAX_NAME) return 0
      name[end++] = octet
      at++
      if (octet === 0) break
      for (const last = at + octet; at < last; at++) {
        const letter = bytes[at]!
        name[end++] = letter >= 0x41 && letter <= 0x5a ? letter + 0x20 : letter
      }
    }
    if (at + 4 > length) return 0
    this.nameLength = end
    this.type = (bytes[at]! << 8) | bytes[at + 1]!
    this.class = (bytes[at + 2]! << 8) | bytes[at + 3]!
    this.questionEnd = at + 4
    scanName(name, end, this.scan)
    return at + 4
  }

  /** Skips a record, noting OPT and TSIG. Returns the offset after it, or 0. */
  #record(start: number, isAdditional: boolean, isLast: boolean): number {
    const { bytes, length } = this
    let at = start
    for (;;) {
      if (at >= length) return 0
      const octet = bytes[at]!
      if (octet >= 0xc0) {
        if (at + 1 >= length || (((octet & 0x3f) << 8) | bytes[at + 1]!) >= at) return 0
        at += 2
        break
      }
      if (octet > 63) return 0
      at += octet + 1
      if (octet === 0) break
    }
    if (at + 10 > length) return 0
    const type = (bytes[at]! << 8) | bytes[at + 1]!
    const end = at + 10 + ((bytes[at + 8]! << 8) | bytes[at + 9]!)
    if (end > length) return 0
    if (type === TYPE.OPT) return isAdditional && at === start + 1 && !this.hasEdns && this.#opt(at, end) ? end : 0
    if (type === TYPE.TSIG) {
      if (!isAdditional || !isLast) return 0
      this.tsigAt = start
    }
    return end
  }

  #opt(at: number, end: number): boolean {
    const { bytes } = this
    this.hasEdns = true
    this.size = Math.max(512, (bytes[at + 2]! << 8) | bytes[at + 3]!)
    this.ednsVersion = bytes[at + 5]!
    this.isDo = (bytes[at + 6]! & 0x80) !== 0
    // Options are defined per version: those of an unknown version are not parsed (RFC 6891 §6.1.3).
    if (this.ednsVersion > 0) return true
    for (at += 10; at < end;) {
      if (at + 4 > end) return false
      const code = (bytes[at]! << 8) | bytes[at + 1]!
      const length = (bytes[at + 2]! << 8) | bytes[at + 3]!
      at += 4
      if (at + length > end) return false
      if (code === OPTION.COOKIE) {
        // RFC 7873 §5.2.2: a client cookie of 8 octets, and a server cookie of 8 to 32 or none.
        if (length !== 8 && (length < 16 || length > 40)) {
          this.isCookieBad = true
          return false
        }
        this.cookieAt = at
        this.cookieLength = length
      } else if (code === OPTION.CLIENT_SUBNET) {
        this.subnetAt = at
        this.subnetLength = length
      }
      at += length
    }
    return true
  }
}
