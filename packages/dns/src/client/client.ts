/**
 * The DNS client: queries over UDP with retries and over TCP when truncated, updates, transfers, NOTIFY, and the same query to
 * several servers. Used by providers, `explain` and tests.
 *
 * Guarantees: ids are random, source ports are the kernel's, the case of names is random (0x20) and must be returned; an
 * answer is accepted only when id, question and, where a key is given, signature match. An rcode is a value, not an error;
 * timeouts, refused connections and invalid signatures throw DnsError. Every call ends by its deadline.
 */
import { randomInt } from 'node:crypto'
import { TcpPool } from './tcp-pool.ts'
import type { TransferResult } from './incremental.ts'
import { transferChanges, type TransferRequest, transferZone } from './transfer.ts'
import { exchangeUdp, type ServerAddress, serverText } from './udp-exchange.ts'
import { CLASS, OPCODE, RCODE, TYPE, typeCode } from '../wire/codes.ts'
import { type ClientSubnet, type Edns, type EdnsOption, encodeSubnet, SAFE_UDP_SIZE } from '../wire/edns.ts'
import { DnsError } from '../error.ts'
import { decodeMessage, encodeMessage, FLAG, type Message } from '../wire/message.ts'
import { type Fqdn, fqdn, nameToText, nameToWire } from '../wire/name.ts'
import { groupRecords, type RRset, type Resource } from '../wire/record.ts'
import { readTsig, signMessage, type TsigKey, tsigError, verifyMessage } from '../wire/tsig.ts'
import { type Update, updateMessage } from '../wire/update-message.ts'

export interface DnsClientOptions {
  /** Milliseconds for one try. @default 2000 */
  readonly timeoutMs?: number
  /** Tries by UDP before giving up. @default 3 */
  readonly tries?: number
  /** Random case of names. @default true */
  readonly isCaseRandom?: boolean
  /** Uniform below `limit`; the source of ids and case. @default crypto.randomInt */
  readonly random?: (limit: number) => number
  /** Milliseconds since 1970. @default Date.now */
  readonly now?: () => number
}

export interface CallOptions {
  readonly server: ServerAddress
  readonly key?: TsigKey
  /** Milliseconds for the whole call. @default timeoutMs × tries */
  readonly deadlineMs?: number
  readonly signal?: AbortSignal
  /** @default 'udp', with TCP when truncated */
  readonly transport?: 'udp' | 'tcp'
}

export interface QueryOptions extends CallOptions {
  readonly name: string
  readonly type: string
  /** @default IN */
  readonly class?: number
  /** Set RD. @default false */
  readonly isRecursive?: boolean
  /** False sends no OPT. @default true */
  readonly hasEdns?: boolean
  readonly ednsSize?: number
  readonly isDo?: boolean
  readonly subnet?: ClientSubnet
  readonly options?: readonly EdnsOption[]
  /** Return a truncated answer instead of repeating the query over TCP. @default false */
  readonly isTruncationKept?: boolean
  /** Further header flags, for instance AD or CD. */
  readonly flags?: number
}

export interface Reply {
  readonly message: Message
  readonly server: ServerAddress
  readonly transport: 'udp' | 'tcp'
  readonly durationMs: number
  /** Octets of the answer. */
  readonly size: number
}

export interface ServerReply {
  readonly server: ServerAddress
  readonly reply: Reply | DnsError
}

export interface Comparison {
  readonly replies: readonly ServerReply[]
  /** Every server answered, and all gave the same rcode and records (TTLs aside). */
  readonly isAgreed: boolean
}

export interface DnsClient {
  query(options: QueryOptions): Promise<Reply>
  update(options: CallOptions & Update): Promise<Reply>
  /** Sends NOTIFY (RFC 1996). */
  notify(options: CallOptions & { readonly zone: Fqdn }): Promise<Reply>
  /** Records as they arrive, the SOA first. */
  transfer(request: TransferRequest): AsyncGenerator<Resource>
  /** IXFR (RFC 1995): what changed since the SOA `known`, or the whole zone; AXFR without it. */
  transferChanges(request: TransferRequest & { readonly known?: Resource }): Promise<TransferResult>
  /** The whole zone as RRsets. */
  transferRRsets(request: TransferRequest): Promise<RRset[]>
  /** The same query to several servers at once. */
  compare(servers: readonly ServerAddress[], question: Omit<QueryOptions, 'server'>): Promise<Comparison>
  close(): Promise<void>
}

