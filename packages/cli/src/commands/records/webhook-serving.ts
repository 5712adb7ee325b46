/**
 * `seamark provider webhook`: serves one of our providers to ExternalDNS by its webhook-provider protocol. ExternalDNS has
 * its own plan and registry; rate limit, circuit breaker, time-out and kill switch are ours.
 */
import { once } from 'node:events'
import { createLimiter, messageOf } from '@seamark/kube'
import {
  createKillSwitch,
  createProvider,
  createProviderCalls,
  type LoadedConfig,
  type Provider,
  parseServer,
  ProviderError,
  RecordsError,
  startWebhookServer,
} from '@seamark/operator'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { readConfig } from '../../flags/setting-flags.ts'
import { DEFAULT_NAMESPACE, openCluster } from '../../flags/kube-flags.ts'
import { applySwitches, readNames, type RecordsFlags } from './records-session.ts'

export interface WebhookFlags extends RecordsFlags {
  provider?: string
  listen: string
  host?: string[]
}

type ProviderConfig = LoadedConfig['config']['records']['providers'][number]

export async function serveWebhook(io: Io, flags: WebhookFlags & Record<string, unknown>): Promise<void> {
  const { config } = await readConfig(io, flags)
  const chosen = choose(config.records.providers, flags.provider)
  const isClusterNeeded = flags.kubeconfig !== undefined || flags.context !== undefined || chosen.type === 'dnsendpoint'
  const cluster =
    isClusterNeeded || JSON.stringify(chosen).includes('"secret":') ? await openCluster(io, flags) : undefined
  const killSwitch = createKillSwitch(...(config.pause ? ['configuration'] : []))
  const watching =
    cluster === undefined ? undefined : applySwitches(cluster, config.namespace || DEFAULT_NAMESPACE, killSwitch)
  const log = (error: unknown): void => void io.stderr.write(`${messageOf(error)}\n`)
  let provider: Provider | undefined
  try {
    await watching?.ready(io.signal)
    provider = await createProvider(chosen, { env: io.env, ...(cluster !== undefined && { client: cluster.client }) })
    const limiter = createLimiter({ perSecond: provider.capabilities.requestsPerSecond })
    const calls = createProviderCalls({ provider, limiter, killSwitch })
    const { zones } = config.records
    const server = await startWebhookServer({
      provider: {
        ...provider,
        zones: async (signal) => calls.zones(signal),
        read: async (zone, names, signal) => calls.read(zone, names, signal),
        apply: async (zone, batch, signal) => calls.apply(zone, batch, signal),
      },
      listen: parseListen(flags.listen),
      defaultTtl: config.records.defaultTtl,
      hosts: flags.host ?? [],
      onError: log,
      ...(zones.length > 0 && { zones: [...(readNames(zones) ?? [])] }),
    })
    io.stdout.write(`ready ${server.url}\n`)
    if (!io.signal.aborted) await once(io.signal, 'abort')
    await server.close()
  } catch (error) {
    if (error instanceof RecordsError) throw new CommandError(error.message, EXIT.usage, { cause: error })
    if (error instanceof ProviderError) throw new CommandError(`${error.code}: ${error.message}`, EXIT.error)
    throw error
  } finally {
    await provider?.close?.()
    await watching?.stop()
    await cluster?.close()
  }
}

function choose(providers: readonly ProviderConfig[], name: string | undefined): ProviderConfig {
  const known = providers.map((provider) => provider.name).join(', ') || 'none'
  const [first] = providers
  if (name === undefined && first !== undefined && providers.length === 1) return first
  const found = providers.find((provider) => provider.name === name)
  if (found !== undefined) return found
  const what = name === undefined ? 'name one of the providers with --provider' : `there is no provider '${name}'`
  throw new CommandError(`${what}; configured: ${known}`, EXIT.usage)
}

/** The protocol has no authentication: an address other than loopback must be given explicitly. */
function parseListen(text: string): { address: string; port: number } {
  const given = text.startsWith(':') ? `127.0.0.1${text}` : text.replace(/^localhost(?=:|$)/, '127.0.0.1')
  return /:\d+$/.test(given) ? parseServer(given) : { ...parseServer(given), port: DEFAULT_PORT }
}

/** ExternalDNS' default port. */
const DEFAULT_PORT = 8888
