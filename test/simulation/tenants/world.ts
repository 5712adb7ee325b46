/**
 * A random world of tenants that share one zone, and the model that says what each of them may change.
 *
 * Flow: an arbitrary draws grants and the objects that tenants put, change and delete; `playWorld` plays them on the in-process API
 * server with publish and records on; the model derives from the stored objects alone who owns each name.
 * The model is written a second time on purpose: it shares no line with the decisions that it judges.
 */
import { type Client, createLogger, Ingress } from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import { DNSEndpoint, RecordsConfig, runApp, unified } from '@seamark/operator'
import fc from 'fast-check'
import { createLoadBalancer, createNamespace, type RunningApp } from '../../integration/publish/test-environment.ts'
import { type SimulatedZone, simulatedZone } from '../records/simulated-zone.ts'
import type { Stage, TestEnvironment as Stored } from '../scenario.ts'
import { simulatedCluster } from '../simulated-cluster.ts'

export const ZONE = 'example.test.'
const TENANTS = ['anna', 'bert', 'carl'] as const
/** No wildcard: it is published only after an approval. */
const HOSTS = ['x.example.test', 'y.example.test', 'a.y.example.test'] as const
const DOMAINS = ['example.test', '*.y.example.test', ...HOSTS] as const
/** Every deletion that waits is made: it is unconfirmed for half an hour at most. */
const BACKEND = { service: { name: 'web', port: { number: 80 } } }
const CONVERGE_MS = 45 * 60_000

export interface Grant {
  readonly namespace: string
  readonly domains: readonly string[]
}

export interface Action {
  /** What passes before it: creation times have seconds, so 0 and 300 are often ties. */
  readonly gapMs: number
  readonly verb: 'put' | 'delete'
  readonly kind: 'DNSEndpoint' | 'Ingress'
  readonly tenant: string
  readonly name: string
  readonly host: string
}

export interface World {
  readonly grants: readonly Grant[]
  readonly actions: readonly Action[]
}

const tenant = fc.constantFrom(...TENANTS)

export const worlds: fc.Arbitrary<World> = fc.record({
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
      kind: fc.constantFrom('DNSEndpoint', 'Ingress'),
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
  return `192.0.2.${1 + tenantAt * 10 + (name === 'one' ? 0 : 1) + (kind === 'Ingress' ? 5 : 0)}`
}

export interface WorldStage {
  readonly zone: SimulatedZone
  readonly client: Client
  /** Lines of the log. */
  readonly log: readonly string[]
  /** Why the manager ended before it was stopped; undefined: it did not. */
  readonly ended: () => unknown
  run(grants: readonly Grant[]): RunningApp
}

export function stageWorld(stage: Stage): WorldStage {
  const environment = simulatedCluster(stage)
  const zone = simulatedZone(stage, ZONE)
  const log: string[] = []
  let ended: unknown
  return {
    zone,
    client: environment.client,
    log,
    ended: () => ended,
    run: (grants) =>
      environment.launch('seamark', async (cluster, { clock, random, call }, signal) => {
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
              publish: { ...unified, sources: ['Ingress'] },
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

export async function prepareWorld(stage: Stage): Promise<void> {
  const { client } = simulatedCluster(stage)
  for (const name of [...TENANTS, 'seamark']) await createNamespace(client, name)
  await createLoadBalancer(client, 'seamark/envoy', [{ ip: '192.0.2.200' }])
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
  const { verb, kind, tenant: namespace, name, host } = action
  const key = `${namespace}/${name}` as const
  if (verb === 'delete') {
    const type: Kind = kind === 'DNSEndpoint' ? DNSEndpoint : Ingress
    if ((await client.find(type, key)) !== undefined) await client.delete(type, key)
    return
  }
  const address = addressOf(kind, namespace, name)
  const metadata = { namespace, name }
  const options = { fieldManager: 'tenant', force: true }
  if (kind === 'DNSEndpoint') {
    const endpoint = { dnsName: host, recordType: 'A' as const, recordTTL: 60, targets: [address] }
    await client.apply(DNSEndpoint, { metadata, spec: { endpoints: [endpoint] } }, options)
    return
  }
  await client.apply(Ingress, { metadata, spec: { rules: [{ host }], defaultBackend: BACKEND } }, options)
  const status = { loadBalancer: { ingress: [{ ip: address }] } }
  await client.patch(Ingress, key, 'merge', { status }, { subresource: 'status' })
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

export const hostsOf = (object: Obj): string[] =>
  object.kind === 'Ingress'
    ? ((object as Ingress).spec?.rules ?? []).flatMap(({ host }) => host ?? [])
    : (object as unknown as DNSEndpoint).spec.endpoints.map(({ dnsName }) => dnsName)

/** Who owns a host among the live objects of a kind, by the model. */
export function ownerOf(stored: Stored, kind: Action['kind'], host: string, grants: readonly Grant[]): Obj | undefined {
  return oldest(
    stored
      .list(kind)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined && metadata.namespace !== 'seamark')
      .filter((object) => hostsOf(object).includes(host) && mayUse(grants, object.metadata.namespace ?? '', host)),
  )
}

/** The one address that the model lets a resolver see; undefined: none. */
export function expectedAnswer(stored: Stored, host: string, grants: readonly Grant[]): string | undefined {
  return (ownerOf(stored, 'DNSEndpoint', host, grants) as DNSEndpoint | undefined)?.spec.endpoints.find(
    ({ dnsName }) => dnsName === host,
  )?.targets[0]
}

export const worldHosts: readonly string[] = HOSTS

/** The namespace that an address belongs to. */
export function tenantOf(address: string): string {
  return TENANTS[Math.floor((Number(address.split('.')[3]) - 1) / 10)] ?? 'nobody'
}
