/**
 * Checks the signature of a received message and signs the answer to it; answers to bad signatures are as RFC 8945 §5.2
 * wants them: BADKEY and BADSIG unsigned, BADTIME and BADTRUNC signed.
 */
import { RCODE } from '../codes.ts'
import { DnsError } from '../error.ts'
import { FLAG } from '../message.ts'
import type { Fqdn } from '../name.ts'
import {
  appendTsigError,
  encodeTime,
  readTsig,
  signMessage,
  type TsigKey,
  type TsigRecord,
  verifyMessage,
} from '../tsig.ts'
import type { Request } from './request.ts'

export type Keyring = ReadonlyMap<Fqdn, TsigKey>

export type Authentication =
  | { readonly kind: 'unsigned' }
  | { readonly kind: 'signed'; readonly key: TsigKey; readonly record: TsigRecord }
  /** The answer to send instead. */
  | { readonly kind: 'refused'; readonly answer: Uint8Array }

/** Header and question of a request, turned into an answer with nothing in it. */
export function emptyAnswer(request: Request, rcode: number): Buffer {
  const end = Math.max(12, request.questionEnd)
  const answer = Buffer.from(request.bytes.subarray(0, end))
  answer[2] = (FLAG.QR >> 8) | (answer[2]! & 0x79)
  answer[3] = rcode & 15
  answer.writeUInt16BE(request.questionEnd > 0 ? 1 : 0, 4)
  answer.fill(0, 6, 12)
  return answer
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
    ...(isTime ? { time: record.time, other: encodeTime(now) } : {}),
  })
  return { kind: 'refused', answer: bytes }
}

/** The message as it was before signing: for an answer path that knows no TSIG. */
export function withoutTsig(request: Request): Buffer {
  const copy = Buffer.from(request.bytes.subarray(0, request.tsigAt))
  copy.writeUInt16BE(copy.readUInt16BE(10) - 1, 10)
  return copy
}
