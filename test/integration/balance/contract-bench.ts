/**
 * What the rows of the contract table run on: `seamark dnslb` in this process between two clusters, a BIND with two zones and a
 * TSIG key, a Route 53 emulator, and backends on loopback addresses. Started once for all rows.
 */
import { TsigKey } from '@seamark/dns'
import { needs } from '@seamark/kit'
import {
  type Client,
  connect,
  configFromText,
  createLogger,
  Event,
  type Metrics,
  Secret,
  Service,
  systemClock,
} from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import {
  awsProvider,
  createProviderTypes,
  DNSLoadBalancer,
  DNSLoadBalancerEndpoint,
  DNSProvider,
  type Heartbeat,
  rfc2136Provider,
  type RRset,
  runDnslb,
} from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { type Key, type Peer, startBind } from '../dns/peers.ts'
import { applyExample } from '../examples/manifests.ts'
import { startMoto } from '../providers/moto.ts'
import { createNamespace, eventually, type EnvironmentKind } from '../publish/test-environment.ts'
import { ask, type Backends, startBackends } from './backends.ts'

export const [ONE, TWO, THREE] = ['127.0.0.2', '127.0.0.3', '127.0.0.4']
/** It accepts connections and never answers. */
export const SILENT = '127.0.0.5'
/** Nothing listens there. */
export const DEAD = '127.0.0.9'
const ZONES = ['example.test', 'second.test']
const AWS_ZONE = 'aws.test'
const key: Key = {
  name: 'seamark',
  algorithm: 'hmac-sha256',
  secret: Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64'),
}
const credentials = { accessKeyId: 'AKIACANARY', secretAccessKey: 'canary-secret-access-key' }

const zoneText = (origin: string) => `$ORIGIN ${origin}.
$TTL 300
@ IN SOA ns1 hostmaster 1 3600 600 86400 60
@ IN NS ns1
ns1 IN A 127.0.0.1
lb1 IN A ${ONE}
lb2 IN A ${TWO}
lb2 IN A ${ONE}
foreign IN A 192.0.2.1
spf IN TXT "v=spf1 -all"
`

export interface Bench extends AsyncDisposable {
  /** Requests that the rights of the example do not allow. */
  readonly forbidden: readonly string[]
  readonly source: Client
  readonly target: Client
  readonly peer: Peer
  readonly backends: Backends
  /** Present where the emulator is found. */
  readonly aws: { values(name: string, type: string): Promise<readonly string[] | undefined> } | undefined
  readonly metrics: Metrics
  readonly heartbeat: Heartbeat
  readonly log: readonly string[]
  /** Writes to BIND what another program would write. */
  put(set: RRset): Promise<void>
  /** Adds to the wall clock of the program. */
  advance(ms: number): void
  balancer(name: string, spec?: Partial<DNSLoadBalancer['spec']>): Promise<void>
  endpoint(name: string, loadbalancer: string, spec: Partial<DNSLoadBalancerEndpoint['spec']>): Promise<void>
  service(name: string, loadBalancer: string, ips: readonly string[], namespace?: string): Promise<void>
  provider(name: string, spec: DNSProvider['spec'], settings?: Readonly<Record<string, string>>): Promise<void>
  /** Settings of a provider that writes to BIND. */
  bind(zones: string): Readonly<Record<string, string>>
  status(name: string): Promise<DNSLoadBalancer['status']>
  endpointStatus(name: string): Promise<DNSLoadBalancerEndpoint['status']>
  /** `<type> <text>` of the Events about an object, oldest first. */
  events(client: Client, kind: string, name: string): Promise<string[]>
  answer(name: string, type?: string): Promise<string>
}

/** Whose rights are those of the example. */
const EXAMPLE = 'dns-load-balancer/dnslb.yaml'
const ACCOUNT = 'system:serviceaccount:garden:dnslb-controller-manager'
const GROUPS = ['system:serviceaccounts', 'system:serviceaccounts:garden', 'system:authenticated']
const isBindingOf = (side: 'source' | 'target', kind: unknown, name: string | undefined) =>
  kind === 'ClusterRoleBinding' && name === `seamark-dnslb-${side}`

const WEB = 'web'
const toData = (settings: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, Buffer.from(value).toString('base64')]))

