/**
 * Answers AXFR and IXFR of the zones of a server: verifies the signature, checks the policy of the zone, and chooses between
 * the changes since the client's serial and the whole zone (transfer.ts encodes either).
 *
 * Guarantees: a transfer is sent only to a key that the policy of the zone names; every answer to a signed query is signed.
 */
import { OPCODE, RCODE, TYPE } from '../../wire/codes.ts'
import { type Fqdn, fqdn } from '../../wire/name.ts'
import { signMessage } from '../../wire/tsig.ts'
import type { ZoneDelta } from '../../zone/zone-delta.ts'
import type { Zone } from '../../zone/zone-table.ts'
import type { ZonePolicy } from '../policy.ts'
import { Request } from '../request.ts'
import { authenticate, emptyAnswer, type Keyring } from '../signed.ts'
import { ZoneHistory } from './history.ts'
import { incremental, planTransfer, soaOnly, transferMessages, type TransferPlan, wholeZone } from './transfer.ts'

export interface TransfersOptions {
  readonly keys: Keyring
  readonly findZone: (origin: Fqdn) => Zone | undefined
  readonly policyOf: (origin: Fqdn) => ZonePolicy
  /** Seconds since 1970. */
  readonly now: () => number
}

export class Transfers {
  /** AXFR and IXFR together. */
  count = 0
  /** IXFR that sent changes only. */
  incrementalCount = 0
  readonly #options: TransfersOptions
  readonly #request = new Request()
  readonly #histories = new Map<Fqdn, ZoneHistory>()

  constructor(options: TransfersOptions) {
    this.#options = options
  }

  /** Adds changes of a zone to its history, from which IXFR is answered. */
  addChanges(origin: Fqdn, deltas: readonly ZoneDelta[]): void {
    const history = this.#histories.get(origin) ?? new ZoneHistory()
    this.#histories.set(origin, history)
    for (const delta of deltas) history.add(delta)
  }

  /** The zone was removed: its changes lead to no version of another zone with its name. */
  forget(origin: Fqdn): void {
    this.#histories.delete(origin)
  }

  /** The messages of a transfer, or its error response; undefined when the query asks for none. `isSoaOnly`: only the SOA. */
  answer(query: Uint8Array, isSoaOnly = false): Iterable<Buffer> | undefined {
    const { keys, findZone, policyOf, now } = this.#options
    const request = this.#request
    if (request.parse(query, query.length) !== RCODE.NOERROR || request.opcode !== OPCODE.QUERY) return undefined
    if ((request.type !== TYPE.AXFR && request.type !== TYPE.IXFR) || request.tsigAt === 0) return undefined
    const auth = authenticate(request, keys, now())
    if (auth.kind === 'refused') return [Buffer.from(auth.answer)]
    if (auth.kind === 'unsigned') return undefined
    const plan = planTransfer(query, ({ questions }) => findZone(fqdn(questions[0]!.name)))
    const isAllowed =
      typeof plan !== 'number' && policyOf(plan.zone.origin).transferKeys?.includes(auth.key.name) === true
    if (typeof plan === 'number' || !isAllowed) {
      const rcode = typeof plan === 'number' ? plan : RCODE.REFUSED
      return [signMessage(emptyAnswer(request, rcode), auth.key, now(), { previousMac: auth.record.mac }).bytes]
    }
    const entries = isSoaOnly || plan.isCurrent ? soaOnly(plan.zone) : this.#transferred(plan)
    return transferMessages(plan.zone, plan.message, entries, auth.key, auth.record.mac, now)
  }

  #transferred({ zone, knownSerial }: TransferPlan): ReturnType<typeof wholeZone> {
    this.count++
    const history = knownSerial === undefined ? undefined : this.#histories.get(zone.origin)
    const deltas = history?.since(knownSerial!, zone.serial, zone.rrsets)
    if (deltas === undefined) return wholeZone(zone)
    this.incrementalCount++
    return incremental(zone, deltas)
  }
}
