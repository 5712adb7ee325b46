/** Addresses of the servers that the configuration names; a name is resolved to all its addresses, for instance a headless Service. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { ServerAddress } from '@seamark/dns'
import { parseHostAndPort } from './config.ts'

const DEFAULT_PORT = 53

/** Names that do not resolve now are given to `onError`; the others count. */
export async function resolveServers(
  servers: readonly string[],
  onError: (error: unknown) => void,
): Promise<ServerAddress[]> {
  const found = await Promise.all(
    servers.map(async (text): Promise<ServerAddress[]> => {
      const { host, port } = parseHostAndPort(text, DEFAULT_PORT) ?? { host: text, port: DEFAULT_PORT }
      if (isIP(host) !== 0) return [{ address: host, port }]
      try {
        return (await lookup(host, { all: true })).map(({ address }) => ({ address, port }))
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : String(cause)
        onError(new Error(`the DNS server ${host} cannot be resolved: ${why}`, { cause }))
        return []
      }
    }),
  )
  return found.flat()
}
