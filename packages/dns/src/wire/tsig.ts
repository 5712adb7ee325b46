/**
 * Transaction signatures (RFC 8945): signing and checking messages on their raw octets, and the chain of signatures over the
 * messages of a transfer (§5.3.1). Algorithms: HMAC-SHA256, -SHA384, -SHA512. MACs are compared in constant time.
 *
 * Failures are values with the RFC's error code; nothing of a key but its name ever appears in text.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { CLASS, RCODE, TYPE } from './codes.ts'
import { DnsError } from '../error.ts'
import { type Fqdn, fqdn, nameToWire, wireToFqdn } from './name.ts'
import { WireReader, WireWriter } from './wire.ts'

export const TSIG_ALGORITHMS = ['hmac-sha256', 'hmac-sha384', 'hmac-sha512'] as const
export type TsigAlgorithm = (typeof TSIG_ALGORITHMS)[number]

/** RFC 8945 §10: the recommended tolerance, seconds. */
const FUDGE = 300
/** A peer may ask for no longer validity than we do: a longer one is time to repeat a message. */
export const MAX_FUDGE_SECONDS = FUDGE

export class TsigKey {
  readonly name: Fqdn
  readonly algorithm: TsigAlgorithm
  readonly #secret: Buffer

  /** `secret` in base64. */
  constructor(name: string, algorithm: string, secret: string) {
    this.name = fqdn(name)
    const known = TSIG_ALGORITHMS.find((candidate) => candidate === algorithm.toLowerCase().replace(/\.$/, ''))
    if (known === undefined)
      throw new DnsError(
        'BAD_KEY',
        `key ${this.name}: algorithm '${algorithm}' is not one of ${TSIG_ALGORITHMS.join(', ')}`,
      )
    this.algorithm = known
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(secret))
      throw new DnsError('BAD_KEY', `key ${this.name}: the secret is not base64`)
    this.#secret = Buffer.from(secret, 'base64')
  }

  mac(parts: readonly Uint8Array[]): Buffer {
    const hmac = createHmac(this.algorithm.slice('hmac-'.length), this.#secret)
    for (const part of parts) hmac.update(part)
    return hmac.digest()
  }

  /** Never the secret. */
  toJSON(): { name: Fqdn; algorithm: TsigAlgorithm; secret: string } {
    return { name: this.name, algorithm: this.algorithm, secret: '[redacted]' }
  }
}

export interface TsigRecord {
  readonly keyName: Fqdn
  readonly algorithm: Fqdn
  /** Seconds since 1970. */
  readonly time: number
  readonly fudge: number
  readonly mac: Uint8Array
  readonly originalId: number
  readonly error: number
  readonly other: Uint8Array
}

/** Reads the TSIG record at `start`, where message.ts found it. Throws MALFORMED. */
export function readTsig(message: Uint8Array, start: number): TsigRecord {
  const from = new WireReader(message, start)
  const keyName = wireToFqdn(from.name())
  from.u16()
  if (from.u16() !== CLASS.ANY || from.u32() !== 0)
    throw new DnsError('MALFORMED', 'TSIG with a class other than ANY or a TTL')
  const length = from.u16()
  if (length !== from.left) throw new DnsError('MALFORMED', 'TSIG data has a wrong length')
  const algorithm = wireToFqdn(from.name())
  const time = from.u16() * 2 ** 32 + from.u32()
  const fudge = from.u16()
  const mac = from.take(from.u16())
  const originalId = from.u16()
  const error = from.u16()
  const other = from.take(from.u16())
  if (from.left > 0) throw new DnsError('MALFORMED', 'TSIG data has octets too many')
  return { keyName, algorithm, time, fudge, mac, originalId, error, other }
}

function writeTime(out: WireWriter, time: number): void {
  out.u16(Math.floor(time / 2 ** 32))
  out.u32((time % 2 ** 32) >>> 0)
}

/** RFC 8945 §4.3.3: what of the record is signed. In later messages of a transfer only the times (§5.3.1). */
function variables(
  key: { name: Fqdn; algorithm: string },
  record: Pick<TsigRecord, 'time' | 'fudge' | 'error' | 'other'>,
  isTimesOnly: boolean,
): Buffer {
  const out = new WireWriter(256)
  if (!isTimesOnly) {
    out.name(nameToWire(key.name), 0, 'none')
    out.u16(CLASS.ANY)
    out.u32(0)
    out.name(nameToWire(key.algorithm), 0, 'none')
  }
  writeTime(out, record.time)
  out.u16(record.fudge)
  if (!isTimesOnly) {
    out.u16(record.error)
    out.u16(record.other.length)
    out.put(record.other)
  }
  return out.finish()
}

function prefixed(mac: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(mac.length >> 8, mac.length), mac])
}

/** The message as the signer saw it: without TSIG, ARCOUNT less one, its own id back. */
function unsigned(message: Uint8Array, start: number, originalId: number): Buffer {
  const copy = Buffer.from(message.subarray(0, start))
  copy.writeUInt16BE(originalId, 0)
  copy.writeUInt16BE(copy.readUInt16BE(10) - 1, 10)
  return copy
}

function append(
  message: Uint8Array,
  keyName: Fqdn,
  algorithm: string,
  record: Omit<TsigRecord, 'keyName' | 'algorithm' | 'originalId'>,
): Buffer {
  const out = new WireWriter(message.length + 512)
  out.put(message)
  out.name(nameToWire(keyName), 0, 'none')
  out.u16(TYPE.TSIG)
  out.u16(CLASS.ANY)
  out.u32(0)
  const at = out.at
  out.u16(0)
  out.name(nameToWire(algorithm), 0, 'none')
  writeTime(out, record.time)
  out.u16(record.fudge)
  out.u16(record.mac.length)
  out.put(record.mac)
  out.put(message, 0, 2)
  out.u16(record.error)
  out.u16(record.other.length)
  out.put(record.other)
  out.closeLength(at)
  const signed = out.finish()
  signed.writeUInt16BE(signed.readUInt16BE(10) + 1, 10)
  return signed
}

