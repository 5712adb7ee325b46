/** A zone from what a transfer brought (client/incremental.ts). Pure. */
import type { Difference, TransferResult } from '../client/incremental.ts'
import { DnsError } from '../error.ts'
import { type Fqdn, lowerWire, nameToWire } from '../wire/name.ts'
import type { Resource } from '../wire/record.ts'
import { buildZone } from '../zone/zone-build.ts'
import { applyDelta, type ZoneDelta, type ZoneRecord } from '../zone/zone-delta.ts'
import { RecordLog } from '../zone/zone-log.ts'
import { Zone } from '../zone/zone-table.ts'

export interface TransferredZone {
  readonly zone: Zone
  /** From the version before, when the transfer was incremental. */
  readonly deltas?: readonly ZoneDelta[]
}

const toRecord = ({ name, type, ttl, data }: Resource): ZoneRecord => ({
  name: lowerWire(nameToWire(name)),
  type,
  ttl,
  data,
})

const toDelta = ({ before, after, removed, added }: Difference): ZoneDelta => ({
  before: toRecord(before),
  after: toRecord(after),
  removed: removed.map(toRecord),
  added: added.map(toRecord),
})

/** Undefined when the server has nothing newer. Throws DnsError when the content is no zone or does not fit the present one. */
export function zoneOf(origin: Fqdn, present: Zone | undefined, result: TransferResult): TransferredZone | undefined {
  switch (result.kind) {
    case 'current':
      return undefined
    case 'zone': {
      const log = new RecordLog(lowerWire(nameToWire(origin)))
      for (const record of result.records) log.add(nameToWire(record.name), record.type, record.ttl, record.data, 0)
      const parts = buildZone(log)
      if (parts instanceof DnsError) throw parts
      return { zone: new Zone(parts) }
    }
    case 'changes': {
      if (present === undefined) throw new DnsError('TRANSFER', `changes of zone ${origin} came without the zone`)
      const deltas = result.differences.map(toDelta)
      return { zone: deltas.reduce(applyDelta, present), deltas }
    }
  }
}
