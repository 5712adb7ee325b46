/** Our server as a secondary of our server: IXFR, AXFR when that does not fit, NOTIFY, expiry, primaries that fail. */
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { createDnsClient, type DnsClient } from '../client/client.ts'
import { TransferReader } from '../client/incremental.ts'
import { DnsError } from '../error.ts'
import { CLASS, RCODE, TYPE } from '../wire/codes.ts'
import { fqdn } from '../wire/name.ts'
import { createRRset, type Resource, type RRset } from '../wire/record.ts'
import { TsigKey } from '../wire/tsig.ts'
import { createDnsServer, type DnsServer, type DnsServerOptions } from '../server/server.ts'
import { ZoneKeeper } from '../server/zone-keeper.ts'
import { isNewer, nextSerial } from '../zone/soa.ts'
import { createZone, sortSets, type Zone } from '../zone/zone-table.ts'
import { type SecondaryOptions, SecondaryZone } from './secondary.ts'

const ORIGIN = fqdn('example.test')
const KEY = new TsigKey('k', 'hmac-sha256', 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0')
const open: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

function zoneAt(serial: number, refresh = 3600): Zone {
  const many = Array.from({ length: 50 }, (_, i) => createRRset(`host-${i}.example.test`, 'A', 60, [`10.0.0.${i}`]))
  return createZone(ORIGIN, [
    createRRset(ORIGIN, 'SOA', 60, [`ns.example.test. host.example.test. ${serial} ${refresh} 1 86400 60`]),
    createRRset(ORIGIN, 'NS', 60, ['ns.example.test.']),
    ...many,
  ])
}

const changed = (zone: Zone, i: number, serial?: number): Zone =>
  zone.with([{ kind: 'put', set: createRRset('www.example.test', 'A', 60, [`192.0.2.${i}`]) }], serial)

const content = (zone: Zone | undefined): RRset[] => (zone === undefined ? [] : sortSets(ORIGIN, zone.sets()))

async function startServer(options: Partial<DnsServerOptions>): Promise<DnsServer> {
  const server = await createDnsServer({
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [KEY],
    defaultPolicy: { transferKeys: [KEY.name] },
    ...options,
  })
  open.push(server)
  return server
}

interface Copy {
  readonly server: DnsServer
  readonly secondary: SecondaryZone
  readonly zone: () => Zone | undefined
  readonly errors: unknown[]
}

/** A secondary with a server of its own. It runs until the test ends. */
async function startCopy(
  primaries: readonly DnsServer[],
  options: Partial<SecondaryOptions> & { isIdle?: boolean } = {},
): Promise<Copy> {
  let secondary: SecondaryZone | undefined
  const server = await startServer({
    suspended: [ORIGIN],
    onNotify: ({ source }) => {
      secondary?.notify(source)
      return true
    },
  })
  const keeper = new ZoneKeeper({ server })
  await keeper.open(ORIGIN)
  const errors: unknown[] = []
  const client = createDnsClient({ timeoutMs: 300, tries: 1 })
  secondary = new SecondaryZone({
    zone: ORIGIN,
    key: KEY,
    client,
    primaries: async () => primaries.map((primary) => primary.addresses[0]!),
    present: () => keeper.findZone(ORIGIN),
    accept: async ({ zone, deltas }) => {
      await keeper.replace(zone, deltas)
      keeper.serve(ORIGIN)
    },
    onError: (error) => errors.push(error),
    ...options,
  })
  const stopping = new AbortController()
  const running = options.isIdle === true ? Promise.resolve() : secondary.run(stopping.signal)
  open.push({
    async close() {
      stopping.abort()
      await running
      await client.close()
    },
  })
  return { server, secondary, zone: () => keeper.findZone(ORIGIN), errors }
}

async function until(what: () => unknown, wanted: unknown): Promise<void> {
  await expect.poll(what, { timeout: 10_000, interval: 10 }).toEqual(wanted)
}

describe('a secondary', () => {
  it('refuses before the first transfer, and then follows every NOTIFY by IXFR', async () => {
    const client = createDnsClient()
    open.push(client)
    const ports: number[] = []
    const primary = await startServer({
      zones: [zoneAt(1)],
      defaultPolicy: {
        transferKeys: [KEY.name],
        secondaries: async () => ports.map((port) => ({ address: '127.0.0.1', port, key: KEY.name })),
      },
    })
    const idle = await startCopy([primary], { isIdle: true })
    const refused = await client.query({ server: idle.server.addresses[0]!, name: 'www.example.test', type: 'A' })
    expect(refused.message.rcode).toBe(RCODE.REFUSED)

    const copy = await startCopy([primary])
    ports.push(copy.server.addresses[0]!.port)
    await until(() => copy.zone()?.serial, 1)
    for (let i = 1; i <= 5; i++) {
      primary.swap(changed(primary.findZone(ORIGIN)!, i))
      await until(() => copy.zone()?.serial, i + 1)
    }
    expect(content(copy.zone())).toEqual(content(primary.findZone(ORIGIN)))
    expect(primary.counters()).toMatchObject({ transfers: 6, incrementalTransfers: 5 })
    const { message } = await client.query({
      server: copy.server.addresses[0]!,
      name: 'www.example.test',
      type: 'A',
    })
    expect(message.answers).toHaveLength(1)
  })

  it('that lags gets several changes at once; one with an unknown serial gets the whole zone', async () => {
    const primary = await startServer({ zones: [zoneAt(10)] })
    const copy = await startCopy([primary], { isIdle: true })
    expect(await copy.secondary.refresh()).toBe(true)
    for (let i = 1; i <= 4; i++) primary.swap(changed(primary.findZone(ORIGIN)!, i))
    expect(await copy.secondary.refresh()).toBe(true)
    expect(primary.counters()).toMatchObject({ transfers: 2, incrementalTransfers: 1 })
    expect(content(copy.zone())).toEqual(content(primary.findZone(ORIGIN)))

    const other = await startServer({ zones: [changed(changed(zoneAt(100), 7), 8)] })
    const otherCopy = await startCopy([primary, other], { isIdle: true })
    await otherCopy.secondary.refresh()
    expect(content(otherCopy.zone())).toEqual(content(other.findZone(ORIGIN)))
    expect(other.counters()).toMatchObject({ transfers: 1, incrementalTransfers: 0 })
  })

  it('serves again after it was stopped and the primary went on, also over the end of the serials', async () => {
    const primary = await startServer({ zones: [zoneAt(0xffff_fffe)] })
    const first = await startCopy([primary], { isIdle: true })
    await first.secondary.refresh()
    for (let i = 1; i <= 3; i++) primary.swap(changed(primary.findZone(ORIGIN)!, i))
    expect(primary.findZone(ORIGIN)?.serial).toBe(2)
    await first.secondary.refresh()
    expect(first.zone()?.serial).toBe(2)
    expect(primary.counters().incrementalTransfers).toBe(1)
  })

  it('passes over primaries that are gone or know nothing, and takes the newest of the others', async () => {
    const gone = await startServer({ zones: [zoneAt(9)] })
    const strange = await startServer({ suspended: [ORIGIN] })
    const older = await startServer({ zones: [zoneAt(3)] })
    const newer = await startServer({ zones: [changed(zoneAt(3), 1)] })
    const copy = await startCopy([gone, strange, older, newer], { isIdle: true })
    await gone.close()
    expect(await copy.secondary.refresh()).toBe(true)
    expect(copy.zone()?.serial).toBe(4)
    expect(await copy.secondary.refresh()).toBe(true)
    const none = await startCopy([gone], { isIdle: true })
    expect(await none.secondary.refresh()).toBe(false)
    expect(none.errors).not.toEqual([])
  })

  it('takes the whole zone when the differences do not fit its own', async () => {
    const primary = await startServer({ zones: [zoneAt(1)] })
    primary.swap(changed(primary.findZone(ORIGIN)!, 1))
    primary.swap(primary.findZone(ORIGIN)!.with([{ kind: 'delete', name: fqdn('www.example.test'), type: 'A' }]))
    // The same serial, other content: as after a primary that lost its last writes.
    const other = await startServer({ zones: [changed(zoneAt(0), 1, 2).with([], 2)] })
    const copy = await startCopy([other], { isIdle: true })
    await copy.secondary.refresh()
    const broken = zoneAt(1).with([{ kind: 'delete', name: fqdn('host-1.example.test'), type: 'A' }], 2)
    const moved = await startCopy([primary], { isIdle: true, present: () => broken })
    void copy
    expect(await moved.secondary.refresh()).toBe(true)
    expect(moved.errors.map(String).join()).toMatch(/does not have/)
    expect(content(moved.zone())).toEqual(content(primary.findZone(ORIGIN)))
  })

  it('asks nothing while it writes itself, and gives up a zone that no primary confirms', async () => {
    const primary = await startServer({ zones: [zoneAt(5)] })
    let isActive = false
    const timers: (() => void)[] = []
    let now = 0
    let expired = 0
    const copy = await startCopy([primary], {
      isActive: () => isActive,
      expire: () => expired++,
      clock: {
        now: () => now,
        after(_ms, action) {
          timers.push(action)
          return () => undefined
        },
      },
    })
    const tick = async () => {
      await expect.poll(() => timers.length, { timeout: 10_000, interval: 5 }).toBeGreaterThan(0)
      timers.splice(0).forEach((action) => action())
    }
    await tick()
    expect(copy.zone()).toBeUndefined()
    isActive = true
    await tick()
    await until(() => copy.zone()?.serial, 5)
    await primary.close()
    // The time in which this process wrote the zone itself counts as confirmed.
    isActive = false
    now = 86_400_001
    await tick()
    await tick()
    isActive = true
    await tick()
    await tick()
    expect(expired).toBe(0)
    now = 3 * 86_400_001
    await tick()
    await until(() => expired, 1)
    // Written here and given up again, it expires again.
    isActive = false
    await tick()
    await tick()
    isActive = true
    await tick()
    await tick()
    now = 5 * 86_400_001
    await tick()
    await until(() => expired, 2)
  })
})

describe('a secondary of a primary that sometimes fails', () => {
  const PRIMARY = { address: '192.0.2.1' }
  const soaAnswer = (serial: number) => ({
    message: { rcode: RCODE.NOERROR, answers: [{ type: TYPE.SOA, data: zoneAt(serial).soa.data }] },
  })

  /** The delays after rounds in which the primary answers, or does not. */
  async function delaysOf(zone: Zone, rounds: readonly boolean[]): Promise<number[]> {
    const stopping = new AbortController()
    const delays: number[] = []
    const query = async () => {
      if (rounds[delays.length] !== true) throw new DnsError('TIMEOUT', 'no answer')
      return soaAnswer(zone.serial)
    }
    const secondary = new SecondaryZone({
      zone: ORIGIN,
      client: { query } as unknown as DnsClient,
      primaries: async () => [PRIMARY],
      present: () => zone,
      accept: async () => undefined,
      clock: {
        now: () => 0,
        after(ms, action) {
          delays.push(ms)
          if (delays.length === rounds.length) stopping.abort()
          queueMicrotask(action)
          return () => undefined
        },
      },
    })
    await secondary.run(stopping.signal)
    return delays
  }

  it('asks again with back-off up to the retry time of the zone, and from the beginning after a success', async () => {
    const rounds = [true, false, false, false, true, false]
    expect(await delaysOf(zoneAt(1), rounds)).toEqual([3_600_000, 500, 1000, 1000, 3_600_000, 500])
  })

  it('does not ask without a pause when the zone says so', async () => {
    expect(await delaysOf(zoneAt(1, 0), [true])).toEqual([1000])
  })

  it('does not transfer the zone again when it cannot be stored', async () => {
    let transfers = 0
    const client = {
      query: async () => soaAnswer(2),
      transferChanges: async ({ known }: { known?: Resource }) => {
        transfers++
        expect(known).toBeDefined()
        return { kind: 'zone', records: [{ ...known, data: zoneAt(2).soa.data }] }
      },
    }
    const secondary = new SecondaryZone({
      zone: ORIGIN,
      client: client as unknown as DnsClient,
      primaries: async () => [PRIMARY],
      present: () => zoneAt(1),
      accept: async () => Promise.reject(new DnsError('STORE_WRITE', 'the disk is full')),
    })
    expect(await secondary.refresh()).toBe(false)
    expect(transfers).toBe(1)
  })
})

describe('the records of an incremental transfer', () => {
  const soa = (serial: number): Resource => ({
    name: ORIGIN,
    type: TYPE.SOA,
    class: CLASS.IN,
    ttl: 60,
    data: zoneAt(serial).soa.data,
  })
  const a: Resource = {
    name: 'a.example.test.',
    type: TYPE.A,
    class: CLASS.IN,
    ttl: 60,
    data: Uint8Array.of(1, 2, 3, 4),
  }
  const read = (records: readonly Resource[]) => {
    const reader = new TransferReader(ORIGIN, true)
    for (const record of records) reader.take(record)
    return reader.result()
  }

  it('are differences, a whole zone, or nothing new', () => {
    expect(read([soa(1)])).toEqual({ kind: 'current', serial: 1 })
    expect(read([soa(3), a, soa(3)])).toMatchObject({ kind: 'zone', records: [soa(3), a] })
    expect(read([soa(3), soa(3)])).toMatchObject({ kind: 'zone', records: [soa(3)] })
    expect(read([soa(3), soa(1), a, soa(2), soa(2), soa(3), a, soa(3)])).toMatchObject({
      kind: 'changes',
      differences: [
        { before: soa(1), removed: [a], after: soa(2), added: [] },
        { before: soa(2), removed: [], after: soa(3), added: [a] },
      ],
    })
  })

  it.each([
    ['no SOA first', [a]],
    ['no end', [soa(3), soa(1), a, soa(2)]],
    ['a gap', [soa(4), soa(1), soa(2), soa(3), soa(4), soa(4)]],
    ['records after the end', [soa(3), soa(3), a]],
    ['a difference after the last one', [soa(3), soa(2), soa(3), soa(2)]],
  ])('with %s are an error', (_, records) => {
    expect(() => read(records)).toThrow(/malformed/)
  })
})

describe('serials', () => {
  const serials = fc.integer({ min: 0, max: 0xffff_ffff })

  it('are compared as RFC 1982 says: the next one is newer, also over the end, and never both of two', () => {
    fc.assert(
      fc.property(serials, serials, (a, b) => {
        expect(isNewer(nextSerial(a), a)).toBe(true)
        expect(nextSerial(a)).not.toBe(0)
        expect(isNewer(a, b) && isNewer(b, a)).toBe(false)
        // Half of the space away neither is newer by the RFC; ours picks at most one.
        if (a !== b && (a - b) >>> 0 !== 0x8000_0000) expect(isNewer(a, b)).not.toBe(isNewer(b, a))
      }),
    )
  })

  it('follow a clock that is ahead and are never moved back by one that is behind', () => {
    fc.assert(
      fc.property(serials, serials, (serial, clock) => {
        const next = nextSerial(serial, clock)
        expect(isNewer(next, serial)).toBe(true)
        expect([nextSerial(serial), clock]).toContain(next)
      }),
    )
  })
})
