/**
 * The zones of a server together with their stores: the one place that changes a zone.
 *
 * Flow: `open` loads a zone and serves it, or leaves it suspended (REFUSED) until `serve`; `commit` computes the next version,
 * stores the difference, and then swaps the zone; `replace` does the same with a whole version that came by transfer.
 * Guarantees: changes of one zone happen one after the other; nothing is answered, notified or acknowledged that is not
 * stored; when the store fails the zone stays as it is and is still answered. Serials follow the clock (seconds since 1970)
 * where it is ahead, so that a zone that another replica continues is newer than every version of its predecessor.
 */
import { DnsError } from '../error.ts'
import type { Fqdn } from '../wire/name.ts'
import type { DnsServer } from './server.ts'
import { isNewer, nextSerial } from '../zone/soa.ts'
import { createRRset } from '../wire/record.ts'
import { diffZones, type ZoneDelta } from '../zone/zone-delta.ts'
import type { Zone } from '../zone/zone-table.ts'
import type { StoredZone, ZoneStore } from '../store/zone-store.ts'

export interface ZoneKeeperOptions {
  readonly server: Pick<DnsServer, 'swap' | 'suspend' | 'remove'>
  /** Milliseconds since 1970. @default Date.now */
  readonly now?: () => number
}

interface Kept {
  zone: Zone | undefined
  readonly store: ZoneStore | undefined
  isServed: boolean
  /** Settles when the changes before are done. */
  last: Promise<unknown>
  /** Deltas that the server has not been given yet. */
  unserved: ZoneDelta[]
}

export type ZoneChangeFunction = (zone: Zone, serial: number) => Zone

export class ZoneKeeper {
  readonly #server: ZoneKeeperOptions['server']
  readonly #now: () => number
  readonly #zones = new Map<Fqdn, Kept>()

  constructor(options: ZoneKeeperOptions) {
    this.#server = options.server
    this.#now = options.now ?? Date.now
  }

  /**
   * Loads the zone from its store, unless a newer version of it is here already. It is not served before `serve`. Throws what
   * the store throws.
   */
  async open(origin: Fqdn, store?: ZoneStore): Promise<Zone | undefined> {
    const before = this.#zones.get(origin)
    if (before === undefined) {
      this.#server.suspend(origin)
      this.#zones.set(origin, { zone: undefined, store, isServed: false, last: Promise.resolve(), unserved: [] })
    }
    const stored = await store?.load()
    const kept: Kept = { ...(before ?? this.#get(origin)), store }
    this.#zones.set(origin, kept)
    if (stored === undefined) return kept.zone
    if (kept.zone === undefined || isNewer(stored.zone.serial, kept.zone.serial))
      this.#set(kept, stored.zone, stored.deltas)
    else if (kept.zone.serial !== stored.zone.serial) await store?.replace(kept.zone)
    return kept.zone
  }

  /** Changes of the zone go to this store from now on; nothing is read. */
  attach(origin: Fqdn, store: ZoneStore): void {
    const before = this.#zones.get(origin)
    if (before === undefined) this.#server.suspend(origin)
    const none = { zone: undefined, isServed: false, last: Promise.resolve(), unserved: [] }
    this.#zones.set(origin, { ...(before ?? none), store })
  }

  /**
   * Takes what the replicas share as the truth. Its content replaces the zone of this process; the serial never goes back:
   * with `true` the zone has a serial of its own, because it had a newer one, and the caller that writes stores it.
   */
  async adopt(origin: Fqdn, { zone, deltas }: StoredZone): Promise<boolean> {
    const kept = this.#get(origin)
    return this.#inTurn(kept, async () => {
      const before = kept.zone
      if (before === undefined || isNewer(zone.serial, before.serial)) {
        this.#set(kept, zone, before === undefined ? deltas : undefined)
        return false
      }
      const { removed, added } = diffZones(before, zone)
      if (before.serial === zone.serial && removed.length + added.length === 0) return false
      this.#set(kept, withSerial(zone, nextSerial(before.serial, this.#clockSerial())), undefined)
      return true
    })
  }

  /** Runs `task` with the zone between two changes of it, for other work on its store. */
  async exclusively(origin: Fqdn, task: (zone: Zone) => Promise<void>): Promise<void> {
    const kept = this.#get(origin)
    await this.#inTurn(kept, async () => (kept.zone === undefined ? undefined : task(kept.zone)))
  }