type Draft = Omit<Message, 'id'>

/**
 * Compares as received: with random case the octets of the question must come back unchanged. An answer without its question
 * proves nothing but the id, so it is taken in two cases only: for UPDATE, where the zone section is optional
 * (RFC 2136 §3.8), and as FORMERR or NOTIMP without records from a server that could not read the question.
 */
function isAnswerTo(question: Uint8Array, questionEnd: number, packet: Uint8Array): boolean {
  if (packet.length < 12 || packet[0] !== question[0] || packet[1] !== question[1]) return false
  if ((packet[2]! & 0x80) === 0 || ((packet[2]! ^ question[2]!) & 0x78) !== 0) return false
  if (packet[4] === 0 && packet[5] === 0) {
    if (((packet[2]! >> 3) & 15) === OPCODE.UPDATE) return true
    const rcode = packet[3]! & 15
    const hasRecords = (packet[6]! | packet[7]! | packet[8]! | packet[9]!) !== 0
    return (rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP) && !hasRecords
  }
  if (packet[4] !== question[4] || packet[5] !== question[5] || packet.length < questionEnd) return false
  for (let i = 12; i < questionEnd; i++) if (packet[i] !== question[i]) return false
  return true
}

export function createDnsClient(options: DnsClientOptions = {}): DnsClient {
  const {
    timeoutMs = 2000,
    tries = 3,
    isCaseRandom = true,
    random = (limit: number) => randomInt(limit),
    now = Date.now,
  } = options
  const pool = new TcpPool()
  const seconds = () => Math.floor(now() / 1000)

  const randomCase = (name: string): string => {
    const wire = nameToWire(name)
    for (let i = 0; i < wire.length; i++) {
      const lower = wire[i]! | 0x20
      if (wire[i]! > 63 && lower >= 0x61 && lower <= 0x7a && random(2) === 1) wire[i]! ^= 0x20
    }
    return nameToText(wire)
  }

  function verify(bytes: Buffer, message: Message, key: TsigKey, requestMac: Uint8Array, where: string): void {
    if (message.tsig === undefined) {
      // RFC 8945 §5.4: an unsigned answer is not trusted; its rcode is shown as a hint.
      throw new DnsError(
        'TSIG_MISSING',
        `${where} did not sign its answer with ${key.name} (rcode ${message.rcode}); does it know the key?`,
      )
    }
    const record = readTsig(bytes, message.tsig.start)
    const own = seconds()
    if (record.error === RCODE.BADKEY || record.error === 16) throw tsigError(record.error, record, own)
    const verdict = verifyMessage(
      bytes,
      message.tsig.start,
      record,
      (name) => (name === key.name ? key : undefined),
      own,
      { previousMac: requestMac },
    )
    if (record.error === RCODE.BADTIME || record.error === RCODE.BADTRUNC) throw tsigError(record.error, record, own)
    if (verdict.kind === 'invalid') throw tsigError(verdict.error, { ...record, error: verdict.error }, own)
  }

  async function exchange(draft: Draft, call: CallOptions, isTruncationKept = false): Promise<Reply> {
    const { server, key, signal } = call
    const startedAt = now()
    const deadline = startedAt + (call.deadlineMs ?? timeoutMs * tries)
    const where = serverText(server)
    let transport = call.transport ?? 'udp'
    let lastError: DnsError | undefined
    for (let attempt = 0; attempt < tries; attempt++) {
      const left = Math.min(timeoutMs, deadline - now())
      if (left <= 0) break
      const plain = encodeMessage({ ...draft, id: random(65_536) })
      const questionEnd = 12 + draft.questions.reduce((sum, { name }) => sum + nameToWire(name).length + 4, 0)
      const signed = key === undefined ? undefined : signMessage(plain, key, seconds())
      const question = signed?.bytes ?? plain
      if (transport === 'udp' && question.length > SAFE_UDP_SIZE) transport = 'tcp'
      try {
        const isAnswer = (packet: Buffer) => isAnswerTo(question, questionEnd, packet)
        const bytes =
          transport === 'udp'
            ? await exchangeUdp(server, question, isAnswer, left, signal)
            : await pool.exchange(server, question, isAnswer, left, signal)
        const message = decodeMessage(bytes)
        if (message instanceof DnsError) throw message
        if ((message.flags & FLAG.TC) !== 0 && transport === 'udp' && !isTruncationKept) {
          transport = 'tcp'
          attempt--
          continue
        }
        if (key !== undefined) verify(bytes, message, key, signed!.mac, where)
        return { message, server, transport, durationMs: now() - startedAt, size: bytes.length }
      } catch (error) {
        if (!(error instanceof DnsError)) throw error
        if (error.code !== 'TIMEOUT' && error.code !== 'NETWORK') throw error
        lastError = error
      }
    }
    throw lastError ?? new DnsError('TIMEOUT', `no answer from ${where} by the deadline`)
  }

  async function query(question: QueryOptions): Promise<Reply> {
    const edns: Edns = {
      size: question.ednsSize ?? SAFE_UDP_SIZE,
      version: 0,
      isDo: question.isDo ?? false,
      options: [...(question.subnet === undefined ? [] : [encodeSubnet(question.subnet)]), ...(question.options ?? [])],
    }
    const draft: Draft = {
      flags: (question.isRecursive === true ? FLAG.RD : 0) | (question.flags ?? 0),
      opcode: OPCODE.QUERY,
      rcode: 0,
      questions: [
        {
          name: isCaseRandom ? randomCase(question.name) : question.name,
          type: typeCode(question.type),
          class: question.class ?? CLASS.IN,
        },
      ],
      answers: [],
      authorities: [],
      additionals: [],
      ...(question.hasEdns !== false && { edns }),
    }
    const reply = await exchange(draft, question, question.isTruncationKept)
    // RFC 6891 §7: a server without EDNS answers FORMERR without OPT; repeat the query without EDNS.
    if (reply.message.rcode === RCODE.FORMERR && reply.message.edns === undefined && draft.edns !== undefined) {
      const { edns: _, ...old } = draft
      return exchange(old, question, question.isTruncationKept)
    }
    return reply
  }

  const transfer = (request: TransferRequest) => transferZone(request, random(65_536), seconds)

  return {
    query,
    update: async (call) => exchange(updateMessage(call), call),
    notify: async (call) =>
      exchange(
        {
          flags: FLAG.AA,
          opcode: OPCODE.NOTIFY,
          rcode: 0,
          questions: [{ name: call.zone, type: TYPE.SOA, class: CLASS.IN }],
          answers: [],
          authorities: [],
          additionals: [],
        },
        call,
      ),
    transfer,
    transferChanges: async (request) => transferChanges(request, random(65_536), seconds),
    async transferRRsets(request) {
      const records: Resource[] = []
      for await (const record of transfer(request)) records.push(record)
      return groupRecords(records)
    },
    async compare(servers, question) {
      const replies = await Promise.all(
        servers.map(async (server): Promise<ServerReply> => {
          try {
            return { server, reply: await query({ ...question, server }) }
          } catch (error) {
            if (error instanceof DnsError) return { server, reply: error }
            throw error
          }
        }),
      )
      const texts = replies.map(({ reply }) => (reply instanceof DnsError ? undefined : answerKey(reply.message)))
      return { replies, isAgreed: texts.every((text) => text !== undefined && text === texts[0]) }
    },
    close: async () => pool.close(),
  }
}

/** Equal for servers that agree: rcode and the answer section without TTLs and order. */
function answerKey(message: Message): string {
  const sets = groupRecords(message.answers).map(
    (set) => `${fqdn(set.name)} ${set.type} ${set.values.toSorted().join(' | ')}`,
  )
  return `${message.rcode}\n${sets.toSorted().join('\n')}`
}
