/**
 * The zones of the DNS server and where they are stored: files, ConfigMaps that all replicas share, or memory.
 *
 * Flow: `start` serves local copies, then what is stored. `reload` (a process that does not lead) takes what the leader stored
 * since. `loadAll`, `loadFailed` and `create` (the one that leads) take over; a new zone is served when `complete` is called.
 * Guarantees: a zone that cannot be read has a fault, is answered from its last version if there is one, and is not changed.
 */
import {
  DnsError,
  FolderStore,
  type Fqdn,
  fqdn,
  type StoredZone,
  type Zone,
  type ZoneChangeFunction,
  ZoneKeeper,
  type ZoneKeeperOptions,
} from '@seamark/dns'
import { type Client, type Clock, KubeError, type Logger, messageOf, poll } from '@seamark/kube'
import { type DnsConfig, splitPair } from './config.ts'
import { ConfigMapStore } from './config-map-store.ts'
import { CopiedStore } from './copied-store.ts'
import { initialZone, zoneFromFile } from './initial-zone.ts'

export interface StoredZonesOptions {
  readonly config: Pick<DnsConfig, 'zones' | 'dataDir' | 'nameServers'>
  /** For zones in ConfigMaps of `namespace`. */
  readonly client?: Client
  readonly namespace?: string
  /** Whether this process writes the zones now. */
  readonly isLeading: () => boolean
  /** Whether it may write to the cluster: not while it observes or is paused. @default as isLeading */
  readonly isWriting?: () => boolean
  /** Folder of local copies of zones in ConfigMaps, for a start while the API server is away. @default none */
  readonly copyFolder?: string
  /** How long the start waits for zones in ConfigMaps, ms; then they are read in the background. @default 5 s */
  readonly startTimeoutMs?: number
  /** A new zone is not served before `complete`. @default served at once */
  readonly waitsForRecords?: boolean
  readonly log: Logger
  readonly clock: Clock
}

interface Deps {
  readonly server: ZoneKeeperOptions['server']
  /** A zone that could not be read was read. */
  readonly onRecovered: (origin: Fqdn) => void
  readonly onError: (error: unknown) => void
}

export interface ZoneStatus {
  readonly zone: Fqdn
  readonly isServed: boolean
  readonly serial?: number
  /** Why it is not loaded. */
  readonly fault?: string
}

const START_TIMEOUT_MS = 5000

/** Shared by all replicas. */
type SharedStore = ConfigMapStore | CopiedStore

/** Names of the configured zones, and the zone files that new ones are read from. */
export function configuredZones({ zones }: Pick<DnsConfig, 'zones'>): ReadonlyMap<Fqdn, { readonly file?: string }> {
  return new Map(
    zones.map((text) => {
      const { name, value } = splitPair(text)
      return [fqdn(name), value === undefined ? {} : { file: value }]
    }),
  )
}

export class StoredZones {
  readonly #options: StoredZonesOptions
  readonly #deps: Deps
  #origins: ReadonlyMap<Fqdn, { readonly file?: string }>
  readonly #faults = new Map<Fqdn, string>()
  /** Stores of the zones in ConfigMaps. */
  readonly #shared = new Map<Fqdn, SharedStore>()
  /** Stores of the zones in `dns.dataDir`. */
  readonly #folders = new Map<Fqdn, FolderStore>()
  /** Zones with a change under way. */
  readonly #committing = new Set<Fqdn>()
  readonly #keeper: ZoneKeeper

  constructor(options: StoredZonesOptions, deps: Deps) {
    this.#options = options
    this.#deps = deps
    this.#origins = configuredZones(options.config)
    this.#keeper = new ZoneKeeper({ server: deps.server, now: () => options.clock.now() })
  }

