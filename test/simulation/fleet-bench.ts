/**
 * What a fleet scenario needs: a hub with two member clusters on one in-process API server, a manager with fleet and balance,
 * the ingress controllers of the members, verdicts of probes, and reads that wait.
 *
 * Roots are created before the manager starts: their UIDs are part of generated names, and equal in every run of a seed.
 */
import { type Client, connect, Ingress, IngressClass, Namespace, Secret, Service } from '@seamark/kube'
import {
  BalanceConfig,
  Cluster,
  DNSEndpoint,
  FleetConfig,
  GlobalIngressPolicy,
  HostClaim,
  LeafIngress,
  runApp,
} from '@seamark/operator'
import { eventually, type RunningApp, type World } from '../integration/publish/world.ts'
import { HealthTable } from './health-table.ts'
import { inProcessConfig, inProcessTransport } from './in-process-transport.ts'
import type { Stage } from './scenario.ts'
import { simulatedWorld } from './simulated-world.ts'

export const MEMBERS: Readonly<Record<string, string>> = { eu1: '192.0.2.1', us1: '192.0.2.2' }
const HOST = 'shop.example.com'
const NAMESPACES = ['shop', 'other']

export class FleetBench {
  readonly world: World
  readonly health = new HealthTable()
  readonly #stage: Stage

  constructor(stage: Stage) {
    this.#stage = stage
    this.world = simulatedWorld(stage)
    for (const address of Object.values(MEMBERS)) this.health.set(address, 'healthy')
  }

  static async prepare(stage: Stage, { clusters = ['eu1', 'us1'], hasRival = false } = {}): Promise<void> {
    const world = simulatedWorld(stage)
    const { client } = world
    for (const name of ['manager', ...NAMESPACES]) await client.create(Namespace, { metadata: { name } })
    await client.create(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
    for (const name of Object.keys(MEMBERS)) {
      const { client: member, kubeconfig } = await world.userCluster(name)
      for (const namespace of NAMESPACES) {
        await member.create(Namespace, { metadata: { name: namespace } })
        await member.create(Service, { metadata: { namespace, name: 'web' }, spec: { ports: [{ port: 80 }] } })
      }
      await client.create(Secret, {
        metadata: { namespace: 'manager', name, labels: { 'seamark.io/cluster': name } },
        data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
      })
      await client.create(Cluster, { metadata: { name }, spec: {} } as Cluster)
      watchLeaves(stage, name)
    }
    await client.create(GlobalIngressPolicy, {
      metadata: { namespace: 'shop', name: 'shop' },
      spec: {
        targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
        placement: { clusters },
        health: {},
        migration: { minHoldSeconds: 0 },
      },
    } as GlobalIngressPolicy)
    await client.create(Ingress, rootOf('shop', 'shop'))
    // Creation times have whole seconds, and the older root gets the host.
    await stage.clock.advance(2_000)
    if (hasRival) await client.create(Ingress, rootOf('other', 'rival'))
  }

  run(): RunningApp {
    return this.world.launch('contour-plus', async (cluster, { clock, connect: connectMember }, signal) =>
      runApp(
        {
          cluster,
          clock,
          connectMember,
          namespace: 'manager',
          mode: 'enforce',
          fleet: { ...FleetConfig.parse({}), verifyDns: false },
          balance: {
            config: BalanceConfig.parse({ enabled: true, installCrds: false, sources: [] }),
            startThread: this.health.thread(clock),
            resolve: async () => [],
          },
        },
        signal,
      ),
    )
  }

  member(name: string): Client {
    const { clock, server } = this.#stage
    const transport = inProcessTransport(server.fetch, clock, `/clusters/${name}`)
    return connect(inProcessConfig(name), { clock, transport }).client
  }

  /** No request of the manager reaches the API server of the member until it is restored. */
  cutOff(name: string): () => void {
    const faults = this.#stage.server.clusters.get(name)?.faults
    const restore = faults?.fail({ user: 'controller' }, { status: 0 })
    faults?.cut({}, 'break')
    return () => restore?.()
  }

  /** Lets virtual time pass. */
  async pass(ms: number): Promise<void> {
    await this.#stage.clock.advance(ms)
  }

  /** What an ingress controller does on a member when a leaf comes. */
  async admit(name: string, key = 'shop/shop'): Promise<void> {
    await this.eventually(`${key} on ${name}`, async () => (await this.member(name).find(Ingress, key)) !== undefined)
    const status = { loadBalancer: { ingress: [{ ip: MEMBERS[name] }] } }
    await this.member(name).patch(Ingress, key, 'merge', { status }, { subresource: 'status' })
  }

  async expectPublished(...clusters: string[]): Promise<void> {
    const wanted = clusters.map((name) => MEMBERS[name]).join(',')
    await this.eventually(`published: ${wanted}`, async () => (await this.published()) === wanted)
  }

  async published(): Promise<string> {
    const { items } = await this.world.client.list(DNSEndpoint, { namespace: 'shop' })
    return items.flatMap(({ spec }) => spec.endpoints.flatMap(({ targets }) => targets)).join(',')
  }

  /** `eu1 Active, us1 Draining`. */
  async expectLeaves(wanted: string): Promise<void> {
    await this.eventually(`leaves: ${wanted}`, async () => (await this.leaves()) === wanted)
  }

  async leaves(): Promise<string> {
    const { items } = await this.world.client.list(LeafIngress, { namespace: 'shop' })
    return items
      .map(({ spec, status }) => `${spec.cluster} ${status?.phase ?? '-'}`)
      .sort()
      .join(', ')
  }

  async isReady(name: string): Promise<boolean> {
    const { status } = await this.world.client.get(Cluster, name)
    return status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true
  }

  async owner(): Promise<string> {
    const { items } = await this.world.client.list(HostClaim)
    return items.map(({ spec }) => `${spec.namespace}/${spec.owners.map(({ name }) => name).join(',')}`).join(' ')
  }

  async place(...clusters: string[]): Promise<void> {
    await this.world.client.patch(GlobalIngressPolicy, 'shop/shop', 'merge', { spec: { placement: { clusters } } })
  }

  async drain(name: string, enabled = true): Promise<void> {
    await this.world.client.patch(Cluster, name, 'merge', { spec: { drain: { enabled } } })
  }

  async eventually(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await eventually(what, isSo, (found) => found, undefined, this.world.waiting)
  }
}

function rootOf(namespace: string, name: string): Ingress {
  const backend = { service: { name: 'web', port: { number: 80 } } }
  return {
    metadata: { namespace, name },
    spec: {
      ingressClassName: 'global',
      rules: [{ host: HOST, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  }
}

/** Deletions of leaves become writes of the run, so that invariants see them; what is left is part of the end state. */
function watchLeaves(stage: Stage, name: string): void {
  const store = stage.server.clusters.get(name)?.store
  store?.subscribe(({ type, key, current }) => {
    if (current.kind !== 'Ingress') return
    if (type === 'delete')
      stage.recordWrite({ type, kind: 'Leaf', key: `${name}/${key}`, before: current.object, after: undefined })
  })
  stage.addEndState(() => {
    const keys = [...(store?.collections() ?? [])].flatMap((collection) =>
      [...collection.values()].filter(({ kind }) => kind === 'Ingress').map(({ key }) => key),
    )
    return new Map([[`leaves on ${name}`, keys.sort().join(', ')]])
  })
}
