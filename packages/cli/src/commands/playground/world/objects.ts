/** What the world contains: hosts of every capability in the zone, and who answers them. */
import { type Client, Ingress, Namespace, Node, poll, Service, systemClock } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import {
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  GlobalIngressPolicy,
  HTTPProxy,
} from '@seamark/operator'
import type { LocalCluster } from './local-cluster.ts'

export const ZONE = 'demo.test'
export const SHOP = `shop.${ZONE}`
export const LOAD_BALANCER = 'projectcontour/envoy'
const NAMESPACE = 'shop'
const TEAMS_NAMESPACE = 'teams'
const TEAMS = 24
/** Short, so that a change is seen within seconds. */
const TTL_S = 3
const POLL_MS = 20
const COLLECTED_WITHIN_MS = 30_000
/** Of the sources of records that a bad release deletes. */
const LOST_SHARE = 0.6

const teamHost = (index: number): string => `team-${index}.${ZONE}`

export const isTeamHost = (name: string): boolean => name.startsWith('team-')

export interface Clusters {
  readonly hub: LocalCluster
  readonly members: ReadonlyMap<string, LocalCluster>
}

/** By host, sorted: what a world answers in which nothing was broken. */
export function firstAnswers({ hub, members }: Clusters): Map<string, string[]> {
  const addressOf = (name: string): string => members.get(name)?.address ?? ''
  return new Map([
    [SHOP, [...members.values()].map(({ address }) => address).sort()],
    [`api.${ZONE}`, [addressOf('eu1')]],
    [`app.${ZONE}`, [addressOf('eu1'), addressOf('us1')].sort()],
    ...Array.from({ length: TEAMS }, (_, index): [string, string[]] => [teamHost(index + 1), [hub.address]]),
    ...[...members.values()].map(({ name, address }): [string, string[]] => [`*.${name}.${ZONE}`, [address]]),
  ])
}

/** Into an empty world. */
export async function createObjects({ hub, members }: Clusters): Promise<void> {
  const { client } = hub
  await client.apply(Namespace, { metadata: { name: 'projectcontour' } })
  await client.apply(Service, {
    metadata: { namespace: 'projectcontour', name: 'envoy' },
    spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 80 }] },
  })
  await client.patch(
    Service,
    LOAD_BALANCER,
    'merge',
    { status: { loadBalancer: { ingress: [{ ip: hub.address }] } } },
    { subresource: 'status' },
  )
  for (const cluster of members.values()) await createNode(cluster)
  await createFleetHosts(hub)
  await createBalancedHost(hub, members)
  for (let index = 1; index <= TEAMS; index++) await createTeam(client, index)
}

/** Programs do not survive a restart. */
export async function deployServices({ hub, members }: Clusters): Promise<void> {
  await hub.client.apply(Namespace, { metadata: { name: NAMESPACE } })
  await hub.deploy(TEAMS_NAMESPACE, 'web')
  for (const member of members.values()) {
    await member.deploy(NAMESPACE, 'web')
    await member.deploy(NAMESPACE, 'api')
  }
}

/** One host on every cluster, and one on the first that serves. */
async function createFleetHosts({ client, port }: LocalCluster): Promise<void> {
  await applyPolicy(client, 'shop', port, { strategy: 'roundRobin' })
  await applyPolicy(client, 'api', port, { strategy: 'failover', order: ['eu1', 'us1', 'ap1'] })
  for (const [name, service] of [
    ['shop', 'web'],
    ['api', 'api'],
  ] as const)
    await client.apply(Ingress, {
      metadata: { namespace: NAMESPACE, name },
      spec: { ingressClassName: 'global', rules: [ruleFor(`${name}.${ZONE}`, service)] },
    })
}

async function applyPolicy(client: Client, name: string, port: number, traffic: object): Promise<void> {
  await client.apply(GlobalIngressPolicy, {
    metadata: { namespace: NAMESPACE, name },
    spec: {
      targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name }],
      traffic: { ttlSeconds: TTL_S, ...traffic },
      health: { port, intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 2 },
      migration: { drainSeconds: 1, minHoldSeconds: 0 },
    },
  } as GlobalIngressPolicy)
}

