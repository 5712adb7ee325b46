/**
 * The fleet of the playground: a hub, member clusters with a gateway each, a DNS server with one zone, and the manager, all
 * on loopback addresses of this machine. The DNS server is apart from the manager, which can be restarted.
 */
import {
  createDnsClient,
  createDnsServer,
  createRRset,
  createZone,
  type DnsClient,
  type DnsServer,
  fqdn,
  groupRecords,
  type ListenAddress,
} from '@seamark/dns'
import { type Client, configFromText, connect, createLogger } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import {
  type BalanceOptions,
  BalanceConfig,
  embeddedProvider,
  FleetConfig,
  RecordsConfig,
  runApp,
} from '@seamark/operator'
import { CommandError } from '../../../command.ts'
import { LocalApiServer } from '../world/local-api-server.ts'
import { LocalCluster } from '../world/local-cluster.ts'
import { hubDefinitions, MANAGER_NAMESPACE, registerMembers, startMembers } from '../world/members.ts'

const FLEET_ZONE = 'fleet.test'
const OWNER = 'playground'

export interface FleetEnvironmentOptions {
  readonly clusters: readonly string[]
  /** `roots` of the fleet's configuration. @default class */
  readonly roots?: 'class' | 'all'
  /** Where the prober runs. @default in a worker thread */
  readonly startThread?: BalanceOptions['startThread']
  /** Called when the manager ends by itself. */
  readonly onFailure: (error: unknown) => void
}

export class FleetEnvironment {
  readonly members: ReadonlyMap<string, LocalCluster>
  readonly resolver: DnsClient = createDnsClient()
  readonly #options: FleetEnvironmentOptions
  readonly #hub: LocalApiServer
  readonly #dns: DnsServer
  #manager: { stop(): Promise<void> } | undefined

  private constructor(
    options: FleetEnvironmentOptions,
    hub: LocalApiServer,
    members: readonly LocalCluster[],
    dns: DnsServer,
  ) {
    this.#options = options
    this.#hub = hub
    this.#dns = dns
    this.members = new Map(members.map((member) => [member.name, member]))
  }

  static async start(options: FleetEnvironmentOptions): Promise<FleetEnvironment> {
    const authority = await createAuthority({ commonName: 'playground' })
    const [hub, members] = await Promise.all([
      LocalApiServer.start({ authority, definitions: hubDefinitions() }),
      startMembers(options.clusters, async (name, address, port) =>
        LocalCluster.start({ name, address, port, authority }),
      ),
    ])
    const environment = new FleetEnvironment(options, hub, members, await startDns())
    try {
      await registerMembers(environment.client, environment.members.values())
      environment.#startManager()
    } catch (error) {
      await environment.stop()
      throw error
    }
    return environment
  }

  get client(): Client {
    return this.#hub.client
  }

  get kubeconfig(): string {
    return this.#hub.kubeconfig
  }

  get dnsAddress(): ListenAddress {
    const [address] = this.#dns.addresses
    if (address === undefined) throw new CommandError('the DNS server has no address')
    return address
  }

  /** The port of every gateway. */
  get gatewayPort(): number {
    return [...this.members.values()][0]?.port ?? 0
  }

  member(name: string): LocalCluster {
    const found = this.members.get(name)
    if (found === undefined) throw new CommandError(`there is no cluster ${name} in this fleet`)
    return found
  }

  /** Addresses that the DNS server answers, sorted. */
  async ask(name: string): Promise<string[]> {
    const { message } = await this.resolver.query({ server: this.dnsAddress, name, type: 'A' })
    return groupRecords(message.answers)
      .flatMap(({ values }) => [...values])
      .sort()
  }

  async restartManager(): Promise<void> {
    await this.#manager?.stop()
    this.#startManager()
  }

  async stop(): Promise<void> {
    await this.#manager?.stop()
    await this.resolver.close()
    await this.#dns.close()
    await Promise.all([...this.members.values()].map(async (member) => member.close()))
    await this.#hub.stop()
  }

  #startManager(): void {
    const stopping = new AbortController()
    const cluster = connect(configFromText(this.kubeconfig), { name: 'hub', fieldManager: 'contour-plus' })
    const { startThread, roots = 'class', onFailure } = this.#options
    const { address, port } = this.dnsAddress
    const done = runApp(
      {
        cluster,
        log: createLogger({ level: 'silent' }),
        mode: 'enforce',
        namespace: MANAGER_NAMESPACE,
        allowLoopback: true,
        installsCrds: false,
        fleet: { ...FleetConfig.parse({}), roots, dnsServers: [`${address}:${port}`] },
        balance: {
          config: BalanceConfig.parse({ enabled: true, sources: [] }),
          ...(startThread !== undefined && { startThread }),
        },
        records: {
          config: RecordsConfig.parse({ enabled: true, owner: OWNER, dnsEndpoints: { enabled: true } }),
          env: {},
          providers: [embeddedProvider({ server: this.#dns })],
        },
      },
      stopping.signal,
    )
    done.catch(onFailure)
    this.#manager = {
      stop: async () => {
        stopping.abort()
        await done.catch(() => undefined)
        await cluster.close()
      },
    }
  }
}

async function startDns(): Promise<DnsServer> {
  const origin = fqdn(`${FLEET_ZONE}.`)
  const zone = createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} hostmaster.${origin} 1 3600 600 86400 1`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
    createRRset(`ns.${origin}`, 'A', 60, ['127.0.0.1']),
  ])
  return createDnsServer({ zones: [zone], listen: [{ address: '127.0.0.1', port: 0 }] })
}
