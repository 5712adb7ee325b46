/**
 * A simulated fleet on API servers: a hub with two member clusters on one in-process API server, a manager with fleet and
 * balance, and verdicts of probes.
 *
 * Roots are created before the manager starts: their UIDs are part of generated names, and equal in every run of a seed.
 */
import { type Client, connect, Ingress, IngressClass, Namespace, Secret, Service } from '@seamark/kube'
import { BalanceConfig, Cluster, DNSEndpoint, FleetConfig, GlobalIngressPolicy, runApp } from '@seamark/operator'
import { eventually, type RunningApp, type TestEnvironment } from '../../integration/publish/test-environment.ts'
import { MEMBERS, NAMESPACES, type Partition, policyOf, rootOf, type SimulatedFleet } from './actions.ts'
import { HealthTable } from '../balance/health-table.ts'
import { inProcessConfig, inProcessTransport } from '../in-process-transport.ts'
import type { Stage } from '../scenario.ts'
import { simulatedCluster } from '../simulated-cluster.ts'

export class FleetBench implements SimulatedFleet {
  readonly client: Client
  readonly health = new HealthTable()
  readonly #environment: TestEnvironment
  readonly #stage: Stage

  constructor(stage: Stage) {
    this.#stage = stage
    this.#environment = simulatedCluster(stage)
    this.client = this.#environment.client
    for (const address of Object.values(MEMBERS)) this.health.set(address, 'healthy')
  }

  static async prepare(stage: Stage, { clusters = ['eu1', 'us1'], hasRival = false } = {}): Promise<void> {
    const environment = simulatedCluster(stage)
    const { client } = environment
    for (const name of ['manager', ...NAMESPACES]) await client.create(Namespace, { metadata: { name } })
    await client.create(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'seamark.io/global' } })
    for (const name of Object.keys(MEMBERS)) {
      const { client: member, kubeconfig } = await environment.userCluster(name)
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
    await client.create(GlobalIngressPolicy, policyOf(clusters))
    await client.create(Ingress, rootOf('shop', 'shop'))
    // Creation times have whole seconds, and the older root gets the host.
    await stage.clock.advance(2_000)
    if (hasRival) await client.create(Ingress, rootOf('other', 'rival'))
  }

  run(): RunningApp {
    return this.#environment.launch('contour-plus', async (cluster, { clock, connect: connectMember }, signal) =>
      runApp(
        {
          cluster,
          clock,
          connectMember,
          namespace: 'manager',
          mode: 'enforce',
          installsCrds: false,
          fleet: { ...FleetConfig.parse({}), verifyDns: false },
          balance: {
            config: BalanceConfig.parse({ enabled: true, sources: [] }),
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

  partition(name: string, how: Partition): () => void {
    const { server } = this.#stage
    const faults = name === 'hub' ? server.faults : server.clusters.get(name)?.faults
    if (faults === undefined) throw new Error(`no cluster ${name}`)
    const user = 'controller'
    if (how === 'both') {
      const heal = faults.fail({ user }, { status: 0 })
      faults.cut({ user }, 'break')
      return heal
    }
    const [heal, thaw] = [faults.fail({ user }, { afterwards: true }), faults.freeze({ user })]
    return () => {
      heal()
      thaw()
    }
  }

  async pass(ms: number): Promise<void> {
    await this.#stage.clock.advance(ms)
  }

  async published(): Promise<readonly string[]> {
    const { items } = await this.client.list(DNSEndpoint, { namespace: 'shop' })
    return items.flatMap(({ spec }) => spec.endpoints.flatMap(({ targets }) => targets)).toSorted()
  }

  async eventually(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await eventually(what, isSo, (found) => found, undefined, this.#environment.waiting)
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
