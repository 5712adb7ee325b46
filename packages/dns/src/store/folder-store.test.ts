/** Zones in folders: after a crash at any point every acknowledged change is there; a failed write changes nothing. */
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DnsError } from '../error.ts'
import { fqdn } from '../wire/name.ts'
import { createRRset } from '../wire/record.ts'
import { diffZones } from '../zone/zone-delta.ts'
import { createZone, type Zone } from '../zone/zone-table.ts'
import { FolderStore } from './folder-store.ts'
import { ZoneKeeper } from '../server/zone-keeper.ts'

const ORIGIN = fqdn('example.test')
const EMPTY = createZone(ORIGIN, [
  createRRset(ORIGIN, 'SOA', 60, ['ns.example.test. host.example.test. 1 3600 600 86400 60']),
])
const NAME = fqdn('www.example.test')

let folder = ''
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'seamark-store-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const storeOf = (options: { compactOctets?: number; onWarning?: (why: string) => void } = {}) =>
  new FolderStore({ folder, origin: ORIGIN, ...options })

const withAddress = (zone: Zone, i: number): Zone =>
  zone.with([{ kind: 'put', set: createRRset(NAME, 'A', 60, [`192.0.2.${i}`]) }])

async function write(store: FolderStore, zone: Zone, i: number): Promise<Zone> {
  const after = withAddress(zone, i)
  await store.append(diffZones(zone, after), after)
  return after
}

const addressIn = (zone: Zone | undefined) => zone?.find(NAME, 'A')?.values[0]

describe('a folder store', () => {
  it('has one folder for each zone, inside the given one, whatever the name of the zone is', async () => {
    const origin = fqdn('\\.\\./\\.\\./outside.test')
    const store = new FolderStore({ folder: join(folder, 'zones'), origin })
    await store.replace(createZone(origin, [createRRset(origin, 'SOA', 60, ['ns. host. 1 3600 600 86400 60'])]))
    await store.close()
    expect(readdirSync(folder)).toEqual(['zones'])
    const [own = '', ...others] = readdirSync(join(folder, 'zones'))
    expect(others).toEqual([])
    expect(readdirSync(join(folder, 'zones', own))).toContain('snapshot')
  })

  it('writes a snapshot again and again while it is open', async () => {
    const store = storeOf({ compactOctets: 1 })
    let zone = EMPTY
    await store.replace(zone)
    for (let i = 1; i <= 60; i++) zone = await write(store, zone, i)
    await store.close()
    const numbers = readdirSync(join(folder, 'example.test')).flatMap((file) => /^journal-(\d+)$/.exec(file)?.[1] ?? [])
    expect(Math.min(...numbers.map(Number))).toBeGreaterThan(3)
    expect(addressIn((await storeOf().load())?.zone)).toBe('192.0.2.60')
  })

  it('counts the journal from a replaced zone on: the next change needs no other snapshot', async () => {
    const store = storeOf({ compactOctets: 800 })
    let zone = EMPTY
    await store.replace(zone)
    // Just below the limit.
    for (let i = 1; i <= 3; i++) zone = await write(store, zone, i)
    await store.replace(zone)
    const journals = () => readdirSync(join(folder, 'example.test')).filter((file) => file.startsWith('journal'))
    const before = journals()
    for (let i = 4; i <= 6; i++) zone = await write(store, zone, i)
    await store.close()
    expect(journals()).toEqual(before)
    expect(addressIn((await storeOf().load())?.zone)).toBe('192.0.2.6')
  })

  it('returns what was written, over many restarts and snapshots', async () => {
    expect(await storeOf().load()).toBeUndefined()
    let zone = EMPTY
    let first = storeOf()
    await first.replace(zone)
    for (let i = 1; i <= 60; i++) {
      // A small limit: a snapshot every few changes.
      if (i % 7 === 0) {
        await first.close()
        first = storeOf({ compactOctets: 400 })
        expect(addressIn((await first.load())?.zone)).toBe(`192.0.2.${i - 1}`)
      }
      zone = await write(first, zone, i)
    }
    await first.close()
    const loaded = await storeOf().load()
    expect(loaded?.zone.serial).toBe(zone.serial)
    expect(addressIn(loaded?.zone)).toBe('192.0.2.60')
    expect(readdirSync(join(folder, 'example.test')).length).toBeLessThan(12)
  })

  it('has every acknowledged change when the process ends after any file operation', async () => {
    // What a kill leaves behind is some prefix of the writes: the files are copied between them.
    const store = storeOf({ compactOctets: 300 })
    await store.replace(EMPTY)
    let zone = EMPTY
    for (let i = 1; i <= 30; i++) {
      zone = await write(store, zone, i)
      const copy = join(folder, 'copy')
      mkdirSync(join(copy, 'example.test'), { recursive: true })
      for (const file of readdirSync(join(folder, 'example.test'))) {
        try {
          copyFileSync(join(folder, 'example.test', file), join(copy, 'example.test', file))
        } catch {
          // A journal that the new snapshot replaced was deleted meanwhile.
        }
      }
      const found = await new FolderStore({ folder: copy, origin: ORIGIN }).load()
      expect(addressIn(found?.zone)).toBe(`192.0.2.${i}`)
      rmSync(copy, { recursive: true })
    }
    await store.close()
  })

  it('drops an unfinished write at the end, says so, and goes on', async () => {
    const first = storeOf()
    await first.replace(EMPTY)
    const zone = await write(first, EMPTY, 1)
    await write(first, zone, 2)
    await first.close()
    const [journal] = readdirSync(join(folder, 'example.test')).filter((file) => file.startsWith('journal'))
    const path = join(folder, 'example.test', journal!)
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.subarray(0, bytes.length - 5))
    const warnings: string[] = []
    const second = storeOf({ onWarning: (why) => warnings.push(why) })
    const loaded = await second.load()
    expect(addressIn(loaded?.zone)).toBe('192.0.2.1')
    expect(warnings.join()).toMatch(/unfinished write/)
    await write(second, loaded!.zone, 9)
    await second.close()
    expect(addressIn((await storeOf().load())?.zone)).toBe('192.0.2.9')
  })

  it('of a newer version, or damaged, is refused with the folder and a reason', async () => {
    const store = storeOf()
    await store.replace(EMPTY)
    await store.close()
    const path = join(folder, 'example.test', 'snapshot')
    writeFileSync(path, readFileSync(path).subarray(0, 30))
    await expect(storeOf().load()).rejects.toThrow(/example.test cannot be read: the snapshot is damaged/)
  })

  it('stops writing when another process has started to write', async () => {
    const first = storeOf()
    await first.replace(EMPTY)
    const zone = await write(first, EMPTY, 1)
    const second = storeOf()
    const loaded = await second.load()
    await write(second, loaded!.zone, 2)
    await expect(write(first, zone, 3)).rejects.toMatchObject({ code: 'STORE_TAKEN' })
    await Promise.all([first.close(), second.close()])
    expect(addressIn((await storeOf().load())?.zone)).toBe('192.0.2.2')
  })

  it('keeps zones of odd names in its folder', async () => {
    const origin = fqdn('a/\\.\\./b.test')
    const zone = createZone(origin, [createRRset(origin, 'SOA', 60, ['ns.test. host.test. 1 3600 600 86400 60'])])
    const store = new FolderStore({ folder, origin })
    await store.replace(zone)
    await store.close()
    expect(readdirSync(folder)).toHaveLength(1)
    expect((await new FolderStore({ folder, origin }).load())?.zone.origin).toBe(origin)
  })
})

