/**
 * What a wildcard scenario needs: a hub, clusters with nodes that are registered with it, an app with the scenario's
 * options, and reads that wait. Everything a scenario made is taken away after it.
 */
import { type Client, Event, Node, Secret } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { DNSEndpoint, runApp, wildcardDefaults, type WildcardOptions } from '@seamark/operator'
import {
  createNamespace,
  eventually,
  type RunningApp,
  type UserCluster,
  type TestEnvironment,
} from '../publish/test-environment.ts'

interface NodeShape {
  ready?: 'True' | 'False' | 'Unknown'
  external?: string[]
  internal?: string[]
  labels?: Record<string, string>
}

export async function addNode(
  client: Client,
  name: string,
  { ready = 'True', external = [], internal = [], labels = {} }: NodeShape,
): Promise<void> {
  await client.create(Node, { metadata: { name, labels } })
  const addresses = [
    ...internal.map((address) => ({ type: 'InternalIP' as const, address })),
    ...external.map((address) => ({ type: 'ExternalIP' as const, address })),
  ]
  await client.patch(
    Node,
    name,
    'merge',
    { status: { addresses, conditions: [{ type: 'Ready', status: ready }] } },
    { subresource: 'status' },
  )
}

export async function setReady(client: Client, name: string, status: 'True' | 'False' | 'Unknown'): Promise<void> {
  await client.patch(
    Node,
    name,
    'merge',
    { status: { conditions: [{ type: 'Ready', status }] } },
    { subresource: 'status' },
  )
}

const lines = (object: DNSEndpoint): string =>
  object.spec.endpoints
    .map((item) => `${item.dnsName} ${item.recordTTL} ${item.recordType} ${item.targets.join(',')}`)
    .join('; ')

export class WildcardBench {
  readonly environment: TestEnvironment
  readonly #cleanups: (() => Promise<void>)[] = []
  #probes = 0

  constructor(environment: TestEnvironment) {
    this.environment = environment
  }

  static async prepare(environment: TestEnvironment): Promise<void> {
    await createNamespace(environment.client, 'manager')
  }

  async userCluster(name = 'user'): Promise<UserCluster> {
    const cluster = await this.environment.userCluster(name)
    this.#cleanups.push(cluster.stop)
    return cluster
  }

  /** With three ready nodes, a, b and c. */
  async three(name?: string): Promise<UserCluster> {
    const cluster = await this.userCluster(name)
    for (const [index, node] of ['a', 'b', 'c'].entries())
      await addNode(cluster.client, node, { external: [`192.0.2.${index + 1}`] })
    return cluster
  }

  run(changes: Partial<WildcardOptions> = {}): RunningApp {
    const zone = 'clusters.example.com'
    const wildcard = { ...wildcardDefaults, zone, removalDelayMs: 400, coalesceMs: 0, ...changes }
    return this.environment.launch('contour-plus', async (cluster, { clock, connect }, signal) =>
      runApp(
        {
          cluster,
          clock,
          wildcard,
          namespace: 'manager',
          mode: 'enforce',
          allowLoopback: true,
          connectMember: connect,
        },
        signal,
      ),
    )
  }

  async register(
    name: string,
    { kubeconfig }: Pick<UserCluster, 'kubeconfig'>,
    annotations: Record<string, string> = {},
  ): Promise<void> {
    await this.environment.client.create(Secret, {
      metadata: { namespace: 'manager', name, labels: { 'seamark.io/cluster': name }, annotations },
      data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
    })
  }

  async read(name: string): Promise<DNSEndpoint | undefined> {
    return this.environment.client.find(DNSEndpoint, `manager/${name}-wildcard`)
  }

  async expectLines(name: string, expected: string): Promise<DNSEndpoint> {
    const isRight = (object: DNSEndpoint) => lines(object) === expected
    return eventually(`wildcard of ${name}`, async () => this.read(name), isRight, undefined, this.environment.waiting)
  }

  /**
   * The manager has decided about everything that changed before: where time costs nothing it has had the time to, else a
   * cluster that is registered now has its wildcard.
   */
  async decided(): Promise<void> {
    const { settle } = this.environment.waiting
    if (settle !== undefined) return settle()
    const name = `probe-${(this.#probes += 1)}`
    const cluster = await this.userCluster(name)
    await addNode(cluster.client, 'a', { external: ['198.51.100.200'] })
    await this.register(name, cluster)
    await this.eventually(`the wildcard of ${name}`, async () => this.read(name))
  }

  /**
   * Waits until the manager has reported a finding about a cluster, and returns its message; in virtual time, where an Event may
   * be lost, until it has had the time to.
   */
  async reported(cluster: string, reason: string): Promise<string> {
    const { settle } = this.environment.waiting
    if (settle !== undefined) {
      await settle()
      return ''
    }
    const { client } = this.environment
    // By uid: earlier scenarios had clusters with the same names.
    const { metadata } = await client.get(Secret, `manager/${cluster}`)
    return this.eventually(`Event ${reason} about ${cluster}`, async () => {
      const { items } = await client.list(Event, { namespace: 'manager' })
      return items.find((event) => event.regarding?.uid === metadata.uid && event.reason === reason)?.note
    })
  }

  /** What `decided` costs an app in requests that write. */
  get decidedWrites(): number {
    return this.environment.waiting.settle === undefined ? 1 : 0
  }

  async eventually<T>(what: string, read: () => Promise<T | undefined>): Promise<T> {
    return eventually(what, read, undefined, undefined, this.environment.waiting)
  }

  /** After the scenario's app has ended. */
  async wipe(): Promise<void> {
    for (const cleanup of this.#cleanups.splice(0).toReversed()) await cleanup()
    for (const kind of [Secret, DNSEndpoint]) {
      const { items } = await this.environment.client.list<Obj>(kind, { namespace: 'manager' })
      for (const { metadata } of items)
        await this.environment.client.delete<Obj>(kind, `manager/${metadata.name}`).catch(() => undefined)
    }
  }
}
