/**
 * AXFR (RFC 5936) and IXFR (RFC 1995) to secondaries: over TCP, signed, only for keys that the zone's policy names. The zone
 * is immutable, so a transfer is consistent although the zone may be swapped meanwhile; messages are encoded one by one as
 * the connection accepts them. IXFR is answered with the changes since the client's serial while they are known and shorter
 * than the zone, else with the whole zone, and with the SOA alone when the client is up to date (§4) or uses UDP (§2).
 */
import { CLASS, RCODE, TYPE } from '../../wire/codes.ts'
import { DnsError } from '../../error.ts'
import { decodeMessage, FLAG, type Message } from '../../wire/message.ts'
import { fqdn } from '../../wire/name.ts'
import { isNewer, serialOf } from '../../zone/soa.ts'
import { signMessage, type TsigKey } from '../../wire/tsig.ts'
import { WireWriter } from '../../wire/wire.ts'
import type { ZoneDelta, ZoneRecord } from '../../zone/zone-delta.ts'
import { packSet, type PackedSet } from '../../zone/zone-shard.ts'
import type { Zone } from '../../zone/zone-table.ts'
import { writeSet } from '../answer-set.ts'

/** Octets after which a message is sent. One RRset may exceed it; with TSIG it still fits 65 535. */
const FILL = 16_384
const ROOM = 65_000

export interface TransferPlan {
  readonly zone: Zone
  readonly message: Message
  /** The client has this version already. */
  readonly isCurrent: boolean
  /** IXFR: the serial of the client. */
  readonly knownSerial?: number
}

/** What to transfer, or the rcode of the error response. */
export function planTransfer(bytes: Uint8Array, zones: (message: Message) => Zone | undefined): TransferPlan | number {
  const message = decodeMessage(bytes)
  if (message instanceof DnsError) return RCODE.FORMERR
  const zone = zones(message)
  if (zone === undefined) return RCODE.NOTAUTH
  const [known] = message.authorities
  const isIncremental =
    message.questions[0]!.type === TYPE.IXFR && known?.type === TYPE.SOA && fqdn(known.name) === zone.origin
  if (!isIncremental) return { zone, message, isCurrent: false }
  const knownSerial = serialOf(known.data)
  return { zone, message, isCurrent: !isNewer(zone.serial, knownSerial), knownSerial }
}

interface Entry {
  readonly name: Uint8Array
  readonly set: PackedSet
}

const soaEntry = (zone: Zone): Entry => ({ name: zone.originWire, set: zone.findPacked(zone.originWire, TYPE.SOA)! })

/** Only the SOA: the client is up to date, or has to ask again over TCP. */
export const soaOnly = (zone: Zone): Entry[] => [soaEntry(zone)]

/** RRsets in the order of AXFR: SOA, the others, SOA. */
export function* wholeZone(zone: Zone): Generator<Entry> {
  yield soaEntry(zone)
  for (const entry of zone.packedSets()) if (entry.set.type !== TYPE.SOA && entry.set.records > 0) yield entry
  yield soaEntry(zone)
}

/** RFC 1995 §4: the new SOA; for each change the old SOA, what was removed, the new SOA, what was added; the new SOA. */
export function* incremental(zone: Zone, deltas: readonly ZoneDelta[]): Generator<Entry> {
  const entry = ({ name, type, ttl, data }: ZoneRecord): Entry => ({ name, set: packSet(type, ttl, [data]) })
  yield soaEntry(zone)
  for (const { before, removed, after, added } of deltas) {
    yield entry(before)
    for (const record of removed) yield entry(record)
    yield entry(after)
    for (const record of added) yield entry(record)
  }
  yield soaEntry(zone)
}

/** The messages of a transfer, each signed in the chain of RFC 8945 §5.3.1. Dynamic RRsets have no records and are left out. */
export function* transferMessages(
  zone: Zone,
  request: Message,
  entries: Iterable<Entry>,
  key: TsigKey,
  requestMac: Uint8Array,
  now: () => number,
): Generator<Buffer> {
  const out = new WireWriter(FILL * 2)
  const question = request.questions[0]!
  let previousMac = requestMac
  let isContinued = false
  let records = 0
  const begin = () => {
    out.reset()
    out.u16(request.id)
    out.u16(FLAG.QR | FLAG.AA)
    out.u16(isContinued ? 0 : 1)
    out.u32(0)
    out.u16(0)
    if (!isContinued) {
      out.name(zone.originWire)
      out.u16(question.type)
      out.u16(CLASS.IN)
    }
    records = 0
  }
  const end = (): Buffer => {
    const message = out.finish()
    message.writeUInt16BE(records, 6)
    const signed = signMessage(message, key, now(), { previousMac, isContinued })
    previousMac = signed.mac
    isContinued = true
    return signed.bytes
  }
  begin()
  for (const { name, set } of entries) {
    if (records > 0 && (out.at > FILL || out.at + set.body.length + set.records * name.length > ROOM)) {
      yield end()
      begin()
    }
    writeSet({ owner: name, set }, out)
    records += set.records
  }
  yield end()
}
