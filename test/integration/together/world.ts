/**
 * One installation with every capability: a hub with `seamark run`, two members with `seamark gateway`, all of the shipped
 * program, started and registered by the commands of docs/fleet.md with examples/fleet.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, EndpointSlice, Ingress, Namespace, Service } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { DNSLoadBalancer, fleetCrds, GlobalIngress, loadBalancerCrds } from '@seamark/operator'
import { parse } from 'yaml'
import { applyManifest, readExample } from '../examples/manifests.ts'
import { gatewayClassCrd } from '../gateway/crds.ts'
import { crds } from '../publish/test-environment.ts'
import { DNS_ADDRESS, HUB_ADDRESS, type MemberName, MEMBERS, POD } from './addresses.ts'
import { type ApiServer, type ServerKind, startApiServer } from './api-server.ts'
import { Member } from './member.ts'
import { type Ran, type Running, seamark, seamarkIn, startProgram } from './programs.ts'
import { openResolver, type Resolver } from './statements.ts'

/** A Service of the hub, which a host of the hub's own gateway has behind it: the program of a member. */
const HUB_SERVICE = 'web'

/** The configuration of docs/fleet.md and docs/dns.md, and what is told by flags there left to the flags. */
const CONFIG = `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
# Its members are on this machine.
allowLoopback: true
dns:
  listen: ['${DNS_ADDRESS}:53']
  zones: [example.com]
records: { enabled: true, owner: together, dnsEndpoints: { enabled: true } }
wildcard: { enabled: true, zone: clusters.example.com }
gateway:
  enabled: true
  httpListen: '${HUB_ADDRESS}:80'
  httpsListen: '${HUB_ADDRESS}:443'
  statusAddresses: ['${HUB_ADDRESS}']
metrics: { address: '0' }
probes: { address: '127.0.0.1:0' }
`

export class World {
  readonly hub: ApiServer
  readonly members: ReadonlyMap<MemberName, Member>
  readonly resolver: Resolver = openResolver()
  readonly #folder: string
  #manager: Running | undefined

  private constructor(hub: ApiServer, members: readonly Member[], folder: string) {
    this.hub = hub
    this.members = new Map(members.map((member) => [member.name, member]))
    this.#folder = folder
  }

