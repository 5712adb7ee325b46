/**
 * The world of the playground: a hub, members with a gateway and live backends each, a DNS service, and one manager with every
 * capability, all in this process and on loopback addresses. The code is that of the product; only nodes, pods and the cloud
 * that gives load balancers an address are simulated.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type ListenAddress, serverText } from '@seamark/dns'
import { type Client, configFromText, connect, createLogger } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import { writePrivateFile } from '@seamark/kube/private-file'
import { FIELD_MANAGER, runApp } from '@seamark/operator'
import { stringify } from 'yaml'
import { CommandError, type Io } from '../../../command.ts'
import { parseConfig } from '../../../flags/setting-flags.ts'
import { appOptions } from '../../run/run.ts'
import { configText } from './config.ts'
import { LocalCluster } from './local-cluster.ts'
import { findPort } from './ports.ts'
import { hubDefinitions, MANAGER_NAMESPACE, registerMembers, startMembers } from './members.ts'
import { NameServer } from './name-server.ts'
import { createObjects, deployServices, moveGatewayPort, ZONE } from './objects.ts'
import { newWorldFile, readWorldFile, type WorldFile, writeWorldFile } from './world-file.ts'

export const MEMBERS = ['eu1', 'us1', 'ap1'] as const
const HUB = 'hub'

/** That of the manager by default. */
const PAGE_PORT = 8182
const HOST = '127.0.0.1'

/** What the manager did not do, and why. */
export interface HeldNotice {
  /** Of a record, or of a zone. */
  readonly name: string
  readonly code: string
  readonly why: string
}

export interface WorldOptions {
  /** For the kubeconfig, the configuration and the key; private, and removed by others. */
  readonly folder: string
  /** Keeps the world. @default in memory only */
  readonly dataDir?: string
  readonly io: Io
  /** Called when the manager ends by itself. */
  readonly onFailure: (error: unknown) => void
}

export class World {
  readonly hub: LocalCluster
  readonly members: ReadonlyMap<string, LocalCluster>
  readonly names: NameServer
  readonly kubeconfigPath: string
  readonly configPath: string
  /** It is as it was when the folder was last used. */
  readonly isRestored: boolean
  /** Since the start, newest last. */
  readonly held: HeldNotice[] = []
  readonly #options: WorldOptions
  #page = ''
  #manager: { stop(): Promise<void> } | undefined

  private constructor(
    options: WorldOptions,
    { hub, members, names, isRestored }: Pick<World, 'hub' | 'members' | 'names' | 'isRestored'>,
  ) {
    this.#options = options
    this.hub = hub
    this.members = members
    this.names = names
    this.isRestored = isRestored
    this.kubeconfigPath = join(options.folder, 'kubeconfig')
    this.configPath = join(options.folder, 'config.yaml')
  }

