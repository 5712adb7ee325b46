/**
 * Requests that answer.ts does not handle itself: UPDATE (RFC 2136), NOTIFY (RFC 1996) and everything that is signed.
 *
 * Guarantees: an invalid signature is answered as RFC 8945 §5.2 says and changes nothing; the answer to a signed request is
 * signed; a signed UPDATE is taken once (taken-updates.ts); over UDP a signed answer that is too long for the client is sent truncated and empty.
 */
import { OPCODE, RCODE, TYPE } from '../wire/codes.ts'
import { SAFE_UDP_SIZE } from '../wire/edns.ts'
import { FLAG } from '../wire/message.ts'
import { type Fqdn, wireToFqdn } from '../wire/name.ts'
import { signMessage, type TsigKey, type TsigRecord } from '../wire/tsig.ts'
import type { Zone } from '../zone/zone-table.ts'
import type { Answerer, Peer, SpecialAnswer } from './answer.ts'
import type { ZonePolicy } from './policy.ts'
import type { Request } from './request.ts'
import { authenticate, emptyAnswer, type Keyring, withoutTsig } from './signed.ts'
import { TakenUpdates } from './taken-updates.ts'
import type { Transfers } from './transfer/transfers.ts'
import { handleUpdate } from './update.ts'
import type { ZoneIndex } from './zone-index.ts'

export interface Notice {
  readonly zone: Fqdn
  /** Address of the sender. */
  readonly source: string
  /** Name of the key that signed it. */
  readonly key?: Fqdn
}

/** The zone after a change. `serial`: the serial to give it. @default the next one */
export type ZoneEdit = (zone: Zone, serial?: number) => Zone

export interface SpecialRequestsOptions {
  readonly keys: Keyring
  readonly zones: ZoneIndex
  readonly policyOf: (origin: Fqdn) => ZonePolicy
  readonly transfers: Transfers
  /** Answers the query of a signed request. */
  readonly unsigned: Answerer
  /** Seconds since 1970. */
  readonly now: () => number
  /** Performs the change of an UPDATE; a promise when that takes time. */
  readonly commit: (origin: Fqdn, change: ZoneEdit) => Promise<unknown> | void
  /** Returns whether a NOTIFY is accepted. @default refused */
  readonly onNotify?: (notice: Notice) => boolean
  readonly onError: (error: unknown) => void
}

export class SpecialRequests {
  /** UPDATEs that changed a zone. */
  updates = 0
  readonly #options: SpecialRequestsOptions
  readonly #taken = new TakenUpdates()

  constructor(options: SpecialRequestsOptions) {
    this.#options = options
  }

  answer(request: Request, peer: Peer): SpecialAnswer {
    const { keys, transfers, now } = this.#options
    const auth = authenticate(request, keys, now())
    if (auth.kind === 'refused') return auth.answer
    // Transfers over TCP take another path. IXFR over UDP gets the SOA; the client then uses TCP (RFC 1995 §2).
    if (auth.kind === 'signed' && request.opcode === OPCODE.QUERY && request.type === TYPE.IXFR) {
      const [soa] = transfers.answer(request.bytes.subarray(0, request.length), true) ?? []
      return soa
    }
    const key = auth.kind === 'signed' ? auth.key : undefined
    const answer = this.#unsignedAnswer(request, peer, key, auth.kind === 'signed' ? auth.record : undefined)
    if (answer === undefined || auth.kind === 'unsigned') return answer
    if (answer instanceof Promise) {
      const previousMac = auth.record.mac.slice()
      return answer.then((bytes) => signMessage(bytes, auth.key, now(), { previousMac }).bytes)
    }
    const sign = (bytes: Uint8Array) => signMessage(bytes, auth.key, now(), { previousMac: auth.record.mac }).bytes
    const signed = sign(answer)
    if (peer.transport === 'tcp' || signed.length <= Math.min(request.size, SAFE_UDP_SIZE)) return signed
    const cut = emptyAnswer(request, RCODE.NOERROR)
    cut[2]! |= FLAG.TC >> 8
    return sign(cut)
  }

  #unsignedAnswer(
    request: Request,
    peer: Peer,
    key: TsigKey | undefined,
    record: TsigRecord | undefined,
  ): Uint8Array | Promise<Uint8Array> | undefined {
    switch (request.opcode) {
      case OPCODE.UPDATE: {
        const take = () => this.#update(request.bytes.subarray(0, request.length), key)
        const taken = record === undefined ? take() : this.#taken.once(record, this.#options.now(), take)
        const rcode = taken ?? RCODE.REFUSED
        if (typeof rcode === 'number') return emptyAnswer(request, rcode)
        // The request object is used for the next packet before the rcode is known.
        const answer = emptyAnswer(request, RCODE.NOERROR)
        return rcode.then((known) => {
          answer[3] = known
          return answer
        })
      }
      case OPCODE.NOTIFY:
        return emptyAnswer(request, this.#notifyRcode(request, peer, key))
      default: {
        const query = withoutTsig(request)
        const out = Buffer.allocUnsafe(65_535)
        const length = this.#options.unsigned.answer(query, query.length, peer, out, 0)
        return length === 0 ? undefined : out.subarray(0, length)
      }
    }
  }

  #update(bytes: Uint8Array, key: TsigKey | undefined): number | Promise<number> {
    const { zones, policyOf, commit, onError } = this.#options
    const counted = (change: ZoneEdit) => (zone: Zone, serial?: number) => {
      const changed = change(zone, serial)
      if (changed !== zone) this.updates++
      return changed
    }
    return handleUpdate(
      {
        findZone: (origin) => zones.get(origin),
        policyOf,
        onError,
        commit: (origin, change) => commit(origin, counted(change)),
      },
      bytes,
      key,
    )
  }

  /** Without `onNotify` the server is primary for all its zones, and NOTIFY is refused (RFC 1996 §3.10). */
  #notifyRcode(request: Request, peer: Peer, key: TsigKey | undefined): number {
    if (request.questionEnd === 0) return RCODE.FORMERR
    const zone = wireToFqdn(request.name)
    const { zones, onNotify } = this.#options
    const isKnown = zones.get(zone) !== undefined || zones.isSuspended(request.name, request.nameLength, undefined)
    if (!isKnown) return RCODE.NOTAUTH
    const notice = { zone, source: peer.address, ...(key !== undefined && { key: key.name }) }
    return onNotify?.(notice) === true ? RCODE.NOERROR : RCODE.REFUSED
  }
}
