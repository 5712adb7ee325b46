/**
 * The authoritative DNS server inside the manager: its zones with their stores, the `embedded` provider on it, and its copies
 * of zones that another replica writes.
 *
 * Flow: `openDnsService` listens and serves every zone that is stored; the others are REFUSED. `lead` (the process that holds
 * the lease) takes the newest version of its peers, and creates the zones that exist nowhere; a new zone is served when
 * `complete` is called when every desired record is in it. `follow` keeps the zones of the other processes up to date, and
 * reads again what could not be read at the start. `renew`: the lease was lost; `lead` is called again for the next term.
 * Guarantees: a query is answered from a complete zone or refused, never with NXDOMAIN because a zone is not loaded; a change
 * is stored before it is answered and acknowledged; a store that fails stops changes, not answers.
 */
import {
  CAN_SHARE_PORT,
  createDnsClient,
  createDnsServer,
  DnsError,
  type DnsServer,
  FolderStore,
  type Fqdn,
  fqdn,
  type ListenAddress,
  type Notice,
  isRegionDatabase,
  parseRegionTable,
  readRegularFile,
  RegionDatabase,
  type RegionSource,
  SecondaryZone,
  type TsigKey,
  type Zone,
  type ZoneChangeFunction,
  ZoneKeeper,
  type StoredZone,
} from '@seamark/dns'
import { type Client, type Clock, KubeError, type Logger, messageOf, poll, sleep, untilAborted } from '@seamark/kube'
import { ProviderError, RecordsError } from '../rrset/error.ts'
import { embeddedProvider } from '../providers/embedded.ts'
import type { Provider } from '../providers/provider.ts'
import { type DnsConfig, parseHostAndPort, splitPair } from './config.ts'
import { ConfigMapStore } from './config-map-store.ts'
import { CopiedStore } from './copied-store.ts'
import { keysAllowedTo, readKey, readLateKeys } from './keys.ts'
import { initialZone, zoneFromFile } from './initial-zone.ts'
import { resolveServers } from './server-addresses.ts'

export interface DnsServiceOptions {
  readonly config: DnsConfig
  readonly env: Readonly<Record<string, string | undefined>>
  /** For keys in Secrets, and for zones in ConfigMaps of `namespace`. */
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

export interface DnsService {
  readonly addresses: readonly ListenAddress[]
  readonly server: Pick<DnsServer, 'counters' | 'hits'>
  /** Named `embedded`; its calls wait for `lead`. */
  readonly provider: Provider
  /** Zones and whether they are answered. */
  zones(): readonly ZoneStatus[]
  /** Takes over the zones in the process that writes. False: some cannot be read or created yet; call it again. */
  lead(signal: AbortSignal): Promise<boolean>
  /** What was led before is not: calls of the provider wait for the next `lead`. */
  renew(): void
  /** Settles when the signal aborts. Call in every process. */
  follow(signal: AbortSignal): Promise<void>
  /** All wanted records of the zone are written. */
  complete(zone: string): void
  /** Why this process is not ready, or undefined. */
  check(): string | undefined
  close(): Promise<void>
}

export interface ZoneStatus {
  readonly zone: Fqdn
  readonly isServed: boolean
  readonly serial?: number
  /** Why it is not loaded. */
  readonly fault?: string
}

/** A new leader waits at most this long for the versions of its peers. */
const CATCH_UP_MS = 2000
const START_TIMEOUT_MS = 5000
/** How often a process that does not lead reads what the leader stored in ConfigMaps, and zones that could not be read. */
const RELOAD_MS = 5000
export const EMBEDDED_PROVIDER = 'embedded'

export async function openDnsService(options: DnsServiceOptions): Promise<DnsService> {
  const { config } = options
  const keys = new Map<Fqdn, TsigKey>()
  for (const key of config.keys) {
    const found = await readKey(key, options)
    if (found !== undefined) keys.set(found.name, found)
    else options.log.warn({ key: key.name }, 'TSIG key not read: the API server does not answer; it is asked again')
  }
  const service = new Service(options, keys)
  await service.start(
    config.listen.map((text) => {
      const { host, port } = parseHostAndPort(text) ?? { host: text, port: 53 }
      return { address: host === '' ? '0.0.0.0' : host === 'localhost' ? '127.0.0.1' : host, port }
    }),
  )
  return service
}

/** A table or an MMDB, by its content. Throws with the file and, for a table, the line. */
function readRegions(file: string, fields: readonly string[]): RegionSource {
  try {
    const bytes = readRegularFile(file)
    if (isRegionDatabase(bytes)) return new RegionDatabase(bytes, fields)
    return parseRegionTable(bytes.toString('utf8'))
  } catch (cause) {
    throw new RecordsError('CONFIG_INVALID', `dns.regionsFile ${file}: ${messageOf(cause)}`, { cause })
  }
}

/** Shared by all replicas. */
type SharedStore = ConfigMapStore | CopiedStore

class Service implements DnsService {
  readonly #options: DnsServiceOptions
  readonly #keys: Map<Fqdn, TsigKey>
  readonly #origins: ReadonlyMap<Fqdn, { readonly file?: string }>
  readonly #faults = new Map<Fqdn, string>()
  readonly #followers = new Map<Fqdn, SecondaryZone>()
  readonly #client = createDnsClient({ timeoutMs: 1000, tries: 1 })
  /** Stores of the zones in ConfigMaps. */
  readonly #shared = new Map<Fqdn, SharedStore>()
  /** Zones with a change under way. */
  readonly #committing = new Set<Fqdn>()
  /** Resolves when the zones may be written. */
  #leading: Promise<void> = Promise.resolve()
  #onLeading: () => void = () => undefined
  #hasCaughtUp = false
  #server: DnsServer | undefined
  #keeper: ZoneKeeper | undefined
  readonly provider: Provider

