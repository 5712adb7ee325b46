/** The loop over DNSEndpoints with an in-memory cluster, an in-memory zone and a manual clock. */
import { CustomResourceDefinition } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { DNSEndpoint } from '../src/api/dns-endpoint.ts'
import { type MemoryProvider, memoryProvider } from '../src/providers/memory.ts'
import type { Capabilities } from '../src/providers/provider.ts'
import { createEngine } from '../src/records/engine.ts'
import { type GuardStore, memoryGuardStore } from '../src/records/state/guard-state.ts'
import type { Held } from '../src/records/sync/held-changes.ts'
import { createKillSwitch } from '../src/process/kill-switch.ts'
import { OWNER, ZONE } from './plan-fixture.ts'
import type { TenantRules } from '../src/records/sync/tenant-rules.ts'
import { runSyncLoop, type SyncLoopOptions } from '../src/records/sync/sync-loop.ts'

/** Every namespace may use every name, and is trusted. */
export const OPEN_RULES: TenantRules = { findNameFault: () => undefined, isTrusted: () => true }

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

export function startLoop(
  options: Partial<SyncLoopOptions> & {
    memory?: MemoryProvider
    store?: GuardStore
    capabilities?: Partial<Capabilities>
  } = {},
) {
  const clock = fakeClock()
  const cluster = memoryCluster()
  cluster.put(CustomResourceDefinition, definition('2020-01-01T00:00:00Z'))
  const memory =
    options.memory ??
    memoryProvider({ zones: [ZONE], ...(options.capabilities && { capabilities: options.capabilities }) })
  const killSwitch = createKillSwitch()
  const store = options.store ?? memoryGuardStore()
  const engine = createEngine({
    providers: [memory],
    owner: OWNER,
    store,
    killSwitch,
    mode: 'enforce',
    types: ['A', 'AAAA', 'CNAME'],
    clock,
  })
  const held: Held[] = []
  const stopping = new AbortController()
  const running = runSyncLoop(
    {
      client: cluster.client,
      informer: cluster.informers.informer(DNSEndpoint),
      engine,
      killSwitch,
      defaultTtl: 300,
      rules: OPEN_RULES,
      isServed: () => true,
      log: cluster.log,
      clock,
      isWriting: true,
      store,
      onHeld: (item) => held.push(item),
      ...options,
    },
    stopping.signal,
  )
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
