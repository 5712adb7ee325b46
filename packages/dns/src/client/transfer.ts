/**
 * AXFR client (RFC 5936 §2.2, §3): a stream of records that starts and ends with the SOA, over a connection of its own. Every
 * signed message is verified in the chain of RFC 8945 §5.3.1, and the last message must be signed: a truncated or forged end
 * is an error and never a shorter zone.
 */
import { once } from 'node:events'
import { CLASS, OPCODE, RCODE, rcodeName, TYPE } from '../wire/codes.ts'
import { DnsError } from '../error.ts'
import { decodeMessage, encodeMessage, FLAG, type Message } from '../wire/message.ts'
import { type Fqdn, fqdn, isSubdomain } from '../wire/name.ts'
import type { Resource } from '../wire/record.ts'
import { readTsig, signMessage, type TsigKey, tsigError, verifyMessage } from '../wire/tsig.ts'
import { Deframer, frame } from '../wire/tcp-frame.ts'
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
function isReplyTo(zone: Fqdn, { flags, opcode, questions }: Message): boolean {
  if ((flags & FLAG.QR) === 0 || opcode !== OPCODE.QUERY || questions.length > 1) return false
  return questions.every(({ name, type }) => type === TYPE.AXFR && fqdn(name) === zone)
}

/**
 * Records in transfer order, the SOA first and not again at the end. Records of names outside the zone are skipped, as BIND
 * does: the server has no authority over them. Throws DnsError.
 */
export async function* transferZone(request: TransferRequest, id: number, now: () => number): AsyncGenerator<Resource> {
  const { server, zone, key, signal, idleMs = 10_000 } = request
  const where = serverText(server)
  const plain = encodeMessage({
    id,
    flags: 0,
    opcode: OPCODE.QUERY,
    rcode: 0,
    questions: [{ name: zone, type: TYPE.AXFR, class: CLASS.IN }],
    answers: [],
    authorities: [],
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
    let soas = 0
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      deframer.push(chunk)
      for (let bytes = deframer.next(); bytes !== undefined; bytes = deframer.next()) {
        const message = decodeMessage(bytes)
        if (message instanceof DnsError) throw broken(where, message.message, message)
        if (message.id !== id) throw broken(where, 'a message has another id')
        if (!isReplyTo(zone, message)) throw broken(where, 'a message answers another question')
        verifier?.take(bytes, message)
        if (message.rcode !== RCODE.NOERROR) {
          throw new DnsError(
            'RCODE',
            `${where} refused the transfer of ${zone} with ${rcodeName(message.rcode)}; check its transfer policy`,
          )
        }
        for (const record of message.answers) {
          if (soas === 2) throw broken(where, 'records follow the last SOA')
          const isSoa = record.type === TYPE.SOA && fqdn(record.name) === zone
          if (soas === 0 && !isSoa) throw broken(where, 'the first record is not the SOA')
          if (isSoa) soas++
          if (soas < 2 && isSubdomain(fqdn(record.name), zone)) yield record
        }
        if (soas === 2) {
          if (verifier?.isComplete === false)
            throw new DnsError('TSIG_MISSING', 'the end of the transfer is not signed')
          return
        }
      }
    }
    throw broken(where, 'the connection ended before the last SOA')
  } finally {
    signal?.removeEventListener('abort', abort)
    socket.destroy()
    if (!socket.closed) await once(socket, 'close').catch(() => {})
  }
}