export interface Signed {
  readonly bytes: Buffer
  readonly mac: Uint8Array
}

export interface SignOptions {
  /** Of the request, when this signs an answer; of the message before, in a transfer. */
  readonly previousMac?: Uint8Array
  /** Second and later messages of a transfer. */
  readonly isContinued?: boolean
  readonly error?: number
  readonly other?: Uint8Array
  /** The time to sign with instead of now: BADTIME answers carry the client's (RFC 8945 §5.2.3). */
  readonly time?: number
  /** Seconds for which it asks to be valid. @default 300 */
  readonly fudge?: number
}

const NOTHING = new Uint8Array(0)

/** Signs an encoded message. `now` in seconds since 1970. */
export function signMessage(message: Uint8Array, key: TsigKey, now: number, options: SignOptions = {}): Signed {
  const { time = now, fudge = FUDGE, error = 0, other = NOTHING } = options
  const record = { time, fudge, error, other }
  const parts = options.previousMac === undefined ? [] : [prefixed(options.previousMac)]
  const mac = key.mac([...parts, message, variables(key, record, options.isContinued === true)])
  return { bytes: append(message, key.name, key.algorithm, { ...record, mac }), mac }
}

/** An error answer that must not be signed: BADKEY and BADSIG (RFC 8945 §5.2). */
export function appendTsigError(message: Uint8Array, request: TsigRecord, error: number, now: number): Buffer {
  return append(message, request.keyName, request.algorithm, {
    time: now,
    fudge: FUDGE,
    mac: NOTHING,
    error,
    other: NOTHING,
  })
}

type TsigFailure = typeof RCODE.BADKEY | typeof RCODE.BADTIME | typeof RCODE.BADTRUNC | typeof RCODE.FORMERR | 16

export type TsigVerdict =
  | { readonly kind: 'valid'; readonly key: TsigKey; readonly record: TsigRecord }
  | { readonly kind: 'invalid'; readonly error: TsigFailure; readonly record: TsigRecord; readonly key?: TsigKey }

/** TSIG error 16; the same number is BADVERS where OPT is meant. */
export const BADSIG = 16

export interface VerifyOptions {
  readonly previousMac?: Uint8Array
  readonly isContinued?: boolean
  /** Messages of a transfer since the last signed one: they are signed together with this one. */
  readonly unsignedBefore?: readonly Uint8Array[]
}

/**
 * Checks a message in the order of RFC 8945 §5.2: key, MAC, time, truncation. `start` is where TSIG begins. The record must
 * be well-formed already: read it with `readTsig`.
 */
export function verifyMessage(
  message: Uint8Array,
  start: number,
  record: TsigRecord,
  findKey: (name: Fqdn) => TsigKey | undefined,
  now: number,
  options: VerifyOptions = {},
): TsigVerdict {
  const key = findKey(record.keyName)
  if (key === undefined || `${key.algorithm}.` !== record.algorithm)
    return { kind: 'invalid', error: RCODE.BADKEY, record }
  const parts = options.previousMac === undefined ? [] : [prefixed(options.previousMac)]
  const signed = unsigned(message, start, record.originalId)
  const expected = key.mac([
    ...parts,
    ...(options.unsignedBefore ?? []),
    signed,
    variables(key, record, options.isContinued === true),
  ])
  const { length } = record.mac
  // §5.2.2.1: longer than the hash, or shorter than half of it or 10 octets, is a format error.
  if (length > expected.length || length < Math.max(10, expected.length / 2))
    return { kind: 'invalid', error: RCODE.FORMERR, record }
  if (!timingSafeEqual(expected.subarray(0, length), record.mac)) return { kind: 'invalid', error: BADSIG, record }
  if (Math.abs(now - record.time) > Math.min(record.fudge, MAX_FUDGE_SECONDS))
    return { kind: 'invalid', error: RCODE.BADTIME, record, key }
  if (length < expected.length) return { kind: 'invalid', error: RCODE.BADTRUNC, record, key }
  return { kind: 'valid', key, record }
}

/** Six octets of seconds: the other data of a BADTIME answer. */
export function encodeTime(time: number): Uint8Array {
  const out = new WireWriter(8)
  writeTime(out, time)
  return out.finish()
}

/** The error for a peer's verdict on our signature. */
export function tsigError(error: number, record: TsigRecord, now: number): DnsError {
  switch (error) {
    case RCODE.BADKEY:
      return new DnsError(
        'TSIG_BAD_KEY',
        `the server does not know key ${record.keyName} with ${record.algorithm}; compare name and algorithm`,
      )
    case RCODE.BADTIME: {
      const server = record.other.length === 6 ? new WireReader(record.other) : undefined
      const skew = server === undefined ? record.time - now : server.u16() * 2 ** 32 + server.u32() - now
      return new DnsError(
        'TSIG_BAD_TIME',
        `the server's clock differs by ${skew} s, its limit is ${record.fudge} s; check NTP`,
      )
    }
    case RCODE.BADTRUNC:
      return new DnsError('TSIG_BAD_TRUNC', `the server requires a longer MAC for key ${record.keyName}`)
  }
  return new DnsError(
    'TSIG_BAD_SIG',
    `the signature with key ${record.keyName} does not verify; compare the secret on both sides`,
  )
}
