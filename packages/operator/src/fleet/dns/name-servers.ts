/**
 * The authoritative servers of a name: those of the configuration, the DNS server of this manager for its own zones, else
 * those of the NS records of the closest zone above the name.
 */
import { Resolver } from 'node:dns/promises'
import type { ServerAddress } from '@seamark/dns'

/** One server, with its addresses in the order in which they are tried. */
export interface NameServer {
  readonly name: string
  readonly addresses: readonly ServerAddress[]
}

export type FindServers = (name: string) => Promise<readonly NameServer[]>

const TIMEOUT = { timeout: 2_000, tries: 2 }
/** How long the servers of a name are remembered, and that it has none. */
const KEPT_MS = 5 * 60_000
const NONE_KEPT_MS = 30_000

/** From `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`. */
export function serversOf(texts: readonly string[]): NameServer[] {
  return texts.map((text) => {
    const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text)
    const port = match?.[3]
    const address = match?.[1] ?? match?.[2] ?? text
    return { name: text, addresses: [{ address, ...(port !== undefined && { port: Number(port) }) }] }
  })
}

/** By the resolver of the machine. Empty: none was found. */
export async function lookUpServers(name: string): Promise<readonly NameServer[]> {
  const system = new Resolver(TIMEOUT)
  const labels = name.replace(/\.$/, '').split('.')
  for (let index = labels[0] === '*' ? 1 : 0; index < labels.length - 1; index++) {
    const names = await system.resolveNs(labels.slice(index).join('.')).catch(() => [])
    const servers = await Promise.all(
      names.map(async (server) => ({ name: server, addresses: await addressesOf(system, server) })),
    )
    const usable = servers.filter(({ addresses }) => addresses.length > 0)
    if (usable.length > 0) return usable
  }
  return []
}

async function addressesOf(system: Resolver, server: string): Promise<ServerAddress[]> {
  const found = await Promise.all([system.resolve4(server).catch(() => []), system.resolve6(server).catch(() => [])])
  return found.flat().map((address) => ({ address }))
}

/** Caches what was found, by name. */
export function rememberServers(find: FindServers, nowMs: () => number): FindServers {
  const known = new Map<string, { readonly servers: readonly NameServer[]; readonly untilMs: number }>()
  return async (name) => {
    const kept = known.get(name)
    if (kept !== undefined && nowMs() < kept.untilMs) return kept.servers
    const servers = await find(name)
    for (const [key, { untilMs }] of known) if (untilMs <= nowMs()) known.delete(key)
    known.set(name, { servers, untilMs: nowMs() + (servers.length > 0 ? KEPT_MS : NONE_KEPT_MS) })
    return servers
  }
}
