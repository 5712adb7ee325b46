/**
 * A hub with two members and one manager that runs every capability which needs no port: publish, wildcard, fleet, balance and
 * records. Gateways are scripted probe targets, and DNS is a zone in memory, which outlives the manager.
 */
import {
  type Client,
  connect,
  Event,
  findCondition,
  Ingress,
  IngressClass,
  Namespace,
  Node,
  Secret,
  Service,
} from '@seamark/kube'
import {
  BalanceConfig,
  Cluster,
  FleetConfig,
  GlobalIngressPolicy,
  RecordsConfig,
  runApp,
  traceHost,
  unified,
  wildcardDefaults,
} from '@seamark/operator'
import { eventually, type RunningApp, type TestEnvironment } from '../../integration/publish/test-environment.ts'
import { HealthTable } from '../balance/health-table.ts'
import { MEMBERS, policyOf, rootOf } from '../fleet/actions.ts'
import { inProcessConfig, inProcessTransport } from '../in-process-transport.ts'
import { type SimulatedZone, simulatedZone } from '../records/simulated-zone.ts'
import type { Stage } from '../scenario.ts'
import { simulatedCluster } from '../simulated-cluster.ts'
import { zoneClient } from './zone-client.ts'

const ZONE = 'example.com.'
const HOST = 'shop.example.com'

export class TogetherBench {
  readonly client: Client
  readonly zone: SimulatedZone
  readonly health = new HealthTable()
  readonly #environment: TestEnvironment
  readonly #stage: Stage

  constructor(stage: Stage) {
    this.#stage = stage
    this.#environment = simulatedCluster(stage)
    this.client = this.#environment.client
    this.zone = simulatedZone(stage, ZONE)
    for (const address of Object.values(MEMBERS)) this.health.set(address, 'unhealthy')
  }

