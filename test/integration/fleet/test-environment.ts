/**
 * A hub with member clusters, registered with a manager that runs the fleet: embedded API servers, or real ones where found.
 * Simulates what runs beside Seamark: the ingress controller of a member, and balance with its verdicts.
 */
import {
  type Client,
  type Cluster as Connection,
  configFromText,
  connect,
  CustomResourceDefinition,
  Event,
  Ingress,
  IngressClass,
  Namespace,
  Secret,
  Service,
} from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import { ControlPlane } from '@seamark/kube/testing'
import {
  type AppOptions,
  Cluster,
  DNSLoadBalancerEndpoint,
  FleetConfig,
  type FleetOptions,
  fleetCrds,
  GlobalIngress,
  LeafIngress,
  loadBalancerCrds,
  playgroundCrds,
  runApp,
} from '@seamark/operator'
import { expect } from 'vitest'
import { type EmbeddedServer, startEmbeddedServer } from '../apiserver/embedded-server.ts'

export interface Server {
  readonly client: Client
  readonly kubeconfig: string
  /** Undefined: a real one. */
  readonly embedded?: EmbeddedServer
  /** A kubeconfig of another user, without rights but those of roles and bindings. */
  userKubeconfig(user: string): Promise<string>
  stop(): Promise<void>
}

export type StartServer = (definitions: readonly object[]) => Promise<Server>

export const startEmbedded: StartServer = async (definitions) => {
  const embedded = await startEmbeddedServer()
  const userKubeconfig = async (user: string) => embedded.userKubeconfig(user, [])
  const server = open(embedded.kubeconfig, userKubeconfig, async () => embedded.stop())
  for (const definition of definitions)
    await server.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
  return { ...server, embedded }
}

export const startReal: StartServer = async (definitions) => {
  const plane = await ControlPlane.start({ crds: [...definitions] })
  const userKubeconfig = async (user: string) => plane.kubeconfig(await plane.addUser(user))
  return open(plane.kubeconfig(), userKubeconfig, async () => plane.stop())
}

function open(kubeconfig: string, userKubeconfig: Server['userKubeconfig'], end: () => Promise<void>): Server {
  const connection = connect(configFromText(kubeconfig), { name: 'test', fieldManager: 'test-user' })
  let isStopped = false
  return {
    client: connection.client,
    kubeconfig,
    userKubeconfig,
    async stop() {
      if (isStopped) return
      isStopped = true
      await connection.close()
      await end()
    },
  }
}