describe('a zone keeper', () => {
  const server = () => {
    const swapped: Zone[] = []
    const suspended: string[] = []
    return {
      swapped,
      suspended,
      swap: (zone: Zone) => swapped.push(zone),
      suspend: (name: string) => suspended.push(name),
      remove: () => undefined,
    }
  }

  it('serves a change after it is stored, in order, with serials that follow the clock', async () => {
    const target = server()
    const keeper = new ZoneKeeper({ server: target, now: () => 1_800_000_000_000 })
    await keeper.open(ORIGIN, storeOf())
    expect(target.suspended).toEqual([ORIGIN])
    await keeper.replace(EMPTY)
    keeper.serve(ORIGIN)
    const put = (i: number) => async () =>
      keeper.commit(ORIGIN, (zone, serial) =>
        zone.with([{ kind: 'put', set: createRRset(NAME, 'A', 60, [`192.0.2.${i}`]) }], serial),
      )
    await Promise.all([1, 2, 3].map(async (i) => put(i)()))
    expect(target.swapped.map(({ serial }) => serial)).toEqual([1, 1_800_000_000, 1_800_000_001, 1_800_000_002])
    await keeper.close()
    expect(addressIn((await storeOf().load())?.zone)).toBe('192.0.2.3')
  })

  it('takes no version from elsewhere that is older than its own, nor stores it', async () => {
    const target = server()
    const keeper = new ZoneKeeper({ server: target })
    await keeper.open(ORIGIN, storeOf())
    await keeper.replace(EMPTY)
    const newer = await keeper.commit(ORIGIN, (zone) => withAddress(zone, 1))
    await keeper.replace(EMPTY)
    expect(keeper.findZone(ORIGIN)).toBe(newer)
    await keeper.close()
    expect((await storeOf().load())?.zone.serial).toBe(newer.serial)
  })

  it('goes on serving the last version when the store fails, and writes again when it works', async () => {
    const target = server()
    const store = storeOf()
    let fault: DnsError | undefined
    const keeper = new ZoneKeeper({ server: target })
    await keeper.open(ORIGIN, {
      load: async () => store.load(),
      replace: async (zone) => store.replace(zone),
      close: async () => store.close(),
      async append(delta, zone) {
        if (fault !== undefined) throw fault
        await store.append(delta, zone)
      },
    })
    await keeper.replace(EMPTY)
    keeper.serve(ORIGIN)
    const change = async (i: number) => keeper.commit(ORIGIN, (zone) => withAddress(zone, i))
    await change(1)
    fault = new DnsError('STORE_WRITE', 'no space left on device')
    await expect(change(2)).rejects.toBe(fault)
    expect(addressIn(keeper.findZone(ORIGIN))).toBe('192.0.2.1')
    expect(addressIn(target.swapped.at(-1))).toBe('192.0.2.1')
    fault = undefined
    await change(3)
    expect(addressIn(target.swapped.at(-1))).toBe('192.0.2.3')
    await keeper.close()
    expect(addressIn((await storeOf().load())?.zone)).toBe('192.0.2.3')
  })

  it.skipIf(process.getuid?.() === 0)('reports a read-only folder with its code', async () => {
    const store = storeOf()
    await store.replace(EMPTY)
    chmodSync(join(folder, 'example.test'), 0o500)
    const restarted = storeOf()
    await restarted.load()
    await expect(write(restarted, EMPTY, 1)).rejects.toMatchObject({ code: 'STORE_WRITE' })
    chmodSync(join(folder, 'example.test'), 0o700)
  })

  it('reports a folder that cannot be made with its code', async () => {
    writeFileSync(join(folder, 'file'), '')
    const store = new FolderStore({ folder: join(folder, 'file'), origin: ORIGIN })
    await expect(store.replace(EMPTY)).rejects.toMatchObject({ code: 'STORE_WRITE' })
  })
})