  constructor(options: DnsServiceOptions, keys: Map<Fqdn, TsigKey>) {
    this.#options = options
    this.#keys = keys
    this.#origins = new Map(
      options.config.zones.map((text) => {
        const { name, value } = splitPair(text)
        return [fqdn(name), value === undefined ? {} : { file: value }]
      }),
    )
    this.renew()
    this.provider = this.#createProvider()
  }

  /** The first key signs NOTIFY and transfers. */
  get #signer(): Fqdn | undefined {
    const [first] = this.#options.config.keys
    return first === undefined ? undefined : fqdn(first.name)
  }

  get server(): DnsServer {
    if (this.#server === undefined) throw new Error('the DNS server is not started')
    return this.#server
  }

  get #zones(): ZoneKeeper {
    if (this.#keeper === undefined) throw new Error('the DNS server is not started')
    return this.#keeper
  }

  get addresses(): readonly ListenAddress[] {
    return this.server.addresses
  }

  #warn = (error: unknown): void => {
    const code = error instanceof DnsError ? error.code : 'DNS'
    this.#options.log.warn({ code, why: messageOf(error) }, 'DNS server reports a failure')
  }

  async start(listen: readonly ListenAddress[]): Promise<void> {
    const { config, clock, log } = this.#options
    const signer = this.#signer
    if (config.workers > 1 && !CAN_SHARE_PORT)
      log.warn({ workers: config.workers, node: process.version }, 'dns.workers needs Node 23.1: one thread answers')
    this.#server = await createDnsServer({
      listen,
      keys: [...this.#keys.values()],
      suspended: this.#origins.keys(),
      defaultPolicy: {
        transferKeys: keysAllowedTo('transfer', config),
        updateKeys: keysAllowedTo('update', config),
        secondaries: async () =>
          (await resolveServers(config.secondaries, this.#warn)).map((server) => ({
            ...server,
            ...(signer !== undefined && { key: signer }),
          })),
      },
      rateLimit: { responsesPerSecond: config.rateLimit },
      workers: config.workers,
      ...(config.regionsFile !== '' && { regions: readRegions(config.regionsFile, config.regionsFields) }),
      now: () => clock.now(),
      commit: async (origin, change) => {
        await this.#mayCommit(origin)
        return this.#commit(origin, change)
      },
      onNotify: (notice) => this.#notified(notice),
      onError: this.#warn,
    })
    this.#keeper = new ZoneKeeper({ server: this.#server, now: () => clock.now() })
    for (const origin of this.#origins.keys()) await this.#serveCopy(origin)
    const { startTimeoutMs = START_TIMEOUT_MS } = this.#options
    for (const origin of this.#origins.keys()) await this.#load(origin, startTimeoutMs)
  }

  /** Before the API server is asked: it may be away. */
  async #serveCopy(origin: Fqdn): Promise<void> {
    const store = this.#storeOf(origin)
    if (!(store instanceof CopiedStore)) return
    const copy = await store.loadCopy()
    if (copy === undefined) return
    await this.#zones.adopt(origin, copy)
    this.#zones.serve(origin)
    this.#options.log.info({ zone: origin, serial: copy.zone.serial }, 'zone answered from its local copy')
  }

  async #mayCommit(origin: Fqdn): Promise<void> {
    const refuse = (): never => {
      throw new DnsError('BAD_ZONE', `this process does not write zone ${origin}`)
    }
    if (!this.#options.isLeading()) refuse()
    await this.#leading
    if (!this.#options.isLeading()) refuse()
  }

  async #commit(origin: Fqdn, change: ZoneChangeFunction): Promise<Zone> {
    const fault = this.#faults.get(origin)
    if (fault !== undefined) throw new DnsError('STORE_WRITE', `zone ${origin} cannot be read: ${fault}`)
    this.#committing.add(origin)
    try {
      return await this.#zones.commit(origin, change)
    } finally {
      this.#committing.delete(origin)
    }
  }

  /** Serves what is stored. A store that cannot be read leaves the zone as it is answered, and the others are served. */
  async #load(origin: Fqdn, timeoutMs?: number): Promise<void> {
    const { log } = this.#options
    try {
      const store = this.#storeOf(origin)
      const zone =
        store instanceof FolderStore || store === undefined
          ? await this.#zones.open(origin, store)
          : await this.#loadShared(origin, store, timeoutMs)
      if (this.#faults.delete(origin)) this.#followers.get(origin)?.notify()
      if (zone === undefined) return
      this.#zones.serve(origin)
      log.info({ zone: origin, serial: zone.serial, names: zone.names }, 'zone loaded')
    } catch (error) {
      const why = messageOf(error)
      const isNew = this.#faults.get(origin) !== why
      this.#faults.set(origin, why)
      if (!isNew) return
      const code = error instanceof DnsError ? error.code : 'STORE_CORRUPT'
      if (this.#zones.isServed(origin))
        log.warn({ zone: origin, code, why }, 'stored zone cannot be read; the last version is answered')
      else log.error({ zone: origin, code, why }, 'zone not loaded; its names are refused')
    }
  }

  /** Undefined: nothing is stored that may be answered from. */
  async #loadShared(origin: Fqdn, store: SharedStore, timeoutMs?: number): Promise<Zone | undefined> {
    const stored = await within(timeoutMs, this.#options.clock, store.load())
    const copied = this.#zones.findZone(origin)
    if (stored !== undefined) await this.#adopt(origin, stored, store)
    else if (copied !== undefined) await this.#zones.exclusively(origin, async (zone) => store.replace(zone))
    return store.isComplete ? this.#zones.findZone(origin) : undefined
  }

  async #adopt(origin: Fqdn, stored: StoredZone, store: SharedStore): Promise<void> {
    const hasOwnSerial = await this.#zones.adopt(origin, stored)
    if (hasOwnSerial) await this.#zones.exclusively(origin, async (zone) => store.replace(zone))
  }

  /** In a process that does not lead: what the leader stored since, and zones that could not be read. */
  async #reload(): Promise<void> {
    for (const origin of this.#origins.keys()) {
      const store = this.#shared.get(origin)
      if (store === undefined || this.#options.isLeading()) continue
      if (this.#faults.has(origin) || this.#zones.findZone(origin) === undefined) await this.#load(origin)
      else {
        // A server that does not answer now is asked again; the last version is answered.
        const stored = await store.reload().catch(() => undefined)
        if (stored !== undefined) await this.#adopt(origin, stored, store).catch(this.#warn)
        if (store.isComplete) this.#zones.serve(origin)
      }
    }
  }

  #storeOf(origin: Fqdn): FolderStore | SharedStore | undefined {
    const known = this.#shared.get(origin)
    if (known !== undefined) return known
    const { config, client, namespace, log, copyFolder: folder } = this.#options
    const onWarning = (why: string) => log.warn({ zone: origin, why }, 'zone store')
    if (config.dataDir !== '') return new FolderStore({ folder: config.dataDir, origin, onWarning })
    if (client === undefined || namespace === undefined) return undefined
    const { isLeading, isWriting = isLeading } = this.#options
    const mustWrite = () => this.#committing.has(origin) && !isLeading()
    const truth = new ConfigMapStore({ client, namespace, origin, isWriting, mustWrite })
    const store = folder === undefined ? truth : new CopiedStore({ truth, folder, namespace, origin, onWarning })
    this.#shared.set(origin, store)
    this.#zones.attach(origin, store)
    return store
  }

  #notified({ zone, source, key }: Notice): boolean {
    const follower = this.#followers.get(zone)
    // Signed with one of our keys, or nothing: a NOTIFY only starts a question to the configured primaries.
    if (follower === undefined || (this.#options.config.keys.length > 0 && key === undefined)) return false
    follower.notify(source)
    return true
  }

  async follow(signal: AbortSignal): Promise<void> {
    const { config } = this.#options
    const { clock, log } = this.#options
    const late = config.keys.filter(({ name }) => !this.#keys.has(fqdn(name)))
    const addKey = (key: TsigKey): void => {
      this.#keys.set(key.name, key)
      this.server.addKey(key)
    }
    const stored = this.#followStored(signal)
    await readLateKeys(late, { deps: this.#options, clock, log }, addKey, signal)
    await Promise.all([stored, config.primaries.length > 0 && this.#followPrimaries(signal), untilAborted(signal)])
  }

  async #followStored(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    if (this.#shared.size > 0) await poll(async () => this.#reload(), { clock, intervalMs: RELOAD_MS, signal })
  }

  async #followPrimaries(signal: AbortSignal): Promise<void> {
    const { config, isLeading, log } = this.#options
    const key = this.#signer === undefined ? undefined : this.#keys.get(this.#signer)
    const running = [...this.#origins.keys()].map(async (zone) => {
      const follower = new SecondaryZone({
        zone,
        client: this.#client,
        primaries: async () => resolveServers(config.primaries, this.#warn),
        present: () => this.#zones.findZone(zone),
        accept: async ({ zone: newer, deltas }) => {
          await this.#zones.replace(newer, deltas)
          this.#zones.serve(zone)
          log.info({ zone, serial: newer.serial, incremental: deltas !== undefined }, 'zone transferred')
        },
        expire: () => {
          log.error({ zone, code: 'ZoneExpired' }, 'zone expired: no primary confirmed it; its names are refused')
          this.#zones.suspend(zone)
        },
        isActive: () => !isLeading() && !this.#faults.has(zone),
        onError: this.#warn,
        ...(key !== undefined && { key }),
      })
      this.#followers.set(zone, follower)
      await follower.run(signal)
    })
    await Promise.all(running)
  }

  renew(): void {
    this.#hasCaughtUp = false
    this.#leading = new Promise((resolve) => (this.#onLeading = resolve))
  }

  async lead(signal: AbortSignal): Promise<boolean> {
    if (this.#hasCaughtUp) for (const origin of this.#faults.keys()) await this.#load(origin)
    else await this.#catchUp(signal)
    this.#hasCaughtUp = true
    for (const origin of this.#origins.keys()) await this.#create(origin)
    // A zone that cannot be read does not stop the others.
    this.#onLeading()
    return this.#faults.size === 0
  }

  /** Another replica may have received changes that this one has not: take them before writing. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(CATCH_UP_MS)])
    await Promise.all([...this.#followers.values()].map(async (follower) => follower.refresh(limit)))
    if (this.#options.config.dataDir !== '') return
    // ConfigMaps are shared by all processes, and the one that led before may have written to them since our start.
    for (const origin of this.#origins.keys()) await this.#load(origin)
  }

  async #create(origin: Fqdn): Promise<void> {
    const { log, clock, config, waitsForRecords = false } = this.#options
    if (this.#zones.findZone(origin) === undefined && !this.#faults.has(origin)) {
      try {
        const { file } = this.#origins.get(origin) ?? {}
        const addresses = this.addresses.map(({ address }) => address)
        const serial = Math.floor(clock.now() / 1000) >>> 0
        const zone: Zone =
          file === undefined
            ? initialZone(origin, { nameServers: config.nameServers, addresses, serial })
            : zoneFromFile(origin, file)
        if (waitsForRecords) this.#shared.get(origin)?.startIncomplete()
        await this.#zones.replace(zone)
        log.info({ zone: origin, serial: zone.serial }, 'zone created')
      } catch (error) {
        this.#faults.set(origin, messageOf(error))
        log.error({ zone: origin, why: messageOf(error) }, 'zone not created; its names are refused')
        return
      }
    }
    if (!waitsForRecords) this.#zones.serve(origin)
  }

  complete(zone: string): void {
    const origin = fqdn(zone)
    if (!this.#origins.has(origin)) return
    this.#zones.serve(origin)
    const store = this.#shared.get(origin)
    // Called after each plan: a write that fails now is tried again.
    if (store !== undefined)
      this.#zones.exclusively(origin, async (served) => store.markComplete(served)).catch(this.#warn)
  }

  zones(): ZoneStatus[] {
    return [...this.#origins.keys()].map((zone) => {
      const serial = this.#zones.findZone(zone)?.serial
      const fault = this.#faults.get(zone)
      return {
        zone,
        isServed: this.#zones.isServed(zone),
        ...(serial !== undefined && { serial }),
        ...(fault !== undefined && { fault }),
      }
    })
  }

  check(): string | undefined {
    const refused = this.zones().filter(({ isServed }) => !isServed)
    if (refused.length === 0) return undefined
    return refused
      .map(({ zone, fault }) => `zone ${zone} is not served: ${fault ?? 'it is not complete yet'}`)
      .join('; ')
  }

  #createProvider(): Provider {
    const inner = embeddedProvider({
      name: EMBEDDED_PROVIDER,
      server: {
        zones: () => this.#zones.zones(),
        findZone: (origin) => this.#zones.findZone(origin),
        commit: async (origin, change) => this.#commit(origin, change),
      },
    })
    // Before the zones are there, they are unknown and not absent.
    const ready = async (signal: AbortSignal) => Promise.race([this.#leading, untilAborted(signal)])
    return {
      ...inner,
      // All of them: a zone that is not loaded cannot be read, and is not one that does not exist.
      zones: async () => [...this.#origins.keys()].map((origin) => ({ id: origin, name: origin })),
      read: async (zone, names, signal) => {
        await ready(signal)
        const fault = this.#faults.get(fqdn(zone.name))
        if (fault !== undefined)
          throw new ProviderError('ZoneNotFound', 'later', `${zone.name} is not served: ${fault}`)
        return inner.read(zone, names, signal)
      },
      apply: async (zone, batch, signal) => {
        await ready(signal)
        if (!this.#options.isLeading())
          throw new ProviderError('ZoneNotStored', 'later', `${zone.name} is not changed: this process does not lead`)
        await inner.apply(zone, batch, signal)
      },
    }
  }

  async close(): Promise<void> {
    await this.#server?.close()
    await this.#keeper?.close()
    await this.#client.close()
  }
}

/** Rejects when there is no result in time. */
async function within<T>(timeoutMs: number | undefined, clock: Clock, work: Promise<T>): Promise<T> {
  if (timeoutMs === undefined) return work
  const ended = new AbortController()
  const late = sleep(clock, timeoutMs, ended.signal).then(() => {
    throw new KubeError('DEADLINE', `no answer of the API server within ${timeoutMs} ms`)
  })
  late.catch(() => undefined)
  work.catch(() => undefined)
  return Promise.race([work, late]).finally(() => ended.abort())
}