  static async start(kindOfServer: ServerKind): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), 'seamark-together-'))
    const foreign = [...crds(), ...gatewayClassCrd()]
    const [hub, ...servers] = await Promise.all([
      startApiServer(kindOfServer, foreign, [...fleetCrds(), ...loadBalancerCrds()]),
      ...MEMBERS.map(async () => startApiServer(kindOfServer, foreign)),
    ])
    if (hub === undefined) throw new Error('no hub')
    const members = await Promise.all(
      MEMBERS.map(async (name, index) => {
        const file = join(folder, `${name}.yaml`)
        const server = servers[index] as ApiServer
        writeFileSync(file, server.kubeconfig, { mode: 0o600 })
        return Member.start(name, server, file)
      }),
    )
    const world = new World(hub, members, folder)
    await world.#prepare()
    return world
  }

  get client(): Client {
    return this.hub.client
  }

  member(name: MemberName): Member {
    const member = this.members.get(name)
    if (member === undefined) throw new Error(`no member ${name}`)
    return member
  }

  /** A command with the kubeconfig and the configuration of this installation, as far as it reads them. */
  async run(...argv: readonly string[]): Promise<Ran> {
    return seamark(...argv, '--kubeconfig', join(this.#folder, 'config'))
  }

  get configFlags(): readonly string[] {
    return ['--config', join(this.#folder, 'seamark.yaml'), '-n', 'seamark']
  }

  /** The command of docs/fleet.md, *Start*, with balance. */
  async startManager(): Promise<void> {
    this.#manager ??= await startProgram(
      'run',
      '-n',
      'seamark',
      '--mode',
      'enforce',
      '--fleet-enabled',
      '--balance-enabled',
      '--config',
      join(this.#folder, 'seamark.yaml'),
      '--kubeconfig',
      join(this.#folder, 'config'),
    )
  }

  async killManager(): Promise<void> {
    await this.#manager?.kill()
    this.#manager = undefined
  }

  managerLog(): string {
    return this.#manager?.log() ?? ''
  }

  /** Whether a root names the host. */
  async hasRoot(host: string): Promise<boolean> {
    const { items } = await this.client.list(Ingress, { namespace: 'shop' })
    return items.some(({ spec }) => spec?.rules?.some((rule) => rule.host === host) === true)
  }

  /** An object of examples/fleet/hub.yaml. */
  async applyHub(isWanted: (manifest: Obj) => boolean): Promise<void> {
    for (const manifest of readExample('fleet/hub.yaml').filter(isWanted)) {
      if (manifest.kind === 'GlobalIngressPolicy') quicken(manifest['spec'] as Policy)
      await applyManifest(this.client, manifest)
    }
  }

  /** A root like that of examples/fleet/hub.yaml, which the policy `default` applies to. */
  async applyRoot(name: string): Promise<void> {
    await this.client.apply(Ingress, rootOf(name))
  }

  async #prepare(): Promise<void> {
    writeFileSync(join(this.#folder, 'seamark.yaml'), CONFIG)
    writeFileSync(join(this.#folder, 'config'), this.#kubeconfig(), { mode: 0o600 })
    // The configuration above is there, and left as it is.
    const hub = ['--kubeconfig', join(this.#folder, 'config')]
    const prepared = await seamarkIn(this.#folder, 'hub', 'init', '--zone', 'example.com', ...hub)
    if (prepared.code !== 0) throw new Error(`hub init: ${prepared.stderr}`)
    for (const [name, member] of this.members) {
      await member.deploy('shop', 'web')
      const labels = ['--label', 'tier=prod', '--label', `region=${name}`]
      const added = await this.run('cluster', 'add', name, '-n', 'seamark', '--wildcard', ...labels)
      if (added.code !== 0) throw new Error(`cluster add ${name}: ${added.stderr}`)
      await member.startGateway()
    }
    await this.applyHub(({ kind: each }) => each !== 'Ingress')
    await this.#deployHubService()
  }

  /** One kubeconfig with the hub as the current context, and every member as one more. */
  #kubeconfig(): string {
    const parts = [
      ['hub', this.hub.kubeconfig] as const,
      ...[...this.members].map(([n, m]) => [n, m.kubeconfig] as const),
    ]
    const read = parts.map(([name, text]) => {
      const { clusters, users } = parse(text) as { clusters: { cluster: object }[]; users: { user: object }[] }
      return { name, cluster: clusters[0]?.cluster ?? {}, user: users[0]?.user ?? {} }
    })
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'hub',
      clusters: read.map(({ name, cluster }) => ({ name, cluster })),
      users: read.map(({ name, user }) => ({ name, user })),
      contexts: read.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
    })
  }

  async #deployHubService(): Promise<void> {
    const metadata = { namespace: 'web', name: HUB_SERVICE }
    await this.client.create(Namespace, { metadata: { name: 'web' } })
    await this.client.create(Service, { metadata, spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP' }] } })
    await this.client.create(EndpointSlice, {
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': HUB_SERVICE } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [POD.eu1], conditions: { ready: true } }],
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
    })
  }

  /** A host of the hub alone: its gateway serves it, publish publishes it. */
  async applyHubHost(name: string, host: string): Promise<void> {
    const ingress = rootOf(name, 'seamark', host)
    await this.client.apply(Ingress, { ...ingress, metadata: { ...ingress.metadata, namespace: 'web' } })
  }

  /** Conditions of what stands for a root on the hub, in words. */
  async conditionsOf(key: string): Promise<string[]> {
    const globals = (await this.client.list(GlobalIngress)).items.filter(
      ({ metadata, spec }) => `${metadata.namespace}/${spec.rootRef.name}` === key,
    )
    const balancers = (await this.client.list(DNSLoadBalancer)).items.filter(
      ({ metadata }) => `${metadata.namespace}/${metadata.annotations?.['seamark.io/root']}` === key,
    )
    return [...globals, ...balancers].flatMap(({ status }) =>
      (status?.conditions ?? []).map(({ type, reason, message }) => `${type} ${reason}: ${message ?? ''}`),
    )
  }

  async close(): Promise<void> {
    await this.resolver[Symbol.asyncDispose]()
    await this.killManager()
    for (const member of this.members.values()) await member.close()
    await this.hub.stop()
    rmSync(this.#folder, { recursive: true })
  }
}

interface Policy {
  health?: object
  traffic?: Record<string, unknown>
  migration?: Record<string, unknown>
}

/** Nothing serves HTTPS here, and a test does not wait for caches for two minutes. */
function quicken(spec: Policy): void {
  spec.health = { protocol: 'HTTP', port: 80, path: '/healthz' }
  spec.traffic = { ...spec.traffic, ttlSeconds: 2 }
  spec.migration = { ...spec.migration, drainSeconds: 1, minHoldSeconds: 1 }
}

export const hostOf = (name: string): string => `${name}.example.com`

function rootOf(name: string, ingressClassName = 'global', host = hostOf(name)): Ingress {
  const backend = { service: { name: 'web', port: { number: 80 } } }
  return {
    metadata: { namespace: 'shop', name },
    spec: {
      ingressClassName,
      rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  }
}