  get origins(): readonly Fqdn[] {
    return [...this.#origins.keys()]
  }

  /** Other processes write to the stores too. */
  get areShared(): boolean {
    return this.#shared.size > 0
  }

  get hasFaults(): boolean {
    return this.#faults.size > 0
  }

  faultOf(origin: Fqdn): string | undefined {
    return this.#faults.get(origin)
  }

  zones(): Generator<Zone> {
    return this.#keeper.zones()
  }

  findZone(origin: Fqdn): Zone | undefined {
    return this.#keeper.findZone(origin)
  }

  async start(): Promise<void> {
    for (const origin of this.origins) await this.#serveCopy(origin)
    const { startTimeoutMs = START_TIMEOUT_MS } = this.#options
    for (const origin of this.origins) await this.#load(origin, startTimeoutMs)
  }

  /** Serves other zones from now on. What is stored of a zone that is not served any more stays. */
  async setZones(zones: readonly string[]): Promise<void> {
    const before = this.#origins
    this.#origins = configuredZones({ zones: [...zones] })
    for (const origin of before.keys()) {
      if (this.#origins.has(origin)) continue
      await this.#keeper.remove(origin)
      for (const known of [this.#faults, this.#shared, this.#folders]) known.delete(origin)
      this.#options.log.info({ zone: origin }, 'zone is not served any more; what is stored of it stays')
    }
    for (const origin of this.origins) if (!before.has(origin)) await this.#load(origin, START_TIMEOUT_MS)
  }

  /** Before the API server is asked: it may be away. */
  async #serveCopy(origin: Fqdn): Promise<void> {
    const store = this.#storeOf(origin)
    if (!(store instanceof CopiedStore)) return
    const copy = await store.loadCopy()
    if (copy === undefined) return
    await this.#keeper.adopt(origin, copy)
    this.#keeper.serve(origin)
    this.#options.log.info({ zone: origin, serial: copy.zone.serial }, 'zone answered from its local copy')
  }

  async commit(origin: Fqdn, change: ZoneChangeFunction): Promise<Zone> {
    const fault = this.#faults.get(origin)
    if (fault !== undefined) throw new DnsError('STORE_WRITE', `zone ${origin} cannot be read: ${fault}`)
    this.#committing.add(origin)
    try {
      return await this.#keeper.commit(origin, change)
    } finally {
      this.#committing.delete(origin)
    }
  }

  /** A newer version, transferred from a primary. */
  async transferred(zone: Zone, deltas: StoredZone['deltas'] | undefined): Promise<void> {
    await this.#keeper.replace(zone, deltas)
    await this.#folders.get(zone.origin)?.markComplete()
    this.#keeper.serve(zone.origin)
  }

  suspend(origin: Fqdn): void {
    this.#keeper.suspend(origin)
  }

  /** ConfigMaps are shared by all processes, and the one that led before may have written to them since our start. */
  async loadAll(): Promise<void> {
    if (this.#options.config.dataDir !== '') return
    for (const origin of this.origins) await this.#load(origin)
  }

  async loadFailed(): Promise<void> {
    for (const origin of this.#faults.keys()) await this.#load(origin)
  }

  /** Serves what is stored. A store that cannot be read leaves the zone as it is answered, and the others are served. */
  async #load(origin: Fqdn, timeoutMs?: number): Promise<void> {
    const { log } = this.#options
    try {
      const store = this.#storeOf(origin)
      const zone =
        store instanceof FolderStore || store === undefined
          ? await this.#keeper.open(origin, store)
          : await this.#loadShared(origin, store, timeoutMs)
      if (this.#faults.delete(origin)) this.#deps.onRecovered(origin)
      if (zone === undefined || store?.isComplete === false) return
      this.#keeper.serve(origin)
      log.info({ zone: origin, serial: zone.serial, names: zone.names }, 'zone loaded')
    } catch (error) {
      const why = messageOf(error)
      const isNew = this.#faults.get(origin) !== why
      this.#faults.set(origin, why)
      if (!isNew) return
      // An API server that does not answer says nothing about what is stored.
      const code = error instanceof DnsError ? error.code : 'STORE_UNREACHABLE'
      if (this.#keeper.isServed(origin))
        log.warn({ zone: origin, code, why }, 'stored zone cannot be read; the last version is answered')
      else log.error({ zone: origin, code, why }, 'zone not loaded; its names are refused')
    }
  }

  async #loadShared(origin: Fqdn, store: SharedStore, timeoutMs?: number): Promise<Zone | undefined> {
    const stored = await within(timeoutMs, this.#options.clock, store.load())
    const copied = this.#keeper.findZone(origin)
    if (stored !== undefined) await this.#adopt(origin, stored, store)
    else if (copied !== undefined) await this.#keeper.exclusively(origin, async (zone) => store.replace(zone))
    return this.#keeper.findZone(origin)
  }

  async #adopt(origin: Fqdn, stored: StoredZone, store: SharedStore): Promise<void> {
    const hasOwnSerial = await this.#keeper.adopt(origin, stored)
    if (hasOwnSerial) await this.#keeper.exclusively(origin, async (zone) => store.replace(zone))
  }

  /** In a process that does not lead: what the leader stored since, and zones that could not be read. */
  async reload(): Promise<void> {
    for (const origin of this.origins) {
      const store = this.#shared.get(origin)
      if (store === undefined || this.#options.isLeading()) continue
      if (this.#faults.has(origin) || this.#keeper.findZone(origin) === undefined) await this.#load(origin)
      else {
        // A server that does not answer now is asked again; the last version is answered.
        const stored = await store.reload().catch(() => undefined)
        if (stored !== undefined) await this.#adopt(origin, stored, store).catch(this.#deps.onError)
        if (store.isComplete) this.#keeper.serve(origin)
      }
    }
  }

  #attached(origin: Fqdn): FolderStore | SharedStore | undefined {
    return this.#shared.get(origin) ?? this.#folders.get(origin)
  }

  /** A folder is opened anew, because what could not be read may be readable now. */
  #storeOf(origin: Fqdn): FolderStore | SharedStore | undefined {
    const known = this.#shared.get(origin)
    if (known !== undefined) return known
    const { config, client, namespace, log, copyFolder: folder } = this.#options
    const onWarning = (why: string) => log.warn({ zone: origin, why }, 'zone store')
    if (config.dataDir !== '') {
      const store = new FolderStore({ folder: config.dataDir, origin, onWarning })
      this.#folders.set(origin, store)
      return store
    }
    if (client === undefined || namespace === undefined) return undefined
    const { isLeading, isWriting = isLeading } = this.#options
    const mustWrite = () => this.#committing.has(origin) && !isLeading()
    const truth = new ConfigMapStore({ client, namespace, origin, isWriting, mustWrite })
    const store = folder === undefined ? truth : new CopiedStore({ truth, folder, namespace, origin, onWarning })
    this.#shared.set(origin, store)
    this.#keeper.attach(origin, store)
    return store
  }

  /** Creates the zones that exist nowhere. `addresses`: of this server, for its own name. */
  async create(addresses: readonly string[]): Promise<void> {
    for (const origin of this.origins) await this.#create(origin, addresses)
  }

  async #create(origin: Fqdn, addresses: readonly string[]): Promise<void> {
    const { log, clock, config, waitsForRecords = false } = this.#options
    if (this.#keeper.findZone(origin) === undefined && !this.#faults.has(origin)) {
      try {
        const { file } = this.#origins.get(origin) ?? {}
        const serial = Math.floor(clock.now() / 1000) >>> 0
        const zone: Zone =
          file === undefined
            ? initialZone(origin, { nameServers: config.nameServers, addresses, serial })
            : zoneFromFile(origin, file)
        if (waitsForRecords) this.#attached(origin)?.startIncomplete()
        await this.#keeper.replace(zone)
        log.info({ zone: origin, serial: zone.serial }, 'zone created')
      } catch (error) {
        this.#faults.set(origin, messageOf(error))
        log.error({ zone: origin, why: messageOf(error) }, 'zone not created; its names are refused')
        return
      }
    }
    if (!waitsForRecords) this.#keeper.serve(origin)
  }

  /** All wanted records of the zone are written. */
  complete(zone: string): void {
    const origin = fqdn(zone)
    if (!this.#origins.has(origin)) return
    this.#keeper.serve(origin)
    const store = this.#attached(origin)
    // Called after each plan: a write that fails now is tried again.
    if (store !== undefined)
      this.#keeper.exclusively(origin, async (served) => store.markComplete(served)).catch(this.#deps.onError)
  }

  statuses(): ZoneStatus[] {
    return this.origins.map((zone) => {
      const serial = this.#keeper.findZone(zone)?.serial
      const fault = this.#faults.get(zone)
      return {
        zone,
        isServed: this.#keeper.isServed(zone),
        ...(serial !== undefined && { serial }),
        ...(fault !== undefined && { fault }),
      }
    })
  }

  async close(): Promise<void> {
    await this.#keeper.close()
  }
}

/** Rejects when there is no result in time. */
async function within<T>(timeoutMs: number | undefined, clock: Clock, work: Promise<T>): Promise<T> {
  if (timeoutMs === undefined) return work
  const ended = new AbortController()
  // Two checks: now and at the end.
  const late = poll(() => undefined, { clock, intervalMs: timeoutMs, timeoutMs, signal: ended.signal }).then(() => {
    throw new KubeError('DEADLINE', `no answer of the API server within ${timeoutMs} ms`)
  })
  late.catch(() => undefined)
  work.catch(() => undefined)
  return Promise.race([work, late]).finally(() => ended.abort())
}
