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
} from '@seamark/dns'
import { messageOf, poll, untilAborted } from '@seamark/kube'
import { ProviderError, RecordsError } from '../rrset/error.ts'
import { embeddedProvider } from '../providers/embedded.ts'
import type { Provider } from '../providers/provider.ts'
import { type DnsConfig, parseHostAndPort } from './config.ts'
import { keysAllowedTo, readKey, readLateKeys } from './keys.ts'
import { configuredZones, StoredZones, type StoredZonesOptions, type ZoneStatus } from './stored-zones.ts'
import { resolveServers } from './server-addresses.ts'

export interface DnsServiceOptions extends StoredZonesOptions {
  readonly config: DnsConfig
  /** For keys in environment variables; those in Secrets are read with `client`. */
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface DnsService {
  readonly addresses: readonly ListenAddress[]
  readonly server: Pick<DnsServer, 'counters' | 'hits'>
  /** Named `embedded`; its calls wait for `lead`. */
  readonly provider: Provider
  /** Zones and whether they are answered. */
  zones(): readonly ZoneStatus[]
  /** What queries are answered from; undefined: the zone is refused. */
  findZone(zone: Fqdn): Zone | undefined
  /**
   * Serves the zones of this configuration from now on, a new one as at a start: when `lead` or the leader has created it. Takes
   * its rate limit, too.
   */
  configure(config: Pick<DnsConfig, 'zones' | 'rateLimit'>): void
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

/** A new leader waits at most this long for the versions of its peers. */
const CATCH_UP_MS = 2000
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

class Service implements DnsService {
  readonly #options: DnsServiceOptions
  readonly #keys: Map<Fqdn, TsigKey>
  readonly #followers = new Map<Fqdn, SecondaryZone>()
  readonly #stopFollowing = new Map<Fqdn, () => void>()
  readonly #client = createDnsClient({ timeoutMs: 1000, tries: 1 })
  /** Resolves when the zones may be written. */
  #leading: Promise<void> = Promise.resolve()
  #onLeading: () => void = () => undefined
  #hasCaughtUp = false
  /** Settles when the zones are those of the last `configure`. */
  #zonesSet: Promise<void> = Promise.resolve()
  /** Set while `follow` runs with primaries: starts to follow zones that are new. */
  #followNew: (() => void) | undefined
  /** `#leading` has resolved. */
  #hasLed = false
  #server: DnsServer | undefined
  #stored: StoredZones | undefined
  readonly provider: Provider

  constructor(options: DnsServiceOptions, keys: Map<Fqdn, TsigKey>) {
    this.#options = options
    this.#keys = keys
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

  get #zones(): StoredZones {
    if (this.#stored === undefined) throw new Error('the DNS server is not started')
    return this.#stored
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
      suspended: configuredZones(config).keys(),
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
        return this.#zones.commit(origin, change)
      },
      onNotify: (notice) => this.#notified(notice),
      onError: this.#warn,
    })
    this.#stored = new StoredZones(this.#options, {
      server: this.#server,
      onRecovered: (origin) => this.#followers.get(origin)?.notify(),
      onError: this.#warn,
    })
    await this.#stored.start()
  }

  async #mayCommit(origin: Fqdn): Promise<void> {
    const refuse = (): never => {
      throw new DnsError('BAD_ZONE', `this process does not write zone ${origin}`)
    }
    if (!this.#options.isLeading()) refuse()
    await this.#leading
    if (!this.#options.isLeading()) refuse()
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
    if (this.#zones.areShared) await poll(async () => this.#zones.reload(), { clock, intervalMs: RELOAD_MS, signal })
  }

  async #followPrimaries(signal: AbortSignal): Promise<void> {
    const { config, isLeading, log } = this.#options
    const key = this.#signer === undefined ? undefined : this.#keys.get(this.#signer)
    const running = new Set<Promise<void>>()
    const followZone = async (zone: Fqdn): Promise<void> => {
      const ended = new AbortController()
      const follower = new SecondaryZone({
        zone,
        client: this.#client,
        primaries: async () => resolveServers(config.primaries, this.#warn),
        present: () => this.#zones.findZone(zone),
        accept: async ({ zone: newer, deltas }) => {
          await this.#zones.transferred(newer, deltas)
          log.info({ zone, serial: newer.serial, incremental: deltas !== undefined }, 'zone transferred')
        },
        expire: () => {
          log.error({ zone, code: 'ZoneExpired' }, 'zone expired: no primary confirmed it; its names are refused')
          this.#zones.suspend(zone)
        },
        isActive: () => !isLeading() && this.#zones.faultOf(zone) === undefined,
        onError: this.#warn,
        ...(key !== undefined && { key }),
      })
      this.#followers.set(zone, follower)
      this.#stopFollowing.set(zone, () => ended.abort())
      await follower.run(AbortSignal.any([signal, ended.signal]))
    }
    this.#followNew = () => {
      for (const zone of this.#zones.origins) if (!this.#followers.has(zone)) running.add(followZone(zone))
    }
    this.#followNew()
    await untilAborted(signal)
    this.#followNew = undefined
    await Promise.all(running)
  }

  configure({ zones, rateLimit }: Pick<DnsConfig, 'zones' | 'rateLimit'>): void {
    this.server.setResponsesPerSecond(rateLimit)
    this.#zonesSet = this.#zonesSet
      .then(async () => this.#zones.setZones(zones))
      .then(() => {
        for (const [zone, stop] of this.#stopFollowing) {
          if (this.#zones.origins.includes(zone)) continue
          stop()
          this.#followers.delete(zone)
          this.#stopFollowing.delete(zone)
        }
        this.#followNew?.()
      })
      .catch(this.#warn)
  }

  renew(): void {
    this.#hasCaughtUp = false
    this.#hasLed = false
    this.#leading = new Promise((resolve) => (this.#onLeading = resolve))
  }

  async lead(signal: AbortSignal): Promise<boolean> {
    await this.#zonesSet
    if (this.#hasCaughtUp) await this.#zones.loadFailed()
    else await this.#catchUp(signal)
    this.#hasCaughtUp = true
    await this.#zones.create(this.addresses.map(({ address }) => address))
    // A zone that cannot be read does not stop the others.
    this.#onLeading()
    this.#hasLed = true
    return !this.#zones.hasFaults
  }

  /** Another replica may have received changes that this one has not: take them before writing. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(CATCH_UP_MS)])
    await Promise.all([...this.#followers.values()].map(async (follower) => follower.refresh(limit)))
    await this.#zones.loadAll()
  }

  complete(zone: string): void {
    this.#zones.complete(zone)
  }

  zones(): ZoneStatus[] {
    return this.#zones.statuses()
  }

  findZone(zone: Fqdn): Zone | undefined {
    return this.zones().some((each) => each.zone === zone && each.isServed) ? this.#zones.findZone(zone) : undefined
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
    const ready = async (signal: AbortSignal) => {
      if (!this.#hasLed) await Promise.race([this.#leading, untilAborted(signal)])
    }
    return {
      ...inner,
      // All of them: a zone that is not loaded cannot be read, and is not one that does not exist.
      zones: async () => this.#zones.origins.map((origin) => ({ id: origin, name: origin })),
      read: async (zone, names, signal) => {
        await ready(signal)
        const fault = this.#zones.faultOf(fqdn(zone.name))
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
    await this.#stored?.close()
    await this.#client.close()
  }
}
