/**
 * The zones of the manager's DNS server as they are stored, as a provider for commands: they read what the manager reads, and
 * only the manager writes.
 */
import { DnsError, FolderStore, fqdn, type Zone } from '@seamark/dns'
import type { Client } from '@seamark/kube'
import { embeddedProvider } from '../providers/embedded.ts'
import type { Provider } from '../providers/provider.ts'
import { ProviderError } from '../rrset/error.ts'
import type { DnsConfig } from './config.ts'
import { ConfigMapStore } from './config-map-store.ts'
import { EMBEDDED_PROVIDER } from './dns-service.ts'
import { configuredZones } from './stored-zones.ts'

export interface StoredZonesProviderOptions {
  readonly config: Pick<DnsConfig, 'zones' | 'dataDir'>
  readonly client: Client
  readonly namespace: string
}

export function storedZonesProvider(options: StoredZonesProviderOptions): Provider {
  const origins = [...configuredZones(options.config).keys()]
  const loaded = new Map<string, Zone>()
  const inner = embeddedProvider({
    name: EMBEDDED_PROVIDER,
    server: {
      *zones() {
        yield* loaded.values()
      },
      findZone: (origin) => loaded.get(origin),
      commit: async () => {
        throw new DnsError('STORE_WRITE', 'the zones of the DNS server are written by the manager that runs it')
      },
    },
  })
  return {
    ...inner,
    zones: async () => origins.map((origin) => ({ id: origin, name: origin })),
    async read(zone, names, signal) {
      loaded.set(zone.name, await loadStoredZone(zone.name, options))
      return inner.read(zone, names, signal)
    },
  }
}

/** Throws ProviderError when it is not stored, or cannot be read. */
export async function loadStoredZone(
  name: string,
  { config, client, namespace }: StoredZonesProviderOptions,
): Promise<Zone> {
  const origin = fqdn(name)
  const store =
    config.dataDir === ''
      ? new ConfigMapStore({ client, namespace, origin, isWriting: () => false })
      : new FolderStore({ folder: config.dataDir, origin })
  const where = config.dataDir === '' ? `in ConfigMaps of namespace ${namespace}` : `in dns.dataDir ${config.dataDir}`
  const stored = await store.load().catch((cause: unknown) => {
    if (!(cause instanceof DnsError)) throw cause
    throw new ProviderError('ZoneNotFound', 'later', `zone ${name} ${where} cannot be read: ${cause.message}`, {
      cause,
    })
  })
  if (stored === undefined)
    throw new ProviderError('ZoneNotFound', 'later', `zone ${name} is not stored ${where}; has a manager run with it?`)
  return stored.zone
}
