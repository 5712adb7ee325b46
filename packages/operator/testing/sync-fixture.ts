/** Records in a manager, with an in-memory cluster, an in-memory zone and a manual clock. */
import { CustomResourceDefinition, manager } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { DNSEndpoint } from '../src/api/dns-endpoint.ts'
import { type MemoryProvider, memoryProvider } from '../src/providers/memory.ts'
import type { Capabilities } from '../src/providers/provider.ts'
import { createEngine } from '../src/records/engine.ts'
import { type GuardStore, memoryGuardStore } from '../src/records/state/guard-state.ts'
import type { Held } from '../src/records/sync/held-changes.ts'
import { createKillSwitch } from '../src/process/kill-switch.ts'
import type { Switches } from '../src/process/switches.ts'
import { Approvals } from '../src/safety/annotated-approvals.ts'
import type { ApprovalReport } from '../src/safety/approve.ts'
import { joinStores } from '../src/safety/held-store.ts'
import { isObjectScope } from '../src/safety/object-store.ts'
import { OWNER, ZONE } from './plan-fixture.ts'
import type { TenantRules } from '../src/records/sync/tenants/tenant-rules.ts'
import { EngineLifetime } from '../src/records/sync/engine-lifetime.ts'
import type { SyncReports } from '../src/records/sync/events.ts'
import { setUpSync, type SyncOptions } from '../src/records/sync/sync.ts'

/** Every namespace may use every name, and is trusted. */
export const OPEN_RULES: TenantRules = {
  findNameFault: () => undefined,
  isTrusted: () => true,
  limits: { perObject: Infinity, perNamespace: Infinity },
  unlimited: new Set(),
}

const DEFINITION = `${DNSEndpoint.plural}.${DNSEndpoint.group}`

export function definition(creationTimestamp: string, more: object = {}): CustomResourceDefinition {
  const versions = [{ name: DNSEndpoint.version, served: true, storage: true }]
  const names = { kind: DNSEndpoint.kind, plural: DNSEndpoint.plural }
  return {
    metadata: { name: DEFINITION, creationTimestamp, ...more },
    spec: { group: DNSEndpoint.group, scope: 'Namespaced', names, versions },
  }
}

export function endpoint(name: string, targets: string[] = ['192.0.2.1'], dnsName = `${name}.${ZONE}`): DNSEndpoint {
  return {
    metadata: { name, namespace: 'web' },
    spec: { endpoints: [{ dnsName, recordType: 'A', recordTTL: 60, targets }] },
  }
}

type Given = Partial<Omit<SyncOptions, 'engine' | 'reports' | 'approvals' | 'switches'>> & {
  switches?: Pick<Switches, 'approvedIds' | 'releasedNames' | 'subscribe'>
  approved?: (report: ApprovalReport) => void
  memory?: MemoryProvider
  store?: GuardStore
  capabilities?: Partial<Capabilities>
  reports?: Partial<SyncReports>
  /** Creation time of the CRD. */
  installed?: string
}

const NO_SWITCHES: NonNullable<Given['switches']> = {
  approvedIds: new Set(),
  releasedNames: new Set(),
  subscribe: () => () => undefined,
}

/** A manager with nothing but records; its first pass is due. */
export async function startSync({ memory: given, store = memoryGuardStore(), ...options }: Given = {}) {
  const {
    capabilities,
    reports,
    installed = '2020-01-01T00:00:00Z',
    switches = NO_SWITCHES,
    approved,
    ...rest
  } = options
  const clock = fakeClock()
  const cluster = memoryCluster()
  cluster.put(CustomResourceDefinition, definition(installed))
  const memory = given ?? memoryProvider({ zones: [ZONE], ...(capabilities !== undefined && { capabilities }) })
  const killSwitch = createKillSwitch()
  const types = ['A', 'AAAA', 'CNAME']
  const engine = createEngine({ providers: [memory], owner: OWNER, store, killSwitch, mode: 'enforce', types, clock })
  const held: Held[] = []
  const mgr = await manager({ cluster, clock, fieldManager: 'test', log: cluster.log, grace: '1s' })
  const lifetime = new EngineLifetime(async () => ({ engine, store }))
  mgr.add('engine', async (context) => lifetime.run(context), { leader: true })
  setUpSync(mgr, {
    engine: lifetime,
    killSwitch,
    clock,
    defaultTtl: 300,
    rules: OPEN_RULES,
    isServed: () => true,
    isWriting: true,
    switches,
    approvals: new Approvals({
      store: joinStores(store, undefined, isObjectScope),
      switches,
      clock,
      report: (report) => approved?.(report),
    }),
    endpointScope: {},
    ...rest,
    reports: () => ({
      held: (item) => held.push(item),
      shared: () => undefined,
      unread: () => undefined,
      breaker: () => undefined,
      released: () => undefined,
      ...reports,
    }),
  })
  const started = new Promise<void>((resolve) => {
    const subscribe = killSwitch.subscribe.bind(killSwitch)
    killSwitch.subscribe = (listener) => {
      resolve()
      return subscribe(listener)
    }
  })
  const stopping = new AbortController()
  const running = mgr.run(stopping.signal)
  await Promise.race([started, running])
  return {
    clock,
    cluster,
    memory,
    killSwitch,
    engine,
    store,
    held,
    values: (name: string) =>
      memory.dump(ZONE).find((set) => set.name === `${name}.${ZONE}` && set.type === 'A')?.values,
    async stop(): Promise<void> {
      stopping.abort()
      await running
    },
  }
}
