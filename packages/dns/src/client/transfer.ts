/**
 * AXFR (RFC 5936 §2.2, §3) and IXFR (RFC 1995) client: a stream of records that starts and ends with the SOA, over a connection
 * of its own. Every signed message is verified in the chain of RFC 8945 §5.3.1, and the last message must be signed: a
 * truncated or forged end is an error and never a shorter zone.
 */
import { once } from 'node:events'
import { CLASS, OPCODE, RCODE, rcodeName, TYPE } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { decodeMessage, encodeMessage, FLAG, type Message } from '../wire/message.ts'
import { type Fqdn, fqdn, isSubdomain } from '../wire/name.ts'
import type { Resource } from '../wire/record.ts'
import { readTsig, signMessage, type TsigKey, tsigError, verifyMessage } from '../wire/tsig.ts'
import { Deframer, frame } from '../wire/tcp-frame.ts'
import { serialOf, TransferReader, type TransferResult } from './incremental.ts'
import { connectTcp } from './tcp-connect.ts'
import { type ServerAddress, serverText } from './udp-exchange.ts'

export interface TransferRequest {
  readonly server: ServerAddress
  readonly zone: Fqdn
  readonly key?: TsigKey
  /** Time without data after which the transfer fails. @default 10000 */
  readonly idleMs?: number
  readonly signal?: AbortSignal
}

/** RFC 8945 §5.3.1: at most 99 unsigned messages between signed ones. */
const MAX_UNSIGNED = 99

const broken = (where: string, why: string, cause?: unknown) =>
  new DnsError('TRANSFER', `transfer from ${where} failed: ${why}`, { cause })

class Verifier {
  readonly #key: TsigKey
  readonly #now: () => number
  #previousMac: Uint8Array
  #isContinued = false
  #unsigned: Uint8Array[] = []

  constructor(key: TsigKey, requestMac: Uint8Array, now: () => number) {
    this.#key = key
    this.#previousMac = requestMac
    this.#now = now
  }

  get isComplete(): boolean {
    return this.#isContinued && this.#unsigned.length === 0
  }

