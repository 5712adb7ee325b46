/**
 * Server cookies (RFC 7873, in the form of RFC 9018 §4): version 1, reserved, time, and SipHash over the client cookie, these
 * fields and the client's address. Servers with the same secret accept each other's. A valid cookie proves that the client
 * receives at its source address, so it is not rate limited.
 */
import { randomBytes } from 'node:crypto'
import { siphash } from './siphash.ts'

/** Seconds: maximum age of a cookie, age at which it is renewed, and accepted clock difference (RFC 9018 §4.3). */
const LIFETIME = 3600
const RENEW_AFTER = 1800
const AHEAD = 300

export const SERVER_COOKIE = 16

export class CookieJar {
  readonly #secret: Uint8Array
  readonly #input = new Uint8Array(32)

  constructor(secret: Uint8Array = randomBytes(16)) {
    this.#secret = secret
  }

  #hash(client: Uint8Array, head: Uint8Array, address: Uint8Array): Uint8Array {
    this.#input.set(client, 0)
    this.#input.set(head, 8)
    this.#input.set(address, 16)
    return siphash(this.#secret, this.#input.subarray(0, 16 + address.length))
  }

  /** Did a server with our secret issue this option data (client and server cookie) to that address? `now` in seconds. */
  isValid(cookie: Uint8Array, address: Uint8Array, now: number): boolean {
    if (cookie.length !== 8 + SERVER_COOKIE || cookie[8] !== 1) return false
    const age = (now - timeOf(cookie)) | 0
    if (age > LIFETIME || age < -AHEAD) return false
    const expected = this.#hash(cookie.subarray(0, 8), cookie.subarray(8, 16), address)
    let difference = 0
    for (let i = 0; i < 8; i++) difference |= expected[i]! ^ cookie[16 + i]!
    return difference === 0
  }

  /** The server cookie to send: the one received while it is recent, else a new one. */
  serverCookie(cookie: Uint8Array, isValid: boolean, address: Uint8Array, now: number): Uint8Array {
    if (isValid && ((now - timeOf(cookie)) | 0) < RENEW_AFTER) return cookie.subarray(8, 8 + SERVER_COOKIE)
    const made = new Uint8Array(SERVER_COOKIE)
    made[0] = 1
    new DataView(made.buffer).setUint32(4, now >>> 0)
    made.set(this.#hash(cookie.subarray(0, 8), made.subarray(0, 8), address), 8)
    return made
  }
}

const timeOf = (cookie: Uint8Array): number =>
  (cookie[12]! << 24) | (cookie[13]! << 16) | (cookie[14]! << 8) | cookie[15]!
