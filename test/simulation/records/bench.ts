/** What a records scenario needs: a cluster, a zone outside it, a manager with records on, and reads that wait. */
import { type Client, ConfigMap } from '@seamark/kube'
import { DNSEndpoint, RecordsConfig, runApp, unified } from '@seamark/operator'
import {
  createLoadBalancer,
  createNamespace,
  eventually,
  type RunningApp,
  type TestEnvironment,
} from '../../integration/publish/test-environment.ts'
import { simulatedCluster } from '../simulated-cluster.ts'
import { type SimulatedZone, simulatedZone } from './simulated-zone.ts'
import type { Stage } from '../scenario.ts'

const ZONE = 'example.test.'
/** Names of another owner that are in the zone before the start. */
export const FOREIGN = new Set([`foreign.${ZONE}`])
const KEPT = 'kept'
const SERVICE = 'web/envoy'
export const SERVICE_ADDRESS = '192.0.2.80'

export interface EndpointShape {
  readonly host?: string
  readonly type?: 'A' | 'CNAME'
  readonly targets?: string[]
}

export class RecordsBench {
  readonly stage: Stage
  readonly zone: SimulatedZone
  readonly client: Client
  readonly #environment: TestEnvironment

  constructor(stage: Stage) {
    this.stage = stage
    this.#environment = simulatedCluster(stage)
    this.client = this.#environment.client
    this.zone = simulatedZone(stage, ZONE)
    for (const name of FOREIGN) this.zone.put({ name, type: 'A', ttl: 60, values: ['203.0.113.1'] })
  }

  static async prepare(stage: Stage): Promise<void> {
    const { client } = simulatedCluster(stage)
    for (const name of ['web', 'other', 'seamark']) await createNamespace(client, name)
    await createLoadBalancer(client, SERVICE, [{ ip: SERVICE_ADDRESS }])
    await client.create(ConfigMap, { metadata: { namespace: 'seamark', name: 'seamark' } })
    // A record that is younger than its kind may be deleted at once; an older one is held for half an hour.
    await stage.clock.advance(60_000)
    // A process that has seen no DNSEndpoint at all deletes nothing: one is always there.
    await client.create(DNSEndpoint, { metadata: { namespace: 'other', name: KEPT }, spec: specOf(KEPT, {}) })
  }

  /** A manager that serves DNSEndpoints, and with `withPublish` makes them of HTTPProxies too. */
  run({ withPublish = false } = {}): RunningApp {
    const config = RecordsConfig.parse({ enabled: true, owner: 'simulated', dnsEndpoints: { enabled: true } })
    return this.#environment.launch('contour-plus', async (cluster, { clock, random, call }, signal) =>
      runApp(
        {
          cluster,
          clock,
          namespace: 'seamark',
          mode: 'enforce',
          records: { config, env: {}, providers: [this.zone.providerFor(call)], random },
          ...(withPublish && { publish: { ...unified, services: [{ service: SERVICE }] } }),
        },
        signal,
      ),
    )
  }

  async create(key: string, shape: EndpointShape = {}): Promise<void> {
    const [namespace = '', name = ''] = key.split('/')
    await this.client.create(DNSEndpoint, { metadata: { namespace, name }, spec: specOf(name, shape) })
  }

  async change(key: string, shape: EndpointShape): Promise<void> {
    await this.client.patch(DNSEndpoint, key, 'merge', { spec: specOf(key.split('/')[1] ?? '', shape) })
  }

  async delete(...keys: string[]): Promise<void> {
    for (const key of keys) await this.client.delete(DNSEndpoint, key)
  }

  async annotate(annotations: Record<string, string | null>): Promise<void> {
    await this.client.patch(ConfigMap, 'seamark/seamark', 'merge', { metadata: { annotations } })
  }

  /** Waits until an RRset has these values, or with `undefined` until it is absent. */
  async expectRecord(host: string, values: string | undefined, type?: string): Promise<void> {
    await eventually(
      `${host} ${type ?? 'A'}`,
      async () => this.zone.find(`${host}.${ZONE}`, type)?.join(' ') ?? 'absent',
      (found) => found === (values ?? 'absent'),
      undefined,
      this.#environment.waiting,
    )
  }

  async eventually<T>(what: string, read: () => Promise<T | undefined>, isRight?: (value: T) => boolean): Promise<T> {
    return eventually(what, read, isRight, undefined, this.#environment.waiting)
  }

  /** Names in the zone that the scenario made: no markers, nothing of others, not the one that is always there. */
  names(): string[] {
    return this.zone
      .lines()
      .map((line) => line.split('.', 1)[0] ?? '')
      .filter((name) => name !== 'foreign' && name !== KEPT)
  }

  /** Lets everything converge. */
  async settle(): Promise<void> {
    await this.#environment.waiting.settle?.()
  }
}

function specOf(
  name: string,
  { host = name, type = 'A', targets = ['192.0.2.1'] }: EndpointShape,
): DNSEndpoint['spec'] {
  return { endpoints: [{ dnsName: `${host}.example.test`, recordType: type, recordTTL: 60, targets }] }
}
