/**
 * The authoritative DNS server inside the manager: its zones with their stores, the `embedded` provider on it, and its copies
 * of zones that another replica writes.
 *
 * Flow: `openDnsService` listens and serves every zone that is stored; the others are REFUSED. `lead` (the process that holds
 * the lease) takes the newest version of its peers, and creates the zones that exist nowhere; a new zone is served when
 * `complete` is called when every desired record is in it. `follow` keeps the zones of the other processes up to date.
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
  TsigKey,
  type Zone,
  ZoneKeeper,
  type ZoneStore,
} from '@seamark/dns'
import { type Client, type Clock, type Logger, messageOf, untilAborted } from '@seamark/kube'
import { ProviderError, RecordsError } from '../rrset/error.ts'
import { readSecret } from '../providers/create-provider.ts'
import { embeddedProvider } from '../providers/embedded.ts'
import type { Provider } from '../providers/provider.ts'
import { type DnsConfig, parseHostAndPort, splitPair } from './config.ts'
import { ConfigMapStore } from './config-map-store.ts'
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
export const EMBEDDED_PROVIDER = 'embedded'

export async function openDnsService(options: DnsServiceOptions): Promise<DnsService> {
  const { config } = options
  const keys = await readKeys(options)
  const service = new Service(options, keys)
  await service.start(
    config.listen.map((text) => {
      const { host, port } = parseHostAndPort(text) ?? { host: text, port: 53 }
      return { address: host === '' ? '0.0.0.0' : host === 'localhost' ? '127.0.0.1' : host, port }
    }),
  )
  return service
}

interface AllowedKey {
  readonly key: TsigKey
  readonly allow: readonly ('transfer' | 'update')[]
}

async function readKeys({ config, env, client }: DnsServiceOptions): Promise<AllowedKey[]> {
  const keys: AllowedKey[] = []
  for (const { name, algorithm, secretFrom, allow } of config.keys) {
    const secret = await readSecret(secretFrom, { env, ...(client !== undefined && { client }) })
    keys.push({ key: new TsigKey(name, algorithm, secret), allow })
  }
  return keys
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

class Service implements DnsService {
  readonly #options: DnsServiceOptions
  readonly #keys: readonly AllowedKey[]
  readonly #origins: ReadonlyMap<Fqdn, { readonly file?: string }>
  readonly #faults = new Map<Fqdn, string>()
  readonly #followers = new Map<Fqdn, SecondaryZone>()
  readonly #client = createDnsClient({ timeoutMs: 1000, tries: 1 })
  /** Resolves when the zones may be written. */
  readonly #leading: Promise<void>
  #onLeading: () => void = () => undefined
  #hasCaughtUp = false
  #server: DnsServer | undefined
  #keeper: ZoneKeeper | undefined
  readonly provider: Provider

  constructor(options: DnsServiceOptions, keys: readonly AllowedKey[]) {
    this.#options = options
    this.#keys = keys
    this.#origins = new Map(
      options.config.zones.map((text) => {
        const { name, value } = splitPair(text)
        return [fqdn(name), value === undefined ? {} : { file: value }]
      }),
    )
    this.#leading = new Promise((resolve) => (this.#onLeading = resolve))
    this.provider = this.#createProvider()
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
    const namesOf = (right: 'transfer' | 'update') =>
      this.#keys.filter(({ allow }) => allow.includes(right)).map(({ key }) => key.name)
    const signer = this.#keys[0]?.key.name
    if (config.workers > 1 && !CAN_SHARE_PORT)
      log.warn({ workers: config.workers, node: process.version }, 'dns.workers needs Node 23.1: one thread answers')
    this.#server = await createDnsServer({
      listen,
      keys: this.#keys.map(({ key }) => key),
      suspended: this.#origins.keys(),
      defaultPolicy: {
        transferKeys: namesOf('transfer'),
        updateKeys: namesOf('update'),
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
        if (!this.#options.isLeading()) throw new DnsError('BAD_ZONE', `this process does not write zone ${origin}`)
        await this.#leading
        return this.#zones.commit(origin, change)
      },
      onNotify: (notice) => this.#notified(notice),
      onError: this.#warn,
    })
    this.#keeper = new ZoneKeeper({ server: this.#server, now: () => clock.now() })
    for (const origin of this.#origins.keys()) await this.#load(origin)
  }

  /** Serves what is stored. A store that cannot be read leaves the zone refused, and the others are served. */
  async #load(origin: Fqdn): Promise<void> {
    const { log } = this.#options
    try {
      const zone = await this.#zones.open(origin, this.#storeOf(origin))
      if (this.#faults.delete(origin)) this.#followers.get(origin)?.notify()
      if (zone === undefined) return
      this.#zones.serve(origin)
      log.info({ zone: origin, serial: zone.serial, names: zone.names }, 'zone loaded')
    } catch (error) {
      this.#faults.set(origin, messageOf(error))
      const code = error instanceof DnsError ? error.code : 'STORE_CORRUPT'
      log.error({ zone: origin, code, why: messageOf(error) }, 'zone not loaded; its names are refused')
    }
  }

  #storeOf(origin: Fqdn): ZoneStore | undefined {
    const { config, client, namespace, log } = this.#options
    if (config.dataDir !== '') {
      const onWarning = (why: string) => log.warn({ zone: origin, why }, 'zone store')
      return new FolderStore({ folder: config.dataDir, origin, onWarning })
    }
    if (client === undefined || namespace === undefined) return undefined
    return new ConfigMapStore({
      client,
      namespace,
      origin,
      isWriting: this.#options.isWriting ?? this.#options.isLeading,
    })
  }

  #notified({ zone, source, key }: Notice): boolean {
    const follower = this.#followers.get(zone)
    // Signed with one of our keys, or nothing: a NOTIFY only starts a question to the configured primaries.
    if (follower === undefined || (this.#keys.length > 0 && key === undefined)) return false
    follower.notify(source)
    return true
  }

  async follow(signal: AbortSignal): Promise<void> {
    const { config, isLeading, log } = this.#options
    if (config.primaries.length === 0) {
      await untilAborted(signal)
      return
    }
    const key = this.#keys[0]?.key
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
    if (this.#origins.has(origin)) this.#zones.serve(origin)
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
        commit: async (origin, change) => this.#zones.commit(origin, change),
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
