/**
 * The stored form of a zone: a sequence of frames, the same for snapshots and journals, whether in files or in ConfigMaps.
 *
 * A frame is its length (u32), the CRC-32 of its payload (u32) and the payload; numbers are big endian. A snapshot is a head,
 * blocks of records and an end; a journal is a head and deltas. Reading stops at the first frame that is incomplete or has a
 * wrong checksum: what a crash left at the end of a journal was never acknowledged. A snapshot without its end is an error.
 */
import { crc32 } from 'node:zlib'
import { DnsError } from '../error.ts'
import { WireReader, WireWriter } from '../wire/wire.ts'
import { nameToWire, type Fqdn, wireToFqdn } from '../wire/name.ts'
import { buildZone } from '../zone/zone-build.ts'
import type { ZoneDelta, ZoneRecord } from '../zone/zone-delta.ts'
import { RecordLog } from '../zone/zone-log.ts'
import { datasOf, ttlOf } from '../zone/zone-shard.ts'
import { Zone } from '../zone/zone-table.ts'

/** Of the format. A reader refuses a newer one. */
const STORE_VERSION = 1

const KIND = { head: 1, records: 2, end: 3, delta: 4 } as const
const FRAME_HEAD = 8
const MAX_FRAME = 1 << 28
/** Octets of a block of records in a snapshot. */
const BLOCK = 65_536

export type StoredFrame =
  | { readonly kind: 'head'; readonly origin: Fqdn; readonly base: number }
  | { readonly kind: 'records'; readonly records: readonly ZoneRecord[] }
  | { readonly kind: 'end'; readonly count: number }
  | { readonly kind: 'delta'; readonly delta: ZoneDelta }

const corrupt = (why: string, cause?: unknown) => new DnsError('STORE_CORRUPT', why, { cause })

function writeRecord(out: WireWriter, { name, type, ttl, data }: ZoneRecord): void {
  out.put(name)
  out.u16(type)
  out.u32(ttl)
  out.u16(data.length)
  out.put(data)
}

function readRecord(from: WireReader): ZoneRecord {
  const name = from.name()
  return { name, type: from.u16(), ttl: from.u32(), data: from.take(from.u16()).slice() }
}

function frameOf(payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD + payload.length)
  frame.writeUInt32BE(payload.length, 0)
  frame.writeUInt32BE(crc32(payload), 4)
  frame.set(payload, FRAME_HEAD)
  return frame
}

/** `base` is the serial that a journal starts from; of a snapshot, its serial. */
export function headFrame(origin: Fqdn, base: number): Buffer {
  const out = new WireWriter(512)
  out.u8(KIND.head)
  out.u16(STORE_VERSION)
  out.u32(base)
  out.put(nameToWire(origin))
  return frameOf(out.finish())
}

export function deltaFrame({ before, after, removed, added }: ZoneDelta): Buffer {
  const out = new WireWriter(1024)
  out.u8(KIND.delta)
  writeRecord(out, before)
  writeRecord(out, after)
  out.u32(removed.length)
  for (const record of removed) writeRecord(out, record)
  for (const record of added) writeRecord(out, record)
  return frameOf(out.finish())
}

/** The frames of a snapshot; one at a time, so that a caller can give way to queries between them. */
export function* snapshotFrames(zone: Zone): Generator<Buffer> {
  yield headFrame(zone.origin, zone.serial)
  const out = new WireWriter(BLOCK * 2)
  out.u8(KIND.records)
  let count = 0
  for (const { name, set } of zone.packedSets()) {
    for (const data of datasOf(set)) {
      writeRecord(out, { name, type: set.type, ttl: ttlOf(set.body), data })
      count++
    }
    if (out.at < BLOCK) continue
    yield frameOf(out.finish())
    out.reset()
    out.u8(KIND.records)
  }
  yield frameOf(out.finish())
  out.reset()
  out.u8(KIND.end)
  out.u32(count)
  yield frameOf(out.finish())
}

function decode(payload: Uint8Array): StoredFrame {
  const from = new WireReader(payload)
  const kind = from.u8()
  switch (kind) {
    case KIND.head: {
      const version = from.u16()
      if (version > STORE_VERSION) {
        throw new DnsError(
          'STORE_VERSION',
          `it has format ${version}, and this version reads up to ${STORE_VERSION}: run the version that wrote it, or move it away to start from an empty zone`,
        )
      }
      const base = from.u32()
      return { kind: 'head', base, origin: wireToFqdn(from.name()) }
    }
    case KIND.records: {
      const records: ZoneRecord[] = []
      while (from.left > 0) records.push(readRecord(from))
      return { kind: 'records', records }
    }
    case KIND.end:
      return { kind: 'end', count: from.u32() }
    case KIND.delta: {
      const before = readRecord(from)
      const after = readRecord(from)
      const removed: ZoneRecord[] = []
      for (let left = from.u32(); left > 0; left--) removed.push(readRecord(from))
      const added: ZoneRecord[] = []
      while (from.left > 0) added.push(readRecord(from))
      return { kind: 'delta', delta: { before, after, removed, added } }
    }
  }
  throw corrupt(`a frame has the unknown kind ${kind}`)
}

export interface ReadFrames {
  readonly frames: readonly StoredFrame[]
  /** Octets of whole frames; what follows is incomplete or damaged. */
  readonly length: number
}

/** Throws STORE_VERSION, and STORE_CORRUPT for a frame whose checksum is right and whose content is not. */
export function readFrames(bytes: Uint8Array): ReadFrames {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const frames: StoredFrame[] = []
  let at = 0
  while (bytes.length - at > FRAME_HEAD) {
    const length = view.getUint32(at)
    const end = at + FRAME_HEAD + length
    if (length === 0 || length > MAX_FRAME || end > bytes.length) break
    const payload = bytes.subarray(at + FRAME_HEAD, end)
    if (crc32(payload) !== view.getUint32(at + 4)) break
    try {
      frames.push(decode(payload))
    } catch (error) {
      if (error instanceof DnsError && error.code === 'MALFORMED') throw corrupt(error.message, error)
      throw error
    }
    at = end
  }
  return { frames, length: at }
}

/** The zone of a snapshot. Throws STORE_CORRUPT, STORE_VERSION. */
export function readSnapshot(bytes: Uint8Array, origin: Fqdn): Zone {
  const { frames, length } = readFrames(bytes)
  const [head] = frames
  const end = frames.at(-1)
  if (head?.kind !== 'head') throw corrupt('the snapshot does not begin with its head')
  if (head.origin !== origin) throw corrupt(`the snapshot is of zone ${head.origin}, not of ${origin}`)
  if (end?.kind !== 'end' || length !== bytes.length)
    throw corrupt(`the snapshot is damaged after octet ${length} of ${bytes.length}`)
  const log = new RecordLog(nameToWire(origin))
  let count = 0
  for (const frame of frames) {
    if (frame.kind !== 'records') continue
    for (const { name, type, ttl, data } of frame.records) log.add(name, type, ttl, data, 0)
    count += frame.records.length
  }
  if (count !== end.count) throw corrupt(`the snapshot has ${count} records instead of ${end.count}`)
  const parts = buildZone(log)
  if (parts instanceof DnsError) throw corrupt(parts.message, parts)
  return new Zone(parts)
}
