/**
 * What users, ingress controllers and readers do in a fleet scenario, independent of where the fleet runs: on in-process API
 * servers (bench.ts) or on in-memory clusters (memory-fleet.ts).
 */
import { type Client, Ingress, type Kind } from '@seamark/kube'
import { Cluster, GlobalIngressPolicy, HostClaim, LeafIngress } from '@seamark/operator'

export const MEMBERS: Readonly<Record<string, string>> = { eu1: '192.0.2.1', us1: '192.0.2.2' }
const HOST = 'shop.example.com'
export const NAMESPACES = ['shop', 'other']

/**
 * How requests of the manager to one API server fail: none arrives and watches break, or they are carried out, no response
 * returns and watches are silent.
 */
export type Partition = 'both' | 'responses'

/** A hub with two members and a manager in virtual time. */
export interface SimulatedFleet {
  /** Of the hub, as a user. */
  readonly client: Client
  /** Verdicts of the probes, by address. */
  readonly health: { set(address: string, verdict: 'healthy' | 'unhealthy'): void }
  /** Starts the manager; disposing waits until it converged, then stops it. */
  run(): AsyncDisposable
  member(name: string): Client
  /** Between the manager and `hub` or a member, until the returned function is called. */
  partition(name: string, how: Partition): () => void
  /** Lets virtual time pass. */
  pass(ms: number): Promise<void>
  /** The addresses in DNS, sorted. */
  published(): Promise<readonly string[]>
  eventually(what: string, isSo: () => Promise<boolean>): Promise<void>
}

export class FleetActions {
  readonly fleet: SimulatedFleet

  constructor(fleet: SimulatedFleet) {
    this.fleet = fleet
  }

  get client(): Client {
    return this.fleet.client
  }

  /** What an ingress controller does on a member when a leaf comes. */
  async admit(name: string, key = 'shop/shop'): Promise<void> {
    const member = this.fleet.member(name)
    await this.eventually(`${key} on ${name}`, async () => (await member.find(Ingress, key)) !== undefined)
    const status = { loadBalancer: { ingress: [{ ip: MEMBERS[name] }] } }
    await member.patch(Ingress, key, 'merge', { status }, { subresource: 'status' })
  }

  judge(name: string, verdict: 'healthy' | 'unhealthy'): void {
    this.fleet.health.set(MEMBERS[name] ?? '', verdict)
  }

  async expectPublished(...clusters: string[]): Promise<void> {
    const wanted = clusters.map((name) => MEMBERS[name]).join(',')
    await this.eventually(`published: ${wanted}`, async () => (await this.fleet.published()).join(',') === wanted)
  }

  /** `eu1 Active, us1 Draining`. */
  async expectLeaves(wanted: string): Promise<void> {
    await this.eventually(`leaves: ${wanted}`, async () => (await this.leaves()) === wanted)
  }

  /** On the hub. */
  async expectGone(kind: Kind, key: string): Promise<void> {
    await this.eventually(`no ${kind.kind} ${key}`, async () => (await this.client.find(kind, key)) === undefined)
  }

  async leaves(): Promise<string> {
    const { items } = await this.client.list(LeafIngress, { namespace: 'shop' })
    return items
      .map(({ spec, status }) => `${spec.cluster} ${status?.phase ?? '-'}`)
      .sort()
      .join(', ')
  }

  async isOn(name: string, key = 'shop/shop'): Promise<boolean> {
    return (await this.fleet.member(name).find(Ingress, key)) !== undefined
  }

  async isReady(name: string): Promise<boolean> {
    const { status } = await this.client.get(Cluster, name)
    return status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true
  }

  async owner(): Promise<string> {
    const { items } = await this.client.list(HostClaim)
    return items.map(({ spec }) => `${spec.namespace}/${spec.owners.map(({ name }) => name).join(',')}`).join(' ')
  }

  async place(...clusters: string[]): Promise<void> {
    await this.client.patch(GlobalIngressPolicy, 'shop/shop', 'merge', { spec: { placement: { clusters } } })
  }

  async setTtl(ttlSeconds: number): Promise<void> {
    await this.client.patch(GlobalIngressPolicy, 'shop/shop', 'merge', { spec: { traffic: { ttlSeconds } } })
  }

  async drain(name: string, enabled = true): Promise<void> {
    await this.client.patch(Cluster, name, 'merge', { spec: { drain: { enabled } } })
  }

  async eventually(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await this.fleet.eventually(what, isSo)
  }
}

export function rootOf(namespace: string, name: string): Ingress {
  const backend = { service: { name: 'web', port: { number: 80 } } }
  return {
    metadata: { namespace, name },
    spec: {
      ingressClassName: 'global',
      rules: [{ host: HOST, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }],
    },
  }
}

export function policyOf(clusters: readonly string[]): GlobalIngressPolicy {
  return {
    metadata: { namespace: 'shop', name: 'shop' },
    spec: {
      targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
      placement: { clusters: [...clusters] },
      health: {},
      migration: { minHoldSeconds: 0 },
    },
  } as unknown as GlobalIngressPolicy
}

/** UIDs, and the hashes of them in names and annotations; and when a lost cluster was last reached, which a crash forgets. */
export const maskIds = (text: string): string =>
  text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\buid-[0-9]+\b/g, '<uid>')
    .replaceAll(/ingress-(shop|rival)-[0-9a-f]{6}\b/g, 'ingress-$1-<hash>')
    .replaceAll(/-(eu1|us1)-[0-9a-f]{8}\b/g, '-$1-<hash>')
    .replaceAll(/^ *"lastContact": .*\n/gm, '')
    .replaceAll(/(specHash|appliedHash|spec-hash)": "[0-9a-f]{16}"/g, '$1": "<hash>"')
