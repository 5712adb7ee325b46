/**
 * Verifies the TSIG of a received message and signs the answer. Answers to invalid signatures follow RFC 8945 §5.2: BADKEY
 * and BADSIG unsigned, BADTIME and BADTRUNC signed.
 */
import { RCODE } from '../wire/codes.ts'
import { SAFE_UDP_SIZE, writeOpt } from '../wire/edns.ts'
import { DnsError } from '../error.ts'
import { FLAG } from '../wire/message.ts'
import type { Fqdn } from '../wire/name.ts'
import {
  appendTsigError,
  encodeTime,
  readTsig,
  signMessage,
  type TsigKey,
  type TsigRecord,
  verifyMessage,
} from '../wire/tsig.ts'
import { WireWriter } from '../wire/wire.ts'
import type { Request } from './request.ts'

export type Keyring = ReadonlyMap<Fqdn, TsigKey>

export type Authentication =
  | { readonly kind: 'unsigned' }
  | { readonly kind: 'signed'; readonly key: TsigKey; readonly record: TsigRecord }
  /** The answer to send instead. */
  | { readonly kind: 'refused'; readonly answer: Uint8Array }

/** An answer with the header and question of the request and no records, except OPT when the request had one. */
export function emptyAnswer(request: Request, rcode: number): Buffer {
  const { bytes, questionEnd, hasEdns, isDo } = request
  const out = new WireWriter(512)
  out.put(bytes, 0, 2)
  out.u8((FLAG.QR >> 8) | (bytes[2]! & 0x79))
  out.u8(rcode & 15)
  out.u16(questionEnd > 0 ? 1 : 0)
  out.u32(0)
  out.u16(hasEdns ? 1 : 0)
  if (questionEnd > 0) out.put(bytes, 12, questionEnd)
  if (hasEdns) writeOpt({ size: SAFE_UDP_SIZE, version: 0, isDo, options: [] }, rcode, out)
  return out.finish()
}

export function authenticate(request: Request, keys: Keyring, now: number): Authentication {
  if (request.tsigAt === 0) return { kind: 'unsigned' }
  const message = request.bytes.subarray(0, request.length)
  let record: TsigRecord
  try {
    record = readTsig(message, request.tsigAt)
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    return { kind: 'refused', answer: emptyAnswer(request, RCODE.FORMERR) }
  }
  const verdict = verifyMessage(message, request.tsigAt, record, (name) => keys.get(name), now)
  if (verdict.kind === 'valid') return { kind: 'signed', key: verdict.key, record }
  if (verdict.error === RCODE.FORMERR) return { kind: 'refused', answer: emptyAnswer(request, RCODE.FORMERR) }
  const answer = emptyAnswer(request, RCODE.NOTAUTH)
  if (verdict.key === undefined) return { kind: 'refused', answer: appendTsigError(answer, record, verdict.error, now) }
  const isTime = verdict.error === RCODE.BADTIME
  const { bytes } = signMessage(answer, verdict.key, now, {
    previousMac: record.mac,
    error: verdict.error,
    ...(isTime && { time: record.time, other: encodeTime(now) }),
  })
  return { kind: 'refused', answer: bytes }
}

/** The message without its TSIG record, for the answer path, which does not handle TSIG. */
export function withoutTsig(request: Request): Buffer {
  const copy = Buffer.from(request.bytes.subarray(0, request.tsigAt))
  copy.writeUInt16BE(copy.readUInt16BE(10) - 1, 10)
  return copy
}