  take(bytes: Uint8Array, message: Message): void {
    if (message.tsig === undefined) {
      this.#unsigned.push(bytes)
      if (!this.#isContinued || this.#unsigned.length > MAX_UNSIGNED)
        throw new DnsError('TSIG_MISSING', 'the transfer is not signed')
      return
    }
    const record = readTsig(bytes, message.tsig.start)
    if (record.error !== 0) throw tsigError(record.error, record, this.#now())
    const verdict = verifyMessage(
      bytes,
      message.tsig.start,
      record,
      (name) => (name === this.#key.name ? this.#key : undefined),
      this.#now(),
      {
        previousMac: this.#previousMac,
        isContinued: this.#isContinued,
        unsignedBefore: this.#unsigned,
      },
    )
    if (verdict.kind === 'invalid') throw tsigError(verdict.error, record, this.#now())
    this.#previousMac = record.mac
    this.#isContinued = true
    this.#unsigned = []
  }
}

/** RFC 5936 §2.2.1: the first message repeats the question, later ones may leave it out. */
function isReplyTo(zone: Fqdn, type: number, { flags, opcode, questions }: Message): boolean {
  if ((flags & FLAG.QR) === 0 || opcode !== OPCODE.QUERY || questions.length > 1) return false
  return questions.every((question) => question.type === type && fqdn(question.name) === zone)
}

interface Stream {
  readonly type: number
  /** IXFR: the SOA of the client's version. */
  readonly known?: Resource
  /** Called after each message: is the transfer complete? */
  readonly isComplete: () => boolean
}

/** The verified messages of a transfer. Throws DnsError. */
async function* messagesOf(
  request: TransferRequest,
  { type, known, isComplete }: Stream,
  id: number,
  now: () => number,
): AsyncGenerator<Message> {
  const { server, zone, key, signal, idleMs = 10_000 } = request
  const where = serverText(server)
  const plain = encodeMessage({
    id,
    flags: 0,
    opcode: OPCODE.QUERY,
    rcode: 0,
    questions: [{ name: zone, type, class: CLASS.IN }],
    answers: [],
    authorities: known === undefined ? [] : [known],
    additionals: [],
  })
  const signed = key === undefined ? undefined : signMessage(plain, key, now())
  const verifier = key === undefined ? undefined : new Verifier(key, signed!.mac, now)
  const socket = await connectTcp(server, idleMs, signal)
  const abort = () => socket.destroy(new DnsError('ABORTED', `the transfer from ${where} was aborted`))
  signal?.addEventListener('abort', abort)
  socket.setTimeout(idleMs, () => socket.destroy(new DnsError('TIMEOUT', `${where} sent nothing for ${idleMs} ms`)))
  try {
    socket.write(frame(signed?.bytes ?? plain))
    const deframer = new Deframer()
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      deframer.push(chunk)
      for (let bytes = deframer.next(); bytes !== undefined; bytes = deframer.next()) {
        const message = decodeMessage(bytes)
        if (message instanceof DnsError) throw broken(where, message.message, message)
        if (message.id !== id) throw broken(where, 'a message has another id')
        if (!isReplyTo(zone, type, message)) throw broken(where, 'a message answers another question')
        verifier?.take(bytes, message)
        if (message.rcode !== RCODE.NOERROR) {
          throw new DnsError(
            'RCODE',
            `${where} refused the transfer of ${zone} with ${rcodeName(message.rcode)}; check its transfer policy`,
          )
        }
        yield message
        if (!isComplete()) continue
        if (verifier?.isComplete === false) throw new DnsError('TSIG_MISSING', 'the end of the transfer is not signed')
        return
      }
    }
    throw broken(where, 'the connection ended before the last SOA')
  } finally {
    signal?.removeEventListener('abort', abort)
    socket.destroy()
    if (!socket.closed) await once(socket, 'close').catch(() => {})
  }
}

/**
 * Records in transfer order, the SOA first and not again at the end. Records of names outside the zone are skipped, as BIND
 * does: the server has no authority over them. Throws DnsError.
 */
export async function* transferZone(request: TransferRequest, id: number, now: () => number): AsyncGenerator<Resource> {
  const { zone } = request
  const where = serverText(request.server)
  let soas = 0
  for await (const { answers } of messagesOf(request, { type: TYPE.AXFR, isComplete: () => soas === 2 }, id, now)) {
    for (const record of answers) {
      if (soas === 2) throw broken(where, 'records follow the last SOA')
      const isSoa = record.type === TYPE.SOA && fqdn(record.name) === zone
      if (soas === 0 && !isSoa) throw broken(where, 'the first record is not the SOA')
      if (isSoa) soas++
      if (soas < 2 && isSubdomain(fqdn(record.name), zone)) yield record
    }
  }
}

/**
 * What changed since `known`, the SOA of the client's version; without it, or when the server does not have the changes, the
 * whole zone. Records of names outside the zone are skipped. Throws DnsError.
 */
export async function transferChanges(
  request: TransferRequest & { readonly known?: Resource },
  id: number,
  now: () => number,
): Promise<TransferResult> {
  const { zone, known } = request
  const reader = new TransferReader(zone, known !== undefined)
  const knownSerial = known === undefined ? undefined : serialOf(known)
  const isComplete = () =>
    reader.isComplete ||
    // A single SOA is the whole answer when it is not newer; of a newer one the rest follows in other messages.
    (knownSerial !== undefined && reader.soaSerial !== undefined && !isNewer(reader.soaSerial, knownSerial))
  const stream = {
    type: known === undefined ? TYPE.AXFR : TYPE.IXFR,
    ...(known !== undefined && { known }),
    isComplete,
  }
  for await (const { answers } of messagesOf(request, stream, id, now)) {
    for (const record of answers) if (isSubdomain(fqdn(record.name), zone)) reader.take(record)
  }
  return reader.result()
}

/** RFC 1982 §3.2, as in zone/soa.ts, which this folder does not import. */
const isNewer = (a: number, b: number): boolean => a !== b && (a - b) >>> 0 < 0x8000_0000