  static async prepare(stage: Stage): Promise<void> {
    const environment = simulatedCluster(stage)
    const { client } = environment
    for (const name of ['manager', 'shop', 'other']) await client.create(Namespace, { metadata: { name } })
    await client.create(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
    for (const [name, address] of Object.entries(MEMBERS)) {
      const { client: member, kubeconfig } = await environment.userCluster(name)
      await member.create(Namespace, { metadata: { name: 'shop' } })
      await member.create(Service, { metadata: { namespace: 'shop', name: 'web' }, spec: { ports: [{ port: 80 }] } })
      await member.create(Node, { metadata: { name: 'node-1' } })
      const addresses = [{ type: 'ExternalIP' as const, address: address.replace('192.0.2', '203.0.113') }]
      const status = { addresses, conditions: [{ type: 'Ready', status: 'True' as const }] }
      await member.patch(Node, 'node-1', 'merge', { status }, { subresource: 'status' })
      await client.create(Secret, {
        metadata: { namespace: 'manager', name, labels: { 'seamark.io/cluster': name } },
        data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
      })
      await client.create(Cluster, { metadata: { name }, spec: {} } as Cluster)
    }
    await client.create(GlobalIngressPolicy, policyOf(Object.keys(MEMBERS)))
    // A record that is younger than its kind may be deleted at once.
    await stage.clock.advance(60_000)
    await client.create(Ingress, rootOf('shop', 'shop'))
  }

  run(): RunningApp {
    const records = RecordsConfig.parse({ enabled: true, owner: 'together', dnsEndpoints: { enabled: true } })
    return this.#environment.launch('contour-plus', async (cluster, { clock, random, call, connect: reach }, signal) =>
      runApp(
        {
          cluster,
          clock,
          connectMember: reach,
          namespace: 'manager',
          mode: 'enforce',
          installsCrds: false,
          publish: unified,
          wildcard: { ...wildcardDefaults, zone: 'clusters.example.com' },
          fleet: FleetConfig.parse({ dnsServers: ['192.0.2.53:53'] }),
          dnsClient: zoneClient(this.zone, call),
          balance: {
            config: BalanceConfig.parse({ enabled: true }),
            startThread: this.health.thread(clock),
            resolve: async () => [],
          },
          records: { config: records, env: {}, providers: [this.zone.providerFor(call)], random },
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

  /** What the gateway of a member does when a leaf comes. */
  async admit(name: string): Promise<void> {
    const member = this.member(name)
    await this.#until(`a leaf on ${name}`, async () => (await member.find(Ingress, 'shop/shop')) !== undefined)
    const status = { loadBalancer: { ingress: [{ ip: MEMBERS[name] }] } }
    await member.patch(Ingress, 'shop/shop', 'merge', { status }, { subresource: 'status' })
  }

  /** The gateway of a member answers its probes, or does not. */
  judge(name: string, verdict: 'healthy' | 'unhealthy'): void {
    this.health.set(MEMBERS[name] ?? '', verdict)
  }

  async drain(name: string, enabled: boolean): Promise<void> {
    await this.client.patch(Cluster, name, 'merge', { spec: { drain: { enabled } } })
  }

  /** No request of the manager reaches the API server of a member, until the returned function is called. */
  loseApiServer(name: string): () => void {
    const faults = this.#stage.server.clusters.get(name)?.faults
    if (faults === undefined) throw new Error(`no cluster ${name}`)
    const heal = faults.fail({ user: 'controller' }, { status: 0 })
    faults.cut({ user: 'controller' }, 'break')
    return heal
  }

  async pass(ms: number): Promise<void> {
    await this.#stage.clock.advance(ms)
  }

  /** The zone has the gateways of these members for the root, and what is said of it is that; without members no record. */
  async expectAnswer(...names: string[]): Promise<void> {
    const wanted = names.map((name) => MEMBERS[name]).join(' ')
    await this.#until(`answered: ${wanted || 'nothing'}`, async () => this.answer().join(' ') === wanted)
    let found: string[] = []
    const isTrue = async (): Promise<boolean> => (found = await this.#contradictions()).length === 0
    await this.#until('what is said is what the zone has', isTrue).catch((error: unknown) => {
      throw new Error(`the zone has ${wanted || 'nothing'}, but ${found.join('; ')}`, { cause: error })
    })
  }

  /** DNSPublished and the addresses of `seamark tree`, where they are not what the zone has. */
  async #contradictions(): Promise<string[]> {
    const [root] = (await traceHost(this.client, HOST))?.roots ?? []
    if (root === undefined) return []
    const answered = this.answer()
    const published = findCondition(root.global.status?.conditions, 'DNSPublished')
    const found: string[] = []
    if ((published?.status === 'True') !== answered.length > 0)
      found.push(`DNSPublished is ${published?.status ?? 'absent'}: ${published?.message ?? ''}`)
    for (const { value, state } of root.leaves.flatMap(({ addresses }) => addresses)) {
      const isSaid = ['answered', 'draining'].includes(state) || state.endsWith('still answered')
      if (isSaid !== answered.includes(value)) found.push(`tree says ${value} is ${state}`)
    }
    return found
  }

  /** An object of publish names the host of the root: it gets nothing, and an Event says who has the host. */
  async expectRefusedRival(): Promise<void> {
    const rival = { ...rootOf('other', 'rival'), spec: { ...rootOf('other', 'rival').spec, ingressClassName: 'local' } }
    await this.client.create(Ingress, rival)
    const status = { loadBalancer: { ingress: [{ ip: '198.51.100.7' }] } }
    await this.client.patch(Ingress, 'other/rival', 'merge', { status }, { subresource: 'status' })
    await this.#until('an Event at the rival that names the root', async () => {
      const { items } = await this.client.list(Event)
      return items.some(
        ({ regarding, reason, note }) =>
          regarding?.name === 'rival' && reason === 'ClaimHeldByOther' && note?.includes('shop/shop') === true,
      )
    })
    await this.client.delete(Ingress, 'other/rival')
  }

  answer(): string[] {
    return (this.zone.find(`shop.${ZONE}`) ?? []).toSorted()
  }

  async expectGone(): Promise<void> {
    await this.#until('no root', async () => (await this.client.find(Ingress, 'shop/shop')) === undefined)
    for (const name of Object.keys(MEMBERS))
      await this.#until(
        `no leaf on ${name}`,
        async () => (await this.member(name).find(Ingress, 'shop/shop')) === undefined,
      )
  }

  async #until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await eventually(what, isSo, (found) => found, undefined, this.#environment.waiting)
  }
}
