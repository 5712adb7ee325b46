/**
 * A random world of tenants that share one zone, and the model that says what each of them may change.
 *
 * Flow: an arbitrary draws grants and the objects that tenants put, change and delete; `playWorld` plays them on the in-process API
 * server with publish, balance, fleet and records on; the model derives from the stored objects alone who owns each name.
 * The model is written a second time on purpose: it shares no line with the decisions that it judges.
 */
import { type Client, type Clock, connect, createLogger, Ingress, IngressClass, Secret } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import type { Transport } from '@seamark/kube/testing/parts'
import type { Kind, Obj } from '@seamark/kube/object'
import {
  BalanceConfig,
  Cluster,
  DNSEndpoint,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  FleetConfig,
  RecordsConfig,
  runApp,
  unified,
} from '@seamark/operator'
import fc from 'fast-check'
import { createLoadBalancer, createNamespace, type RunningApp } from '../../integration/publish/test-environment.ts'
import { HealthTable } from '../balance/health-table.ts'
import { inProcessTransport } from '../in-process-transport.ts'
import { type SimulatedZone, simulatedZone } from '../records/simulated-zone.ts'
import type { Stage, TestEnvironment as Stored } from '../scenario.ts'
import { simulatedCluster } from '../simulated-cluster.ts'

export const ZONE = 'example.test.'
const TENANTS = ['anna', 'bert', 'carl'] as const
const HOSTS = ['x.example.test', 'y.example.test', 'a.y.example.test', '*.y.example.test'] as const
const KINDS = ['DNSEndpoint', 'Ingress', 'HTTPProxy', 'DNSLoadBalancer', 'Root'] as const
const DOMAINS = ['example.test', ...HOSTS] as const
/** Every deletion that waits is made: it is unconfirmed for half an hour at most. */
const BACKEND = { service: { name: 'web', port: { number: 80 } } }
const CONVERGE_MS = 45 * 60_000
const ROOT_CLASS = 'global'

export interface Grant {
  readonly namespace: string
  readonly domains: readonly string[]
}

export interface Action {
  /** What passes before it: creation times have seconds, so 0 and 300 are often ties. */
  readonly gapMs: number
  readonly verb: 'put' | 'delete'
  readonly kind: (typeof KINDS)[number]
  readonly tenant: string
  readonly name: string
  readonly host: string
}

export interface World {
  /** With the fleet and a member that repeats its token; it costs ten times as much as one without, so that few have it. */
  readonly hasMember: boolean
  readonly grants: readonly Grant[]
  readonly actions: readonly Action[]
}

const tenant = fc.constantFrom(...TENANTS)

