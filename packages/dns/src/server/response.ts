/**
 * The answer being built in the caller's buffer: question copied from the request, records, OPT, and the header last, when
 * its counts are known. One object for all answers: nothing is allocated per answer.
 */
import { TYPE } from '../wire/codes.ts'
import { OPTION } from '../wire/edns.ts'
import { SERVER_COOKIE } from './limits/cookie.ts'
import type { Request } from './request.ts'

export const OPT_LENGTH = 11
const COOKIE_OPTION = 4 + 8 + SERVER_COOKIE
const EXTENDED_ERROR_OPTION = 6

/** Bits of the third header octet. */
export const AUTHORITATIVE = 4
export const TRUNCATED = 2

export class Response {
  out: Buffer = Buffer.alloc(0)
  start = 0
  at = 0
  /** Offset of the first octet that must not be written. */
  limit = 0
  serverCookie: Uint8Array | undefined
  /** RFC 8914 code, or -1. */
  extendedError = -1
  /** RFC 7871 §7.2.1: prefix length for which the answer holds, or -1 when it does not depend on the client's subnet. */
  subnetScope = -1
  readonly #request: Request
  readonly #maxUdpSize: number

  constructor(request: Request, maxUdpSize: number) {
    this.#request = request
    this.#maxUdpSize = maxUdpSize
  }

  begin(out: Buffer, start: number): void {
    this.out = out
    this.start = start
    this.at = start
    this.serverCookie = undefined
    this.extendedError = -1
    this.subnetScope = -1
  }

  /** The question, octet by octet as it was received. */
  question(): void {
    const { bytes, questionEnd } = this.#request
    const { out } = this
    let at = this.start + 12
    for (let i = 12; i < questionEnd; i++) out[at++] = bytes[i]!
    this.at = at
  }

  hasRoom(length: number): boolean {
    return this.at + length + this.optLength() <= this.limit
  }

  copy(data: Uint8Array, from: number, to: number): void {
    const { out } = this
    let { at } = this
    // A loop is faster than `set` for a few octets.
    if (to - from > 128) {
      out.set(data.subarray(from, to), at)
      at += to - from
    } else while (from < to) out[at++] = data[from++]!
    this.at = at
  }

  optLength(): number {
    if (!this.#request.hasEdns) return 0
    return (
      OPT_LENGTH +
      (this.serverCookie === undefined ? 0 : COOKIE_OPTION) +
      (this.extendedError === -1 ? 0 : EXTENDED_ERROR_OPTION) +
      (this.subnetScope === -1 ? 0 : 4 + this.#request.subnetLength)
    )
  }

  /** Appends OPT, fills in the header, and returns the length. `bits` are AUTHORITATIVE and TRUNCATED. */
  finish(rcode: number, bits: number, answers: number, authorities: number, additionals: number): number {
    const { bytes, questionEnd, hasEdns } = this.#request
    const { out, start } = this
    if (this.at === start) this.question()
    if (hasEdns) this.#opt(rcode)
    out[start] = bytes[0]!
    out[start + 1] = bytes[1]!
    // QR, and opcode and RD as received (RFC 8906 §8.1.1: unassigned bits are not copied); RA is clear: no recursion.
    out[start + 2] = 0x80 | (bytes[2]! & 0x79) | bits
    out[start + 3] = rcode & 15
    out[start + 4] = 0
    out[start + 5] = questionEnd > 0 ? 1 : 0
    out[start + 6] = answers >> 8
    out[start + 7] = answers
    out[start + 8] = authorities >> 8
    out[start + 9] = authorities
    const extra = additionals + (hasEdns ? 1 : 0)
    out[start + 10] = extra >> 8
    out[start + 11] = extra
    return this.at - start
  }

  #opt(rcode: number): void {
    const { bytes, cookieAt, isDo } = this.#request
    const { out, serverCookie, extendedError } = this
    const length = this.optLength() - OPT_LENGTH
    let { at } = this
    out[at] = 0
    out[at + 1] = 0
    out[at + 2] = TYPE.OPT
    out[at + 3] = this.#maxUdpSize >> 8
    out[at + 4] = this.#maxUdpSize
    out[at + 5] = rcode >> 4
    out[at + 6] = 0
    out[at + 7] = isDo ? 0x80 : 0
    out[at + 8] = 0
    out[at + 9] = length >> 8
    out[at + 10] = length
    at += OPT_LENGTH
    if (serverCookie !== undefined) {
      out[at] = 0
      out[at + 1] = OPTION.COOKIE
      out[at + 2] = 0
      out[at + 3] = 8 + SERVER_COOKIE
      for (let i = 0; i < 8; i++) out[at + 4 + i] = bytes[cookieAt + i]!
      out.set(serverCookie, at + 12)
      at += COOKIE_OPTION
    }
    if (extendedError !== -1) {
      out[at] = 0
      out[at + 1] = OPTION.EXTENDED_ERROR
      out[at + 2] = 0
      out[at + 3] = 2
      out[at + 4] = 0
      out[at + 5] = extendedError
      at += EXTENDED_ERROR_OPTION
    }
    if (this.subnetScope !== -1) {
      const { subnetAt, subnetLength } = this.#request
      out[at] = 0
      out[at + 1] = OPTION.CLIENT_SUBNET
      out[at + 2] = subnetLength >> 8
      out[at + 3] = subnetLength
      for (let i = 0; i < subnetLength; i++) out[at + 4 + i] = bytes[subnetAt + i]!
      // Family, source prefix length, scope prefix length.
      out[at + 4 + 3] = this.subnetScope
      at += 4 + subnetLength
    }
    this.at = at
  }
}
