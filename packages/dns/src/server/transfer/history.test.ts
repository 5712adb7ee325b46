import { describe, expect, it } from 'vitest'
import { TYPE } from '../../wire/codes.ts'
import type { ZoneDelta, ZoneRecord } from '../../zone/zone-delta.ts'
import { ZoneHistory } from './history.ts'

function soa(serial: number): ZoneRecord {
  const data = new Uint8Array(22)
  new DataView(data.buffer).setUint32(2, serial)
  return { name: Uint8Array.of(0), type: TYPE.SOA, ttl: 1, data }
}

const delta = (from: number, records = 0): ZoneDelta => ({
  before: soa(from),
  after: soa(from + 1),
  removed: [],
  added: Array.from({ length: records }, () => soa(0)),
})

describe('the history of a zone', () => {
  it('has the last thousand changes, and no chain from before them', () => {
    const history = new ZoneHistory()
    for (let serial = 1; serial <= 1001; serial++) history.add(delta(serial))
    expect(history.since(1, 1002, 1_000_000)).toBeUndefined()
    expect(history.since(2, 1002, 1_000_000)).toHaveLength(1000)
  })

  it('has at most a hundred thousand records', () => {
    const history = new ZoneHistory()
    for (let serial = 1; serial <= 3; serial++) history.add(delta(serial, 49_998))
    expect(history.since(1, 4, 1_000_000)).toBeUndefined()
    expect(history.since(2, 4, 1_000_000)).toHaveLength(2)
  })

  it('begins again with a change that does not follow the last one', () => {
    const history = new ZoneHistory()
    for (const serial of [1, 2, 7]) history.add(delta(serial))
    expect(history.since(1, 8, 1_000_000)).toBeUndefined()
    expect(history.since(7, 8, 1_000_000)).toHaveLength(1)
    expect(history.since(7, 9, 1_000_000)).toBeUndefined()
  })

  it('is not used where it is longer than the zone', () => {
    const history = new ZoneHistory()
    for (const serial of [1, 2]) history.add(delta(serial, 3))
    expect(history.since(1, 3, 10)).toHaveLength(2)
    expect(history.since(1, 3, 9)).toBeUndefined()
  })
})