export const worlds: fc.Arbitrary<World> = fc.record({
  hasMember: fc.integer({ min: 0, max: 19 }).map((drawn) => drawn === 19),
  grants: fc.oneof(
    fc.constant([]),
    fc.array(
      fc.record({
        namespace: fc.constantFrom(...TENANTS, '*'),
        domains: fc.uniqueArray(fc.constantFrom(...DOMAINS), { minLength: 1, maxLength: 2 }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  ),
  actions: fc.array(
    fc.record({
      gapMs: fc.constantFrom(0, 300, 1_000, 20_000),
      verb: fc.constantFrom('put', 'put', 'put', 'delete'),
      kind: fc.constantFrom(...KINDS),
      tenant,
      name: fc.constantFrom('one', 'two'),
      host: fc.constantFrom(...HOSTS),
    }),
    { minLength: 1, maxLength: 8 },
  ),
})

/** An address of its own for every object: the zone shows whose it answers. */
function addressOf(kind: Action['kind'], namespace: string, name: string): string {
  const tenantAt = TENANTS.findIndex((each) => each === namespace)
  return `192.0.2.${1 + tenantAt * 20 + (name === 'one' ? 0 : 1) + 2 * KINDS.indexOf(kind)}`
}

/** In no log line, Event, status or record: the token of a member that repeats it in each answer, and a Secret of a tenant. */
export const CANARIES: readonly string[] = ['canary-of-the-member.Zm9vYmFyYmF6', 'canary-of-a-tenant-0123456789']
const [MEMBER_TOKEN = '', TENANT_SECRET = ''] = CANARIES

/** Each kind has names of its own, and so have the children of each. */
const nameOf = ({ kind, name }: Action): string => `${kind.toLowerCase()}-${name}`

const TYPES: Readonly<Record<Action['kind'], Kind>> = {
  DNSEndpoint,
  Ingress,
  HTTPProxy,
  DNSLoadBalancer,
  Root: Ingress,
}

export interface WorldStage {
  readonly zone: SimulatedZone
  readonly client: Client
  /** Lines of the log. */
  readonly log: readonly string[]
  /** Why the manager ended before it was stopped; undefined: it did not. */
  readonly ended: () => unknown
  run(world: World): RunningApp
}

export function stageWorld(stage: Stage): WorldStage {
  const environment = simulatedCluster(stage)
  const zone = simulatedZone(stage, ZONE)
  const log: string[] = []
  const health = new HealthTable()
  let ended: unknown
  return {
    zone,
    client: environment.client,
    log,
    ended: () => ended,
    run: ({ grants, hasMember }) =>
      environment.launch('seamark', async (cluster, { clock, random, call }, signal) => {
        for (const host of Array.from({ length: 60 }, (_, index) => `192.0.2.${index + 1}`)) health.set(host, 'healthy')
        const config = RecordsConfig.parse({ enabled: true, owner: 'world', dnsEndpoints: { enabled: true } })
        try {
          await runApp(
            {
              cluster,
              clock,
              log: createLogger({ level: 'debug', destination: { write: (line) => void log.push(line) } }),
              namespace: 'seamark',
              mode: 'enforce',
              grants,
              records: { config, env: {}, providers: [zone.providerFor(call)], random },
              publish: { ...unified, sources: ['Ingress', 'HTTPProxy'] },
              balance: {
                config: BalanceConfig.parse({ enabled: true }),
                startThread: health.thread(clock),
                resolve: async () => [],
              },
              ...(hasMember && { fleet: FleetConfig.parse({ verifyDns: false }) }),
              installsCrds: false,
              connectMember: (config) => connect(config, { clock, random, transport: repeatingTransport(clock) }),
            },
            signal,
          )
        } catch (error) {
          if (!signal.aborted) ended = error
          throw error
        }
      }),
  }
}

/** A member that refuses nearly everything, and says each time what it was sent. */
function repeatingTransport(clock: Clock): Transport {
  return inProcessTransport(async (url, init) => {
    const repeated = JSON.stringify(init?.headers)
    const answers: Readonly<Record<string, object>> = {
      '/readyz': { repeated },
      '/version': { gitVersion: `v1.34.0-${repeated}` },
      '/apis': { groups: [{ name: 'networking.k8s.io' }] },
    }
    const found = answers[new URL(String(url)).pathname]
    if (found !== undefined) return Response.json(found)
    const refusal = { status: 'Failure', reason: 'Forbidden', message: `not with ${repeated}`, code: 403 }
    return Response.json({ kind: 'Status', apiVersion: 'v1', ...refusal }, { status: 403 })
  }, clock)
}

const memberKubeconfig = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'm1', cluster: { server: 'https://m1.clusters.example:6443' } }],
  users: [{ name: 'm1', user: { token: MEMBER_TOKEN } }],
  contexts: [{ name: 'm1', context: { cluster: 'm1', user: 'm1' } }],
  'current-context': 'm1',
})

export async function prepareWorld(stage: Stage): Promise<void> {
  const { client } = simulatedCluster(stage)
  for (const name of [...TENANTS, 'seamark']) await createNamespace(client, name)
  await createLoadBalancer(client, 'seamark/envoy', [{ ip: '192.0.2.200' }])
  await client.create(IngressClass, { metadata: { name: ROOT_CLASS }, spec: { controller: 'seamark.io/global' } })
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  await client.create(Secret, {
    metadata: { namespace: 'seamark', name: 'm1', labels: { 'seamark.io/cluster': 'm1' } },
    data: { kubeconfig: base64(memberKubeconfig) },
  })
  await client.create(Cluster, { metadata: { name: 'm1' }, spec: {} } as Cluster)
  const data = { 'tls.crt': base64(TENANT_SECRET), 'tls.key': base64(TENANT_SECRET) }
  const metadata = { namespace: 'anna', name: 'tls', labels: { 'seamark.io/sync': 'true' } }
  await client.create(Secret, { metadata, type: 'kubernetes.io/tls', data })
  // A record that is younger than its kind may be deleted at once; an older one is held for half an hour.
  await stage.clock.advance(60_000)
  // A process that has seen no DNSEndpoint at all deletes nothing: one is always there.
  await client.create(DNSEndpoint, {
    metadata: { namespace: 'seamark', name: 'kept' },
    spec: { endpoints: [{ dnsName: 'kept.other.test', recordType: 'A', recordTTL: 60, targets: ['192.0.2.200'] }] },
  })
}

export async function playWorld(stage: Stage, { client }: WorldStage, actions: readonly Action[]): Promise<void> {
  for (const action of actions) {
    await stage.clock.advance(action.gapMs)
    await act(client, action)
  }
  await stage.clock.advance(CONVERGE_MS)
}

