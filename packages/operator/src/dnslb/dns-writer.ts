/**
 * The DNS side of `seamark dnslb`: the registry of providers, an engine for each of them, the publisher, and the providers
 * that the environment configures.
 */
import { messageOf } from '@seamark/kube'
import { createProviderPublisher, type ProviderPublisher } from '../balance/provider/provider-publisher.ts'
import { ProviderRegistry, type RegisteredProvider } from '../balance/provider/provider-registry.ts'
import type { RecordNotice } from '../balance/provider/record-notice.ts'
import { createKillSwitch } from '../process/kill-switch.ts'
import { ORIGINAL_CLUSTER, ORIGINAL_TYPES, ownerIdOf, withOriginalOwnership } from '../providers/original-ownership.ts'
import type { Provider } from '../providers/provider.ts'
import { createEngine, type Engine } from '../records/engine.ts'
import type { GuardStore } from '../records/state/guard-state.ts'
import type { DnsOptions } from './options.ts'

export interface DnsWriterOptions extends DnsOptions {
  readonly store: GuardStore
  readonly claimedNames: (signal: AbortSignal) => Promise<ReadonlySet<string> | undefined>
  readonly knownNames?: () => ReadonlySet<string>
  readonly isReady: () => boolean
  /** A record was deleted, or another installation uses our identity. */
  readonly onNotice?: (notice: RecordNotice) => void
}

export interface DnsWriter {
  readonly registry: ProviderRegistry
  readonly publisher: ProviderPublisher
  readonly engineOf: (provider: Provider) => Engine
  readonly cleanUp: (provider: RegisteredProvider, signal: AbortSignal) => Promise<boolean>
  /** Has every load balancer decided again. */
  readonly wake: () => void
}

export async function createDnsWriter(options: DnsWriterOptions): Promise<DnsWriter> {
  const { identity, defaults, clock, log, isDryRun } = options
  const registry = new ProviderRegistry()
  const listeners = new Set<(keys?: readonly string[]) => void>()
  const base = createProviderPublisher({
    registry,
    identity,
    defaults,
    clock,
    log,
    isDryRun,
    claimedNames: options.claimedNames,
    ...(options.knownNames !== undefined && { knownNames: options.knownNames }),
    ...(options.onNotice !== undefined && { onNotice: options.onNotice }),
    onDrift(keys) {
      for (const listener of listeners) listener(keys)
    },
  })
  const publisher: ProviderPublisher = {
    ...base,
    isReady: options.isReady,
    subscribe(listener) {
      const unsubscribe = registry.subscribe(() => listener())
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
        unsubscribe()
      }
    },
  }
  const killSwitch = createKillSwitch()
  const engineOf = (provider: Provider): Engine =>
    createEngine({
      providers: [withOriginalOwnership(provider, { identity, cnamesOf: (name) => base.cnamesOf(name) })],
      owner: { id: ownerIdOf(identity), cluster: ORIGINAL_CLUSTER },
      store: options.store,
      killSwitch,
      mode: 'enforce',
      types: ORIGINAL_TYPES,
      clock,
    })
  for (const provider of [...(options.extraProviders ?? []), ...(await staticProviders(options))]) {
    const engine = engineOf(provider)
    const { targets, unread } = await engine.targets(new AbortController().signal)
    for (const { why } of unread) log.error({ provider: provider.name, why }, 'zones of a provider cannot be listed')
    const zones = targets.map(({ zone }) => zone.name)
    registry.register({
      name: provider.name,
      scope: { type: 'Cluster' },
      zones,
      age: { ...OLDEST, name: provider.name },
      engine,
    })
  }
  return {
    registry,
    publisher,
    engineOf,
    cleanUp: async (provider, signal) => base.removeAll(provider, signal),
    wake() {
      for (const listener of listeners) listener()
    },
  }
}

/** `default-<type>`, from environment variables with the names of the Secret's keys; one that fails is reported and skipped. */
async function staticProviders({ providers, types, env, log }: DnsWriterOptions): Promise<Provider[]> {
  const created: Provider[] = []
  const values = Object.fromEntries(
    Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  )
  for (const type of providers.staticTypes) {
    try {
      const provider = await types.create(type, `default-${type}`, values)
      if (provider === undefined) log.error({ type }, `ignoring invalid provider type '${type}'`)
      else created.push(provider)
    } catch (error) {
      log.error({ type, error: messageOf(error) }, 'cannot create default provider')
    }
  }
  return created
}

/** Providers of the environment have no object: older than every DNSProvider. */
const OLDEST = { createdAt: '0', namespace: '', kind: '' }