  *zones(): Generator<Zone> {
    for (const { zone } of this.#zones.values()) if (zone !== undefined) yield zone
  }

  findZone(origin: Fqdn): Zone | undefined {
    return this.#zones.get(origin)?.zone
  }

  isServed(origin: Fqdn): boolean {
    return this.#zones.get(origin)?.isServed === true
  }

  /** Answers from the zone; a zone without content stays suspended. */
  serve(origin: Fqdn): void {
    const kept = this.#get(origin)
    if (kept.isServed || kept.zone === undefined) return
    kept.isServed = true
    this.#server.swap(kept.zone, kept.unserved.splice(0))
  }

  /** Refuses queries, for instance because the zone has expired. */
  suspend(origin: Fqdn): void {
    const kept = this.#get(origin)
    if (!kept.isServed) return
    kept.isServed = false
    this.#server.suspend(origin)
  }

  /**
   * Replaces the zone by what `change` makes of it with the given serial, when that is stored. Returns the zone in effect.
   * Rejects with what `change` throws, and with STORE_WRITE or STORE_TAKEN; the zone is then unchanged.
   */
  async commit(origin: Fqdn, change: ZoneChangeFunction): Promise<Zone> {
    const kept = this.#get(origin)
    return this.#inTurn(kept, async () => {
      const before = kept.zone
      if (before === undefined) throw new DnsError('BAD_ZONE', `zone ${origin} is not loaded yet`)
      const after = change(before, nextSerial(before.serial, this.#clockSerial()))
      if (after === before) return before
      const delta = diffZones(before, after)
      await kept.store?.append(delta, after)
      this.#set(kept, after, [delta])
      return after
    })
  }

  /** Takes a version from elsewhere: a zone file, or a transfer with its `deltas` from the present version. */
  async replace(zone: Zone, deltas?: readonly ZoneDelta[]): Promise<void> {
    const kept = this.#get(zone.origin)
    await this.#inTurn(kept, async () => {
      const before = kept.zone
      if (before !== undefined && !isNewer(zone.serial, before.serial)) return
      const [delta, ...more] = deltas ?? []
      if (before !== undefined && delta !== undefined && more.length === 0) await kept.store?.append(delta, zone)
      else if (before !== undefined && deltas !== undefined) await kept.store?.append(diffZones(before, zone), zone)
      else await kept.store?.replace(zone)
      this.#set(kept, zone, deltas)
    })
  }

  /** The zone is not one of this server's any more; what is stored stays. Changes that were asked for before are made first. */
  async remove(origin: Fqdn): Promise<void> {
    const kept = this.#zones.get(origin)
    if (kept === undefined) return
    this.#zones.delete(origin)
    this.#server.remove(origin)
    await kept.last
    // A change may have been served meanwhile.
    if (!this.#zones.has(origin)) this.#server.remove(origin)
    await kept.store?.close()
  }

  async close(): Promise<void> {
    for (const { last, store } of this.#zones.values()) {
      await last
      await store?.close()
    }
  }

  #clockSerial(): number {
    return Math.floor(this.#now() / 1000) >>> 0
  }

  #get(origin: Fqdn): Kept {
    const kept = this.#zones.get(origin)
    if (kept === undefined) throw new DnsError('BAD_ZONE', `zone ${origin} is not one of this server's`)
    return kept
  }

  #set(kept: Kept, zone: Zone, deltas: readonly ZoneDelta[] | undefined): void {
    kept.zone = zone
    if (kept.isServed) this.#server.swap(zone, deltas)
    else kept.unserved.push(...(deltas ?? []))
  }

  async #inTurn<T>(kept: Kept, task: () => Promise<T>): Promise<T> {
    const done = kept.last.then(task)
    kept.last = done.catch(() => undefined)
    return done
  }
}

function withSerial(zone: Zone, serial: number): Zone {
  const soa = zone.find(zone.origin, 'SOA')
  if (soa === undefined) return zone
  const [mname, rname, , ...times] = (soa.values[0] ?? '').split(' ')
  const values = [[mname, rname, serial, ...times].join(' ')]
  return zone.with([{ kind: 'put', set: createRRset(zone.origin, 'SOA', soa.ttl, values) }], serial)
}