async function act(client: Client, action: Action): Promise<void> {
  const { verb, kind, tenant: namespace, host } = action
  const name = nameOf(action)
  const key = `${namespace}/${name}` as const
  if (verb === 'delete') {
    if ((await client.find(TYPES[kind], key)) !== undefined) await client.delete(TYPES[kind], key)
    return
  }
  const address = addressOf(kind, namespace, action.name)
  const metadata = { namespace, name }
  const options = { fieldManager: 'tenant', force: true }
  const status = { loadBalancer: { ingress: [{ ip: address }] } }
  switch (kind) {
    case 'DNSEndpoint': {
      const endpoint = { dnsName: host, recordType: 'A' as const, recordTTL: 60, targets: [address] }
      await client.apply(DNSEndpoint, { metadata, spec: { endpoints: [endpoint] } }, options)
      return
    }
    case 'DNSLoadBalancer':
      await client.apply(DNSLoadBalancer, { metadata, spec: { DNSName: host } }, options)
      await client.apply(
        DNSLoadBalancerEndpoint,
        { metadata, spec: { loadbalancer: name, ipaddress: address } },
        options,
      )
      return
    case 'HTTPProxy':
      await client.apply(HTTPProxy, { metadata, spec: { virtualhost: { fqdn: host } } }, options)
      await client.patch(HTTPProxy, key, 'merge', { status }, { subresource: 'status' })
      return
    case 'Ingress':
    case 'Root': {
      const ingressClassName = kind === 'Root' ? ROOT_CLASS : 'local'
      await client.apply(
        Ingress,
        { metadata, spec: { ingressClassName, rules: [{ host }], defaultBackend: BACKEND } },
        options,
      )
      await client.patch(Ingress, key, 'merge', { status }, { subresource: 'status' })
    }
  }
}

/** Whether a namespace may use a name: the longest granted domain at or above it decides, and a wildcard needs its own grant. */
export function mayUse(grants: readonly Grant[], namespace: string, host: string): boolean {
  if (grants.length === 0) return true
  const covering = grants
    .flatMap((grant) => grant.domains.map((domain) => ({ domain, holder: grant.namespace })))
    .filter(({ domain }) => domain === host || (!host.startsWith('*.') && host.endsWith(`.${domain}`)))
  const longest = Math.max(0, ...covering.map(({ domain }) => domain.length))
  const holders = covering.filter(({ domain }) => domain.length === longest).map(({ holder }) => holder)
  const hasOwnGrant = grants.some((grant) => grant.namespace === namespace)
  return holders.includes(hasOwnGrant ? namespace : '*')
}

const seniority = ({ kind, metadata }: Obj): string =>
  JSON.stringify([metadata.creationTimestamp, metadata.namespace, metadata.name, kind])

function oldest<T extends Obj>(objects: readonly T[]): T | undefined {
  return objects.toSorted((a, b) => (seniority(a) < seniority(b) ? -1 : 1))[0]
}

export function hostsOf(object: Obj): string[] {
  if (object.kind === 'Ingress') return ((object as Ingress).spec?.rules ?? []).flatMap(({ host }) => host ?? [])
  if (object.kind === 'HTTPProxy') return [(object as HTTPProxy).spec?.virtualhost?.fqdn ?? '']
  if (object.kind === 'DNSLoadBalancer') return [(object as unknown as DNSLoadBalancer).spec.DNSName ?? '']
  return (object as unknown as DNSEndpoint).spec.endpoints.map(({ dnsName }) => dnsName)
}

/** Who owns a host among the live objects of some kinds, by the model. */
export function ownerOf(
  stored: Stored,
  kinds: readonly string[],
  host: string,
  grants: readonly Grant[],
): Obj | undefined {
  return oldest(
    kinds
      .flatMap((kind) => stored.list(kind))
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined && metadata.namespace !== 'seamark')
      .filter((object) => hostsOf(object).includes(host) && mayUse(grants, object.metadata.namespace ?? '', host)),
  )
}

/** The one address that the model lets a resolver see; undefined: none. */
export function expectedAnswer(stored: Stored, host: string, grants: readonly Grant[]): string | undefined {
  return (ownerOf(stored, ['DNSEndpoint'], host, grants) as DNSEndpoint | undefined)?.spec.endpoints.find(
    ({ dnsName }) => dnsName === host,
  )?.targets[0]
}

export const worldHosts: readonly string[] = HOSTS

/** The namespace that an address belongs to. */
export function tenantOf(address: string): string {
  return TENANTS[Math.floor((Number(address.split('.')[3]) - 1) / 20)] ?? 'nobody'
}
