/** Creates a running engine from the configuration: providers with their secrets, the owner, the registry, the guard store. */
import { type Client, type Clock, Namespace } from '@seamark/kube'
import { canonicalZones, createProvider, type ProviderDeps, readSecret } from '../providers/create-provider.ts'
import { deferredProvider } from '../providers/deferred.ts'
import type { Provider } from '../providers/provider.ts'
import type { RecordsConfig } from './config.ts'
import { createEngine, type Engine } from './engine.ts'
import { RecordsError } from '../rrset/error.ts'
import {
  checkRegistryKind,
  checkRegistryOptions,
  parseAesKey,
  type RegistryOptions,
} from '../rrset/external-dns-registry.ts'
import type { GuardStore } from './state/guard-state.ts'
import type { KillSwitch } from '../process/kill-switch.ts'
import type { MassLimits } from '../safety/mass-limits.ts'
import { DEFAULT_LIMITS } from './plan/limits.ts'
import type { Owner } from './plan/ownership.ts'
import type { PlanStore } from './stores/plan-store.ts'
import type { CallObserver } from './execute/provider-calls.ts'
import { isInvalid } from '../rrset/rrset.ts'

export interface OpenEngineOptions {
  readonly config: RecordsConfig
  readonly mode: 'enforce' | 'observe'
  readonly env: ProviderDeps['env']
  readonly client?: Client
  readonly store: GuardStore
  readonly plans?: PlanStore
  /** @default DEFAULT_LIMITS */
  readonly massLimits?: MassLimits
  readonly observer?: CallObserver
  readonly killSwitch: KillSwitch
  /** A provider that cannot be created yet is retried later, instead of failing here. @default false */
  readonly retriesUnavailable?: boolean
  /** Additional providers, for instance the embedded server of this process. */
  readonly providers?: readonly Provider[]
  readonly clock?: Clock
  /** In [0, 1). @default Math.random */
  readonly random?: () => number
}

export interface OpenedEngine {
  readonly engine: Engine
  readonly owner: Owner
  readonly registry: RegistryOptions | undefined
}

export async function openEngine(options: OpenEngineOptions): Promise<OpenedEngine> {
  const { config, env, client } = options
  const deps: ProviderDeps = { env, ...(client !== undefined && { client }) }
  const owner = await ownerOf(config, deps)
  const registry = await registryOf(config, deps)
  const providers = [...(options.providers ?? [])]
  for (const provider of config.providers) {
    const create = async (): Promise<Provider> => createProvider(provider, deps)
    providers.push(options.retriesUnavailable === true ? await createOrDefer(provider.name, create) : await create())
  }
  const engine = createEngine({
    providers,
    owner,
    store: options.store,
    killSwitch: options.killSwitch,
    mode: options.mode,
    types: config.types,
    ...(options.massLimits !== undefined && { limits: { ...DEFAULT_LIMITS, mass: options.massLimits } }),
    ...(config.zones.length > 0 && { zones: new Set(canonicalZones(config.zones)) }),
    ...(options.plans !== undefined && { plans: options.plans }),
    ...(options.observer !== undefined && { observer: options.observer }),
    ...(registry !== undefined && { registry }),
    ...(options.clock !== undefined && { clock: options.clock }),
    ...(options.random !== undefined && { random: options.random }),
  })
  return { engine, owner, registry }
}

/** Configuration errors fail at once; a missing Secret or an unavailable service is retried. */
async function createOrDefer(name: string, create: () => Promise<Provider>): Promise<Provider> {
  try {
    return await create()
  } catch (error) {
    if (error instanceof RecordsError) throw error
    return deferredProvider(name, create)
  }
}

async function ownerOf(config: RecordsConfig, deps: ProviderDeps): Promise<Owner> {
  if (config.owner === '') {
    throw new RecordsError(
      'CONFIG_INVALID',
      'records.owner is required: it distinguishes the records of this installation from those of others, and has no default',
    )
  }
  const key =
    config.markerKeyFrom === undefined ? {} : { key: Buffer.from(await readSecret(config.markerKeyFrom, deps)) }
  return { id: config.owner, cluster: await clusterOf(config, deps.client), ...key }
}

async function clusterOf(config: RecordsConfig, client: Client | undefined): Promise<string> {
  if (config.cluster !== '') return config.cluster
  if (client === undefined) {
    throw new RecordsError(
      'CONFIG_INVALID',
      'records.cluster is required without a cluster: the UID of its namespace kube-system',
    )
  }
  const { metadata } = await client.get(Namespace, 'kube-system')
  if (metadata.uid === undefined)
    throw new RecordsError('CONFIG_INVALID', 'the namespace kube-system has no UID; set records.cluster')
  return metadata.uid
}

async function registryOf(config: RecordsConfig, deps: ProviderDeps): Promise<RegistryOptions | undefined> {
  const { kind, prefix, suffix, wildcardReplacement, aesKeyFrom, dnslbIdentity } = config.registry
  const unknown = checkRegistryKind(kind)
  if (unknown !== undefined) throw new RecordsError('CONFIG_INVALID', `records.registry.kind: ${unknown.invalid}`)
  if (kind === 'none' && dnslbIdentity !== '')
    throw new RecordsError('CONFIG_INVALID', 'records.registry.dnslbIdentity needs records.registry.kind: txt')
  if (kind === 'none') return undefined
  const aesKey = aesKeyFrom === undefined ? undefined : parseAesKey(await readSecret(aesKeyFrom, deps))
  if (isInvalid(aesKey)) throw new RecordsError('CONFIG_INVALID', `records.registry.aesKeyFrom: ${aesKey.invalid}`)
  const registry: RegistryOptions = {
    prefix,
    suffix,
    wildcardReplacement,
    ...(aesKey !== undefined && { aesKey }),
    ...(dnslbIdentity !== '' && { dnslbIdentity }),
  }
  const wrong = checkRegistryOptions(registry)
  if (wrong !== undefined) throw new RecordsError('CONFIG_INVALID', `records.registry: ${wrong.invalid}`)
  return registry
}
