/**
 * A zone from its snapshot and its journals. Pure: the same octets give the same zone, after a crash at any point.
 *
 * Journals are numbered. Each starts from the serial in its head, and replaces what the one before it wrote after that
 * serial: a write that failed may nevertheless be on disk, and was never acknowledged. Deltas that the snapshot already
 * contains are skipped.
 */
import { DnsError } from '../error.ts'
import type { Fqdn } from '../wire/name.ts'
import { isNewer } from '../zone/soa.ts'
import { applyDelta, fromSerial, toSerial, type ZoneDelta } from '../zone/zone-delta.ts'
import type { Zone } from '../zone/zone-table.ts'
import { type ReadFrames, readFrames, readSnapshot, type StoredFrame } from './zone-frames.ts'

export interface Replayed {
  readonly zone: Zone
  /** The deltas after the snapshot, for IXFR. */
  readonly deltas: readonly ZoneDelta[]
  /** Octets at the ends of journals that were incomplete or damaged. */
  readonly droppedOctets: number
}

/** Throws STORE_CORRUPT and STORE_VERSION. */
export function replay(origin: Fqdn, snapshot: Uint8Array, journals: readonly Uint8Array[]): Replayed {
  let zone = readSnapshot(snapshot, origin)
  const read = journals.map((bytes) => ({ bytes, ...readFrames(bytes) })).filter(isUsable)
  const deltas: ZoneDelta[] = []
  let droppedOctets = 0
  for (const [i, { bytes, frames, length }] of read.entries()) {
    droppedOctets += bytes.length - length
    const limit = baseOf(read[i + 1])
    for (const frame of frames) {
      if (zone.serial === limit) break
      if (frame.kind !== 'delta' || fromSerial(frame.delta) !== zone.serial) continue
      zone = applyDelta(zone, frame.delta)
      deltas.push(frame.delta)
    }
  }
  checkChain(origin, read, zone)
  return { zone, deltas, droppedOctets }
}

/** A journal whose head was not written completely has no delta either. */
const isUsable = ({ frames }: ReadFrames): boolean => frames[0]?.kind === 'head'

function baseOf(read: ReadFrames | undefined): number | undefined {
  const head: StoredFrame | undefined = read?.frames[0]
  return head?.kind === 'head' ? head.base : undefined
}

/** The last delta has to be in the zone, or older than its snapshot: else a journal is missing or damaged in the middle. */
function checkChain(origin: Fqdn, read: readonly ReadFrames[], zone: Zone): void {
  const last = read.flatMap(({ frames }) => frames).findLast((frame) => frame.kind === 'delta')
  if (last === undefined || last.kind !== 'delta' || !isNewer(toSerial(last.delta), zone.serial)) return
  throw new DnsError(
    'STORE_CORRUPT',
    `the journal of zone ${origin} reaches serial ${toSerial(last.delta)}, but what is readable of it ends at ${zone.serial}`,
  )
}