/** A host without a root: its endpoints are gateways of two clusters. */
async function createBalancedHost({ client, port }: LocalCluster, members: Clusters['members']): Promise<void> {
  const host = `app.${ZONE}`
  await client.apply(DNSLoadBalancer, {
    metadata: { namespace: NAMESPACE, name: 'app' },
    spec: { DNSName: host, ttl: TTL_S, healthPath: '/', healthCheck: { scheme: 'http', port, profile: 'fast' } },
  })
  for (const name of ['eu1', 'us1']) {
    const member = members.get(name)
    if (member === undefined) continue
    await member.client.apply(Ingress, {
      metadata: { namespace: NAMESPACE, name: 'app' },
      spec: { rules: [ruleFor(host, 'web')] },
    })
    await client.apply(DNSLoadBalancerEndpoint, {
      metadata: { namespace: NAMESPACE, name: `app-${name}` },
      spec: { loadbalancer: 'app', ipaddress: member.address },
    })
  }
}

function ruleFor(host: string, service: string) {
  const backend = { service: { name: service, port: { number: 80 } } }
  return { host, http: { paths: [{ path: '/', pathType: 'Prefix' as const, backend }] } }
}

/** The node that the gateway of the cluster runs on. */
async function createNode({ client, name, address }: LocalCluster): Promise<void> {
  const node = `${name}-node-1`
  if ((await client.find(Node, node)) === undefined) await client.create(Node, { metadata: { name: node } })
  const status = {
    addresses: [{ type: 'ExternalIP', address }],
    conditions: [{ type: 'Ready', status: 'True' }],
  }
  await client.patch(Node, node, 'merge', { status }, { subresource: 'status' })
}

async function createTeam(client: Client, index: number): Promise<void> {
  await client.apply(HTTPProxy, {
    metadata: { namespace: TEAMS_NAMESPACE, name: `team-${index}` },
    spec: { virtualhost: { fqdn: teamHost(index) }, routes: [{ services: [{ name: 'web', port: 80 }] }] },
  })
}

/** The gateways have another port than before a restart. */
export async function moveGatewayPort({ client, port }: LocalCluster): Promise<void> {
  const { items: policies } = await client.list(GlobalIngressPolicy, { namespace: NAMESPACE })
  for (const policy of policies)
    if (policy.spec.health?.port !== undefined && policy.spec.health.port !== port)
      await client.patch(GlobalIngressPolicy, keyOf(policy), 'merge', { spec: { health: { port } } })
  const app = await client.find(DNSLoadBalancer, `${NAMESPACE}/app`)
  if (app !== undefined && app.spec.healthCheck?.port !== port)
    await client.patch(DNSLoadBalancer, `${NAMESPACE}/app`, 'merge', { spec: { healthCheck: { port } } })
}

/**
 * Deletes most of what declares a host. Watches see the deletions at once, as those of a release that is applied as a whole:
 * the first few of them, seen alone, would be no mass deletion.
 */
export async function deleteMostSources({ client, api }: LocalCluster): Promise<DeletedSources> {
  const total = (await client.list(DNSEndpoint)).items.length
  const { items } = await client.list(HTTPProxy, { namespace: TEAMS_NAMESPACE })
  const leaving = items.toSorted((a, b) => numberOf(a) - numberOf(b)).slice(0, Math.ceil(total * LOST_SHARE))
  const unfreeze = api.faults.freeze({ resource: 'dnsendpoints' })
  try {
    await Promise.all(leaving.map(async (proxy) => client.delete(HTTPProxy, keyOf(proxy))))
    const areCollected = async () => {
      const left = (await client.list(DNSEndpoint)).items.length
      return left <= total - leaving.length ? true : undefined
    }
    await poll(areCollected, { clock: systemClock, intervalMs: POLL_MS, timeoutMs: COLLECTED_WITHIN_MS })
  } finally {
    unfreeze()
  }
  return { gone: leaving.length, total, hosts: leaving.map(({ spec }) => spec?.virtualhost?.fqdn ?? '') }
}

const numberOf = ({ metadata }: HTTPProxy): number => Number(/\d+$/.exec(metadata.name ?? '')?.[0] ?? 0)

export interface DeletedSources {
  readonly gone: number
  /** Of how many. */
  readonly total: number
  readonly hosts: readonly string[]
}

/** Every source that a bad release deleted. Returns their hosts. */
export async function restoreSources(client: Client): Promise<string[]> {
  const restored: string[] = []
  for (let index = 1; index <= TEAMS; index++) {
    if ((await client.find(HTTPProxy, `${TEAMS_NAMESPACE}/team-${index}`)) !== undefined) continue
    await createTeam(client, index)
    restored.push(teamHost(index))
  }
  return restored
}
