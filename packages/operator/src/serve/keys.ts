/** The TSIG keys of the DNS server, read from where the configuration says. */
import { type Fqdn, fqdn, TsigKey } from '@seamark/dns'
import { ApiError, type Clock, type Logger, messageOf, poll, TransportError } from '@seamark/kube'
import { type ProviderDeps, readSecret } from '../providers/create-provider.ts'
import type { DnsConfig } from './config.ts'

type KeyConfig = DnsConfig['keys'][number]

/** Names of the keys with this right. */
export function keysAllowedTo(right: 'transfer' | 'update', { keys }: DnsConfig): Fqdn[] {
  return keys.filter(({ allow }) => allow.includes(right)).map(({ name }) => fqdn(name))
}

/** Undefined: it is in a Secret, and the API server cannot be asked now. Throws when it is not there. */
export async function readKey(
  { name, algorithm, secretFrom }: KeyConfig,
  deps: ProviderDeps,
): Promise<TsigKey | undefined> {
  try {
    return new TsigKey(name, algorithm, await readSecret(secretFrom, deps))
  } catch (error) {
    if (error instanceof TransportError || error instanceof ApiError) return undefined
    throw error
  }
}

const RETRY_MS = 5_000

/** Reads the keys that could not be read at the start. Settles when all are read, or when the signal aborts. */
export async function readLateKeys(
  late: readonly KeyConfig[],
  { deps, clock, log }: { readonly deps: ProviderDeps; readonly clock: Clock; readonly log: Logger },
  onKey: (key: TsigKey) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const config of late) {
    let why = ''
    const read = async () =>
      readKey(config, deps).catch((error: unknown) => {
        if (messageOf(error) !== why) log.warn({ key: config.name, error: messageOf(error) }, 'TSIG key cannot be read')
        why = messageOf(error)
        return undefined
      })
    const key = await poll(read, { clock, intervalMs: RETRY_MS, signal })
    if (key !== undefined) onKey(key)
  }
}
