/** What is stored is restored after a crash at any octet, and damage is recognised. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fqdn } from '../wire/name.ts'
import { createRRset, type RRset } from '../wire/record.ts'
import { applyDelta, diffZones, type ZoneDelta } from '../zone/zone-delta.ts'
import { createZone, sortSets, type Zone, type ZoneChange } from '../zone/zone-table.ts'
import { replay } from './replay.ts'
import { deltaFrame, headFrame, readFrames, snapshotFrames } from './zone-frames.ts'

const ORIGIN = fqdn('example.test')
const soa = (serial: number) =>
  createRRset(ORIGIN, 'SOA', 60, [`ns.example.test. host.example.test. ${serial} 3600 600 86400 60`])

const contentOf = (zone: Zone): RRset[] =>
  sortSets(ORIGIN, zone.sets()).map((set) => ({ ...set, values: [...set.values].sort() }))

const changes: fc.Arbitrary<ZoneChange> = fc
  .tuple(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 4 }), fc.constantFrom(60, 300), fc.boolean())
  .map(([name, value, ttl, isDeleted]) => {
    const owner = fqdn(`host-${name}.example.test`)
    if (isDeleted) return { kind: 'delete', name: owner, type: value === 0 ? 'TXT' : 'A' }
    const values = Array.from({ length: value + 1 }, (_, i) => `192.0.2.${i + name}`)
    return { kind: 'put', set: createRRset(owner, value === 0 ? 'TXT' : 'A', ttl, value === 0 ? ['"x"'] : values) }
  })

const histories = fc.tuple(
  // Serials that wrap (RFC 1982) are as good as others.
  fc.constantFrom(1, 0xffff_fffd),
  fc.array(fc.array(changes, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 12 }),
)

interface History {
  readonly versions: readonly Zone[]
  readonly deltas: readonly ZoneDelta[]
}

function play(serial: number, batches: readonly (readonly ZoneChange[])[]): History {
  const versions = [createZone(ORIGIN, [soa(serial)])]
  const deltas: ZoneDelta[] = []
  for (const batch of batches) {
    const before = versions.at(-1)!
    const after = before.with(batch)
    if (after === before) continue
    versions.push(after)
    deltas.push(diffZones(before, after))
  }
  return { versions, deltas }
}

const snapshotOf = (zone: Zone): Buffer => Buffer.concat([...snapshotFrames(zone)])

describe('a delta', () => {
  it('leads from one version to the next, and a decoded one does the same', () => {
    fc.assert(
      fc.property(histories, ([serial, batches]) => {
        const { versions, deltas } = play(serial, batches)
        for (const [i, delta] of deltas.entries()) {
          const [frame] = readFrames(deltaFrame(delta)).frames
          if (frame?.kind !== 'delta') throw new Error('no delta')
          const after = applyDelta(versions[i]!, frame.delta)
          expect(contentOf(after)).toEqual(contentOf(versions[i + 1]!))
          expect([after.names, after.rrsets]).toEqual([versions[i + 1]!.names, versions[i + 1]!.rrsets])
        }
      }),
    )
  })

  it('of another version is refused', () => {
    const { versions, deltas } = play(1, [
      [{ kind: 'put', set: createRRset('a.example.test', 'A', 60, ['192.0.2.1']) }],
      [{ kind: 'delete', name: fqdn('a.example.test'), type: 'A' }],
    ])
    expect(() => applyDelta(versions[0]!, deltas[1]!)).toThrow(/does not follow serial 1/)
    const renumbered = { ...deltas[1]!, before: deltas[0]!.before }
    expect(() => applyDelta(versions[0]!, renumbered)).toThrow(/does not have/)
  })
})

describe('a stored zone', () => {
  it('from which a block of records is missing is refused', () => {
    const hosts = Array.from({ length: 6000 }, (_, i) =>
      createRRset(`host-${i}.example.test`, 'A', 60, [`10.0.${i >> 8}.${i & 255}`]),
    )
    const frames = [...snapshotFrames(createZone(ORIGIN, [soa(1), ...hosts]))]
    expect(frames.length).toBeGreaterThan(4)
    const isRefused = (without: number) => {
      const rest = frames.filter((_, index) => index !== without)
      expect(() => replay(ORIGIN, Buffer.concat(rest), [])).toThrow(expect.objectContaining({ code: 'STORE_CORRUPT' }))
    }
    for (const index of frames.keys()) isRefused(index)
  })

  function checkCut({ versions, deltas }: History, cuts: (length: number) => Iterable<number>): void {
    const snapshot = snapshotOf(versions[0]!)
    const frames = [headFrame(ORIGIN, versions[0]!.serial), ...deltas.map(deltaFrame)]
    const journal = Buffer.concat(frames)
    const ends = frames.map((_, i) => frames.slice(0, i + 1).reduce((sum, { length }) => sum + length, 0))
    for (const cut of cuts(journal.length)) {
      const whole = ends.filter((end) => end <= cut).length
      const { zone, droppedOctets } = replay(ORIGIN, snapshot, [journal.subarray(0, cut)])
      expect(zone.serial).toBe(versions[Math.max(0, whole - 1)]!.serial)
      expect(droppedOctets).toBe(whole === 0 ? 0 : cut - (ends[whole - 1] ?? 0))
    }
    expect(contentOf(replay(ORIGIN, snapshot, [journal]).zone)).toEqual(contentOf(versions.at(-1)!))
  }

  it('cut at every octet of its journal has the changes that were written whole, in order', () => {
    const put = (name: string): ZoneChange => ({ kind: 'put', set: createRRset(name, 'A', 60, ['192.0.2.1']) })
    const history = play(1, [
      [put('a.example.test')],
      [put('b.example.test'), { kind: 'delete', name: fqdn('a.example.test'), type: 'A' }],
      [put('c.example.test')],
    ])
    checkCut(history, (length) => Array(length + 1).keys())
  })

  it('of any history, cut anywhere, is one of its versions', () => {
    fc.assert(
      fc.property(histories, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 5 }), (given, parts) => {
        checkCut(play(...given), (length) => parts.map((part) => Math.floor(part * length)))
      }),
      { numRuns: 50 },
    )
  })

  it('with any octet of its last change damaged has the changes before it', () => {
    const { versions, deltas } = play(1, [
      [{ kind: 'put', set: createRRset('a.example.test', 'A', 60, ['192.0.2.1']) }],
      [{ kind: 'put', set: createRRset('b.example.test', 'A', 60, ['192.0.2.2']) }],
    ])
    const snapshot = snapshotOf(versions[0]!)
    const kept = Buffer.concat([headFrame(ORIGIN, 1), deltaFrame(deltas[0]!)])
    const last = deltaFrame(deltas[1]!)
    for (let at = 0; at < last.length; at++) {
      const damaged = Buffer.from(last)
      damaged[at]! ^= 0x41
      const { zone } = replay(ORIGIN, snapshot, [Buffer.concat([kept, damaged])])
      expect(zone.serial).toBe(2)
    }
  })

  it('of every split into snapshot and journals is the same', () => {
    fc.assert(
      fc.property(histories, fc.nat(12), fc.nat(12), ([serial, batches], a, b) => {
        const { versions, deltas } = play(serial, batches)
        const [from, to] = [Math.min(a, b, deltas.length), Math.min(Math.max(a, b), deltas.length)]
        const journal = (start: number, end: number) =>
          Buffer.concat([headFrame(ORIGIN, versions[start]!.serial), ...deltas.slice(start, end).map(deltaFrame)])
        // The first journal begins before the snapshot: a crash left it behind.
        const journals = [journal(0, to), journal(to, deltas.length)]
        expect(contentOf(replay(ORIGIN, snapshotOf(versions[from]!), journals).zone)).toEqual(
          contentOf(versions.at(-1)!),
        )
      }),
      { numRuns: 50 },
    )
  })

  it('does not contain what a failed write left after the base of the next journal', () => {
    const put = (value: string): ZoneChange => ({
      kind: 'put',
      set: createRRset('a.example.test', 'A', 60, [value]),
    })
    const failed = play(1, [[put('192.0.2.1')], [put('192.0.2.2')]])
    const written = failed.versions[1]!.with([put('192.0.2.3')])
    const journals = [
      Buffer.concat([headFrame(ORIGIN, 1), ...failed.deltas.map(deltaFrame)]),
      Buffer.concat([headFrame(ORIGIN, 2), deltaFrame(diffZones(failed.versions[1]!, written))]),
    ]
    const { zone } = replay(ORIGIN, snapshotOf(failed.versions[0]!), journals)
    expect(zone.find(fqdn('a.example.test'), 'A')?.values).toEqual(['192.0.2.3'])
  })

  it('whose journal is damaged in the middle is refused, and so is a snapshot that is cut or of another zone', () => {
    const { versions, deltas } = play(1, [
      [{ kind: 'put', set: createRRset('a.example.test', 'A', 60, ['192.0.2.1']) }],
      [{ kind: 'put', set: createRRset('b.example.test', 'A', 60, ['192.0.2.2']) }],
    ])
    const snapshot = snapshotOf(versions[0]!)
    const second = Buffer.concat([headFrame(ORIGIN, 2), deltaFrame(deltas[1]!)])
    expect(() => replay(ORIGIN, snapshot, [second])).toThrow(/ends at 1/)
    for (const cut of [0, 10, snapshot.length - 1])
      expect(() => replay(ORIGIN, snapshot.subarray(0, cut), []), String(cut)).toThrow(/snapshot/)
    expect(() => replay(fqdn('other.test'), snapshot, [])).toThrow(/of zone example.test/)
  })

  it('of a newer version is refused with a message that says what to do', () => {
    const newer = headFrame(ORIGIN, 1)
    newer.writeUInt16BE(2, 9)
    const payload = newer.subarray(8)
    newer.writeUInt32BE(crc(payload), 4)
    expect(() => replay(ORIGIN, newer, [])).toThrow(/format 2.*reads up to 1.*run the version that wrote it/)
  })
})

function crc(payload: Uint8Array): number {
  let value = 0xffff_ffff
  for (const octet of payload) {
    value ^= octet
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ ((value & 1) === 1 ? 0xedb8_8320 : 0)
  }
  return (value ^ 0xffff_ffff) >>> 0
}
