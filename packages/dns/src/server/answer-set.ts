/** RRsets encoded into a message with names compressed, each whole or not at all. */
import { TYPE } from '../wire/codes.ts'
import { writeRdata } from '../wire/rdata/grammar.ts'
import type { WireWriter } from '../wire/wire.ts'
import { type PackedSet, RECORD_HEAD } from '../zone/zone-shard.ts'
import type { Zone } from '../zone/zone-table.ts'

/** An RRset in an answer, with the owner name to print: that of the query for a wildcard. */
export interface AnswerSet {
  readonly owner: Uint8Array
  readonly set: PackedSet
}

/** The SOA RRset of negative answers: with the TTL of RFC 2308 §3. */
export function negativeSoa(zone: Zone): AnswerSet {
  const { soa, originWire } = zone
  const set = zone.findPacked(originWire, TYPE.SOA)!
  const body = set.body.slice()
  new DataView(body.buffer).setUint32(6, soa.negativeTtl)
  return { owner: originWire, set: { ...set, body } }
}

/** Writes the records of an RRset with names compressed; records of equal length are rotated by `turn`. */
export function writeSet({ owner, set }: AnswerSet, out: WireWriter, turn = 0): void {
  const { body, type, records, recordLength } = set
  let at = records > 1 ? (turn % records) * recordLength : 0
  for (let i = 0; i < records; i++) {
    const end = at + RECORD_HEAD + ((body[at + 10]! << 8) | body[at + 11]!)
    out.name(owner)
    out.put(body, at + 2, at + 10)
    const length = out.at
    out.u16(0)
    writeRdata(type, body, out, at + RECORD_HEAD, end)
    out.closeLength(length)
    at = end === body.length ? 0 : end
  }
}