export async function startBench(environment: EnvironmentKind): Promise<Bench> {
  const cleanups: (() => Promise<unknown>)[] = []
  const stop = async (): Promise<void> => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
  }
  try {
    return await openBench(environment, cleanups, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

async function openBench(
  { start }: EnvironmentKind,
  cleanups: (() => Promise<unknown>)[],
  dispose: () => Promise<void>,
): Promise<Bench> {
  const [source, target, peer, backends, moto] = await Promise.all([
    start(),
    start(),
    startBind(
      ZONES.map((origin) => ({ origin: `${origin}.`, text: zoneText(origin) })),
      [key],
    ),
    startBackends(ONE, TWO, THREE),
    needs('moto_server') ? startMoto(`${AWS_ZONE}.`, credentials) : undefined,
  ])
  cleanups.push(
    ...[source, target].map((environment) => async () => environment[Symbol.asyncDispose]()),
    async () => peer.close(),
    async () => backends.close(),
    async () => moto?.close(),
  )
  await backends.startSilent(SILENT)
  await applyExample(source.client, EXAMPLE, ({ kind, metadata }) => !isBindingOf('target', kind, metadata.name))
  await applyExample(target.client, EXAMPLE, ({ kind, metadata }) => !isBindingOf('source', kind, metadata.name))
  for (const { client } of [source, target]) for (const name of [WEB, 'other']) await createNamespace(client, name)
  // The bench runs without --secret-namespaces: its Secrets are beside the DNSProviders.
  await grantSecrets(target.client)
  const lines: string[] = []
  const log = createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } })
  let offsetMs = 0
  const startedMs = systemClock.now()
  // The wall clock is constant, so that no row depends on how long the others take.
  const clock = { ...systemClock, now: () => startedMs + offsetMs }
  const fieldManager = 'seamark-dnslb'
  const forbidden: string[] = []
  const clusters = await Promise.all(
    // The target cluster twice: once for its own controllers, once for the endpoints of the source cluster.
    [source, target, target].map(async (environment, index) => {
      const name = index === 0 ? 'east' : 'target'
      const observer = {
        request: ({ method, code }: { method: string; code: string }) =>
          void (code === '403' && forbidden.push(`${name} ${method}`)),
      }
      return connect(configFromText(await environment.userKubeconfig(ACCOUNT, GROUPS)), {
        fieldManager,
        log,
        name,
        observer,
      })
    }),
  )
  const stop = new AbortController()
  const building = withResolvers()
  let built: { metrics: Metrics; heartbeat: Heartbeat } | undefined
  const done = runDnslb(
    {
      target: clusters[1] as never,
      source: { cluster: clusters[0] as never, id: 'east', target: clusters[2] as never },
      controllers: { endpoint: true, dns: true },
      identity: 'ring',
      defaults: { ttlSeconds: 60, onAllUnhealthy: 'ServeLast' },
      providers: { isDynamic: true, staticTypes: [] },
      types: createProviderTypes(),
      env: {},
      hasLeases: true,
      isOnce: false,
      isDryRun: false,
      guard: { allowLoopback: true },
      resolver: `127.0.0.1:${peer.address.port}`,
      fieldManager,
      log,
      clock,
      healthTimeoutMs: 120_000,
      startThread: proberInThisThread(20),
      onStart(parts) {
        built = parts
        building.resolve()
      },
    },
    stop.signal,
  )
  done.catch(() => undefined)
  cleanups.push(async () => {
    stop.abort()
    await done
    for (const cluster of clusters) await cluster.close()
  })
  await Promise.race([building.promise, done])
  if (built === undefined) throw new Error('it did not start')

  const aws =
    moto === undefined
      ? undefined
      : awsProvider({ name: 'reader', credentials, endpoint: moto.endpoint, requestsPerSecond: 50 })
  cleanups.push(async () => aws?.close?.())
  const writer = rfc2136Provider({
    name: 'writer',
    server: peer.address,
    zones: ['example.test.'],
    key: new TsigKey(key.name, key.algorithm, key.secret),
  })
  cleanups.push(async () => writer.close?.())
  /** A server serves a kind a moment after its CRD is established. */
  const create = async <T extends Obj>(client: Client, kind: Kind<T>, object: T): Promise<void> => {
    await eventually(
      `${kind.kind} ${object.metadata.name}`,
      async () => client.create(kind, object).then(() => 'created', String),
      (outcome) => outcome === 'created',
    )
  }
  const bench: Bench = {
    forbidden,
    source: source.client,
    target: target.client,
    peer,
    backends,
    ...built,
    log: lines,
    aws:
      aws === undefined || moto === undefined
        ? undefined
        : {
            async values(name, type) {
              const zone = { id: moto.zoneId, name: `${AWS_ZONE}.`, visibility: 'public' as const }
              const sets = await aws.read(zone, new Set([`${name}.`]), AbortSignal.timeout(30_000))
              return sets.find((set) => set.type === type)?.values
            },
          },
    async put(set) {
      await writer.apply(
        { id: 'example.test.', name: 'example.test.' },
        [{ from: undefined, to: set }],
        AbortSignal.timeout(30_000),
      )
    },
    advance: (ms) => void (offsetMs += ms),
    async balancer(name, spec = {}) {
      await create(target.client, DNSLoadBalancer, {
        metadata: { namespace: WEB, name },
        spec: {
          DNSName: `${name}.example.test`,
          healthPath: '/healthz',
          healthCheck: { scheme: 'http', port: backends.port, profile: 'fast' },
          ...spec,
        },
      })
    },
    async endpoint(name, loadbalancer, spec) {
      await create(target.client, DNSLoadBalancerEndpoint, {
        metadata: { namespace: WEB, name },
        spec: { loadbalancer, ...spec },
      })
    },
    async service(name, loadBalancer, ips, namespace = WEB) {
      const annotations = { 'loadbalancer.gardener.cloud/dnsloadbalancer': loadBalancer }
      await source.client.create(Service, {
        metadata: { namespace, name, annotations },
        spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
      })
      const status = { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } }
      await source.client.patch(Service, `${namespace}/${name}`, 'merge', { status }, { subresource: 'status' })
    },
    async provider(name, spec, settings) {
      if (settings !== undefined)
        await target.client.create(Secret, { metadata: { namespace: WEB, name }, data: toData(settings) })
      const secretRef = settings === undefined ? {} : { secretRef: { name } }
      await create(target.client, DNSProvider, {
        metadata: { namespace: WEB, name },
        spec: { ...secretRef, ...spec },
      })
    },
    bind: (zones) => ({
      SERVER: `127.0.0.1:${peer.address.port}`,
      ZONES: zones,
      TSIG_NAME: key.name,
      TSIG_SECRET: key.secret,
    }),
    status: async (name) => (await target.client.get(DNSLoadBalancer, `${WEB}/${name}`)).status,
    endpointStatus: async (name) => (await target.client.get(DNSLoadBalancerEndpoint, `${WEB}/${name}`)).status,
    async events(client, kind, name) {
      const { items } = await client.list(Event, { namespace: WEB })
      return (
        items
          .filter(({ regarding }) => regarding?.kind === kind && regarding.name === name)
          // kube-apiserver reports Services whose address it repairs itself.
          .filter(({ reportingController }) => reportingController !== 'ipallocator-repair-controller')
          .toSorted((a, b) => (a.eventTime ?? '').localeCompare(b.eventTime ?? ''))
          .map(({ type, reason, note }) => `${type} ${reason}: ${note}`)
      )
    },
    answer: async (name, type) => ask(peer.address, name, type),
    [Symbol.asyncDispose]: dispose,
  }
  await bench.provider('bind', { type: 'rfc2136' }, bench.bind('example.test'))
  if (moto !== undefined)
    await bench.provider(
      'aws',
      { type: 'aws' },
      {
        AWS_ACCESS_KEY_ID: credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
        AWS_ENDPOINT_URL: moto.endpoint,
      },
    )
  return bench
}

/** Promise.withResolvers of newer versions of Node. */
function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve: () => resolve() }
}

const rbac = (kind: string, plural: string) => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced: true,
})

/** What the example grants in `garden` only. */
async function grantSecrets(client: Client): Promise<void> {
  const metadata = { namespace: WEB, name: 'dnslb-secrets' }
  const role = {
    metadata,
    rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch', 'patch'] }],
  }
  const binding = {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name },
    subjects: [{ kind: 'ServiceAccount', namespace: 'garden', name: ACCOUNT.split(':').at(-1) }],
  }
  await client.apply(rbac('Role', 'roles'), role, { force: true })
  await client.apply(rbac('RoleBinding', 'rolebindings'), binding, { force: true })
}