  static async start(options: WorldOptions): Promise<World> {
    const { dataDir } = options
    const before = await openWorldFile(dataDir)
    const { secret } = before
    const names = await NameServer.start({
      zone: ZONE,
      port: before.dnsPort,
      doorPort: before.doorPort,
      secret,
      ...(dataDir !== undefined && { folder: join(dataDir, 'zones') }),
    })
    const clusters = await startClusters(dataDir, before).catch(async (error: unknown) => {
      await names.close()
      throw error
    })
    const [hub, ...members] = clusters as [LocalCluster, ...LocalCluster[]]
    const world = new World(options, {
      hub,
      members: new Map(members.map((member) => [member.name, member])),
      names,
      isRestored: before.isComplete,
    })
    try {
      await world.#prepare()
      if (dataDir !== undefined) await writeWorldFile(dataDir, world.#file(secret))
      await writePrivateFile(join(options.folder, 'tsig-key'), secret)
      await world.#startManager()
      return world
    } catch (error) {
      await world.stop()
      throw error
    }
  }

  /** Of the hub. */
  get client(): Client {
    return this.hub.client
  }

  /** The URL of the page. */
  get page(): string {
    return this.#page
  }

  get dnsAddress(): ListenAddress {
    return this.names.address
  }

  get dns(): string {
    return serverText(this.names.address)
  }

  member(name: string): LocalCluster {
    const found = this.members.get(name)
    if (found === undefined)
      throw new CommandError(
        `there is no cluster ${name} in this playground; it has ${[...this.members.keys()].join(', ')}`,
      )
    return found
  }

  async stop(): Promise<void> {
    await this.#manager?.stop()
    await Promise.all([...this.members.values(), this.hub].map(async (cluster) => cluster.close()))
    await this.names.close()
    await rm(this.configPath, { force: true })
  }

  async #prepare(): Promise<void> {
    await writePrivateFile(this.kubeconfigPath, this.#kubeconfig())
    await registerMembers(this.client, this.members.values())
    await deployServices(this)
    if (this.isRestored) await moveGatewayPort(this.hub)
    else await createObjects(this)
  }

  #kubeconfig(): string {
    const clusters = [this.hub, ...this.members.values()]
    return stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': HUB,
      clusters: clusters.map(({ name, api }) => ({
        name,
        cluster: {
          server: api.access.url,
          'certificate-authority-data': Buffer.from(api.access.caPem).toString('base64'),
        },
      })),
      users: clusters.map(({ name, api }) => ({ name, user: { token: api.access.token } })),
      contexts: clusters.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
    })
  }

  #file(secret: string): WorldFile {
    const clusters = [this.hub, ...this.members.values()]
    return {
      apiPorts: Object.fromEntries(clusters.map(({ name, api }) => [name, api.port])),
      gatewayPort: this.hub.port,
      dnsPort: this.names.address.port,
      doorPort: this.names.door.port,
      secret,
      isComplete: true,
    }
  }

  async #startManager(): Promise<void> {
    const { io, onFailure, folder } = this.#options
    const text = configText({
      dns: this.names.address,
      door: this.names.door,
      keyName: this.names.keyName,
      keyFile: join(folder, 'tsig-key'),
      page: { address: HOST, port: await findPort(PAGE_PORT) },
    })
    await writePrivateFile(this.configPath, text)
    // Settings in the environment are those of another manager.
    const own: Io = { ...io, env: {} }
    const parsed = parseConfig(own, {}, text)
    if (!parsed.ok) throw new Error(parsed.faults.join('; '))
    const stopping = new AbortController()
    const cluster = connect(configFromText(this.hub.kubeconfig), { name: HUB, fieldManager: FIELD_MANAGER })
    const log = createLogger({ level: 'info', destination: this.#notices() })
    const { config } = parsed
    const options = appOptions(own, {
      cluster,
      config,
      namespace: MANAGER_NAMESPACE,
      log,
      // That of the hub is the manager's own.
      traffic: () =>
        new Map([['', this.hub.answers], ...[...this.members].map(([name, { answers }]) => [name, answers] as const)]),
    })
    let onReady: () => void = () => undefined
    const ready = new Promise<void>((resolve) => (onReady = resolve))
    const done = runApp(
      {
        ...options,
        installsCrds: false,
        onReady: ({ page = '' }) => {
          this.#page = page
          onReady()
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
    await Promise.race([ready, done])
  }

  /** Takes what is held from the log of the manager. */
  #notices(): { write(line: string): void } {
    return {
      write: (line) => {
        const { name, zone, code, why } = JSON.parse(line) as Partial<HeldNotice> & { zone?: string }
        const what = name ?? zone
        if (what !== undefined && code !== undefined) this.held.push({ name: what, code, why: why ?? '' })
      },
    }
  }
}

/** From now on the folder is a playground's. */
async function openWorldFile(dataDir: string | undefined): Promise<WorldFile> {
  const known = dataDir === undefined ? undefined : await readWorldFile(dataDir)
  if (known !== undefined) return known
  const file = newWorldFile(NameServer.newSecret())
  if (dataDir !== undefined) await writeWorldFile(dataDir, file)
  return file
}

/** The hub first. */
async function startClusters(dataDir: string | undefined, before: WorldFile): Promise<LocalCluster[]> {
  const authority = await createAuthority({ commonName: 'playground' })
  const start = async (name: string, address: string, port: number): Promise<LocalCluster> => {
    const apiPort = before.apiPorts[name]
    return LocalCluster.start({
      name,
      address,
      port,
      authority,
      ...(name === HUB && { definitions: hubDefinitions() }),
      ...(dataDir !== undefined && { folder: join(dataDir, name) }),
      ...(apiPort !== undefined && { apiPort }),
    })
  }
  const [eu1, us1, ap1, hub] = await startMembers([...MEMBERS, HUB], start, before.gatewayPort)
  return [hub, eu1, us1, ap1].filter((cluster) => cluster !== undefined)
}
