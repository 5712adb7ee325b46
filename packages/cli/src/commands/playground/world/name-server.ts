/**
 * The DNS service of the playground: a server that answers, and beside it the door by which the manager reads and writes the
 * zone (RFC 2136, AXFR). The door can be closed, as an outage of a provider whose name servers go on answering.
 */
import { randomBytes } from 'node:crypto'
import {
  createDnsClient,
  createDnsServer,
  createRRset,
  createZone,
  type DnsClient,
  type DnsServer,
  FolderStore,
  fqdn,
  groupRecords,
  type ListenAddress,
  type RRset,
  TsigKey,
  type Zone,
  ZoneKeeper,
} from '@seamark/dns'
import { CommandError } from '../../../command.ts'
import { listenPreferably } from './ports.ts'

export interface NameServerOptions {
  readonly zone: string
  /** Where they are free; 0: any. */
  readonly port: number
  readonly doorPort: number
  readonly secret: string
  /** Keeps the zone. @default in memory only */
  readonly folder?: string
}

const HOST = '127.0.0.1'
const KEY_NAME = 'playground'

export class NameServer {
  readonly address: ListenAddress
  readonly keyName = KEY_NAME
  readonly resolver: DnsClient = createDnsClient()
  readonly #answering: DnsServer
  readonly #keeper: ZoneKeeper
  readonly #key: TsigKey
  readonly #zone: string
  #door: DnsServer | undefined
  #doorPort: number

  private constructor(options: NameServerOptions, answering: DnsServer) {
    this.#answering = answering
    this.#key = new TsigKey(KEY_NAME, 'hmac-sha256', options.secret)
    this.#zone = options.zone
    this.#doorPort = options.doorPort
    const [address] = answering.addresses
    if (address === undefined) throw new CommandError('the DNS server has no address')
    this.address = address
    // Both answer from the same zone.
    this.#keeper = new ZoneKeeper({
      server: {
        swap: (zone, deltas) => {
          answering.swap(zone, deltas)
          this.#door?.swap(zone, deltas)
        },
        suspend: (origin) => answering.suspend(origin),
        remove: (origin) => answering.remove(origin),
      },
    })
  }

  static newSecret(): string {
    return randomBytes(32).toString('base64')
  }

  static async start(options: NameServerOptions): Promise<NameServer> {
    const origin = fqdn(`${options.zone}.`)
    const answering = await listenPreferably(options.port, async (port) =>
      createDnsServer({ listen: [{ address: HOST, port }], suspended: [origin] }),
    )
    const server = new NameServer(options, answering)
    try {
      const { folder } = options
      const store = folder === undefined ? undefined : new FolderStore({ folder, origin })
      if ((await server.#keeper.open(origin, store)) === undefined) await server.#keeper.replace(newZone(options.zone))
      server.#keeper.serve(origin)
      await server.openDoor()
      return server
    } catch (error) {
      await server.close()
      throw error
    }
  }

  /** Where the manager reads and writes. */
  get door(): ListenAddress {
    return { address: HOST, port: this.#doorPort }
  }

  get isDoorOpen(): boolean {
    return this.#door !== undefined
  }

  async openDoor(): Promise<void> {
    if (this.#door !== undefined) return
    const keys = [this.#key.name]
    this.#door = await listenPreferably(this.#doorPort, async (port) =>
      createDnsServer({
        zones: this.#keeper.zones(),
        listen: [{ address: HOST, port }],
        keys: [this.#key],
        defaultPolicy: { updateKeys: keys, transferKeys: keys },
        commit: async (zone, change) => this.#keeper.commit(zone, change),
      }),
    )
    this.#doorPort = this.#door.addresses[0]?.port ?? 0
  }

  async closeDoor(): Promise<void> {
    const door = this.#door
    this.#door = undefined
    await door?.close()
  }

  /** Addresses that it answers, sorted. */
  async ask(name: string): Promise<string[]> {
    const { message } = await this.resolver.query({ server: this.address, name, type: 'A' })
    return groupRecords(message.answers)
      .flatMap(({ values }) => [...values])
      .sort()
  }

  /** What clients ask for: neither the records of the zone itself nor ownership markers. */
  records(): RRset[] {
    const zone: Zone | undefined = this.#keeper.findZone(fqdn(`${this.#zone}.`))
    return [...(zone?.sets() ?? [])].filter(({ type }) => !['SOA', 'NS', 'TXT'].includes(type))
  }

  async close(): Promise<void> {
    await this.closeDoor()
    await this.#answering.close()
    await this.#keeper.close()
    await this.resolver.close()
  }
}

function newZone(name: string): Zone {
  const origin = fqdn(`${name}.`)
  return createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} hostmaster.${origin} 1 3600 600 86400 1`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
    createRRset(`ns.${origin}`, 'A', 60, [HOST]),
  ])
}