/** The playground has no GatewayClass. */
function gatewayClassCrd(): object {
  const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: 'gatewayclasses.gateway.networking.k8s.io',
      annotations: { 'api-approved.kubernetes.io': 'unapproved, for a test' },
    },
    spec: {
      group: 'gateway.networking.k8s.io',
      scope: 'Cluster',
      names: { kind: 'GatewayClass', plural: 'gatewayclasses', singular: 'gatewayclass', listKind: 'GatewayClassList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  }
}

async function startHub(start: StartServer): Promise<Server> {
  const hub = await start([...fleetCrds(), ...loadBalancerCrds(), ...playgroundCrds(), gatewayClassCrd()])
  for (const name of ['manager', 'shop']) await hub.client.create(Namespace, { metadata: { name } })
  await hub.client.create(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
  return hub
}

export const POLL_OPTIONS = { timeout: 60_000, interval: 25 }

export interface Running {
  /** Requests that wrote, other than Events and Leases, by method and path. */
  readonly writes: string[]
  stop(): Promise<void>
}

export class FleetEnvironment implements AsyncDisposable {
  readonly hub: Server
  readonly members: ReadonlyMap<string, Server>
  readonly #running = new Set<Running>()

  constructor(hub: Server, members: ReadonlyMap<string, Server>) {
    this.hub = hub
    this.members = members
  }

  static async start(names: readonly string[], start: StartServer = startEmbedded): Promise<FleetEnvironment> {
    const [hub, ...members] = await Promise.all([startHub(start), ...names.map(async () => start(playgroundCrds()))])
    if (hub === undefined) throw new Error('no hub')
    return new FleetEnvironment(hub, new Map(names.map((name, index) => [name, members[index] as Server])))
  }

  /** Another hub with the same members. Dispose it first; it leaves the members. */
  async startSecondHub(): Promise<FleetEnvironment> {
    const hub = await startHub(startEmbedded)
    const kept = [...this.members].map(([name, member]): [string, Server] => [
      name,
      { ...member, stop: async () => undefined },
    ])
    return new FleetEnvironment(hub, new Map(kept))
  }

  async namespace(client: Client, name: string): Promise<void> {
    await client.create(Namespace, { metadata: { name } })
  }

  member(name: string): Server {
    const member = this.members.get(name)
    if (member === undefined) throw new Error(`no member ${name}`)
    return member
  }

  /** The Secret and the Cluster of a member, its namespace and its Service. */
  async register(
    name: string,
    spec: Partial<Cluster['spec']> = {},
    labels: Record<string, string> = {},
  ): Promise<void> {
    await this.registerSecret(name, this.member(name).kubeconfig)
    await this.hub.client.create(Cluster, { metadata: { name, labels }, spec } as Cluster)
  }

  async registerSecret(name: string, kubeconfig: string): Promise<void> {
    await this.hub.client.create(Secret, {
      metadata: { namespace: 'manager', name, labels: { 'seamark.io/cluster': name } },
      data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
    })
  }

  /** The namespace with the Service that roots refer to. */
  async deploy(name: string, namespace = 'shop', service = 'web'): Promise<void> {
    const { client } = this.member(name)
    if ((await client.find(Namespace, namespace)) === undefined) await this.namespace(client, namespace)
    await client.create(Service, { metadata: { namespace, name: service }, spec: { ports: [{ port: 80 }] } })
  }

  run(
    options: Partial<FleetOptions> = {},
    others: Pick<
      AppOptions,
      'balance' | 'dns' | 'fleet' | 'grants' | 'leader' | 'log' | 'onReady' | 'page' | 'probes' | 'publish'
    > = {},
  ): Running {
    const writes: string[] = []
    const cluster: Connection = connect(configFromText(this.hub.kubeconfig), {
      name: 'hub',
      fieldManager: 'contour-plus',
      observer: { request: () => undefined },
    })
    const guard = cluster.guardWrites.bind(cluster)
    cluster.guardWrites = (check) =>
      guard((request) => {
        check(request)
        if (!/\/(events|leases)/.test(request.path)) writes.push(`${request.method} ${request.path}`)
      })
    const stopping = new AbortController()
    const done = runApp(
      {
        cluster,
        namespace: 'manager',
        mode: 'enforce',
        allowLoopback: true,
        // Balance is played by the tests, and no DNS server has what it publishes.
        fleet: { ...FleetConfig.parse({}), verifyDns: others.dns !== undefined, ...options },
        ...others,
      },
      stopping.signal,
    )
    done.catch(() => undefined)
    const running: Running = {
      writes,
      stop: async () => {
        this.#running.delete(running)
        stopping.abort()
        await done
        await cluster.close()
      },
    }
    this.#running.add(running)
    return running
  }

  /** What an ingress controller does on a member. */
  async admit(name: string, key: string, ...ips: string[]): Promise<void> {
    const { client } = this.member(name)
    await expect.poll(async () => client.find(Ingress, key), POLL_OPTIONS).toBeDefined()
    await client.patch(
      Ingress,
      key,
      'merge',
      { status: { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } } },
      { subresource: 'status' },
    )
  }

  /** What balance says about the endpoints of a cluster, of one root or of all; returns how many there are. */
  async judge(cluster: string, status: { healthy?: boolean; active?: boolean }, root?: string): Promise<number> {
    const { client } = this.hub
    const { items } = await client.list(DNSLoadBalancerEndpoint, { labelSelector: `seamark.io/cluster=${cluster}` })
    const found = items.filter(
      ({ metadata }) => root === undefined || metadata.annotations?.['seamark.io/root'] === root,
    )
    for (const { metadata } of found)
      await client.patch(
        DNSLoadBalancerEndpoint,
        `${metadata.namespace}/${metadata.name}`,
        'merge',
        { status },
        { subresource: 'status' },
      )
    return found.length
  }

  async global(name = 'shop'): Promise<GlobalIngress | undefined> {
    const { items } = await this.hub.client.list(GlobalIngress)
    return items.find(({ spec }) => spec.rootRef.name === name)
  }

  /** `eu1 Active, us1 Pending`. */
  async phases(name = 'shop'): Promise<string> {
    const { items } = await this.hub.client.list(LeafIngress)
    return items
      .filter(({ metadata }) => metadata.annotations?.['seamark.io/root'] === name)
      .map(({ spec, status }) => `${spec.cluster} ${status?.phase ?? '-'}`)
      .sort()
      .join(', ')
  }

  /** Reasons of the Events about an object of the hub. */
  async events(name: string): Promise<(string | undefined)[]> {
    const { items } = await this.hub.client.list(Event)
    return items.filter(({ regarding }) => regarding?.name === name).map(({ reason }) => reason)
  }

  async exists<T extends Obj>(cluster: string, kind: Kind<T>, key: string): Promise<boolean> {
    return (await this.member(cluster).client.find(kind, key)) !== undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const running of this.#running) await running.stop()
    await Promise.all([...this.members.values(), this.hub].map(async (server) => server.stop()))
  }
}

/** A root Ingress with one host and one Service. */
export function root(name = 'shop', host = 'shop.example.com', changes: Partial<Ingress['metadata']> = {}): Ingress {
  return {
    metadata: { namespace: 'shop', name, ...changes },
    spec: {
      ingressClassName: 'global',
      rules: [
        {
          host,
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
          },
        },
      ],
    },
  }
}
