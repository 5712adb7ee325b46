/**
 * The authoritative servers of a name: those of the configuration, the DNS server of this manager for its own zones, else
 * those of the NS records of the closest zone above the name.
 */
import { Resolver } from 'node:dns/promises'
import { FLAG, type Message, RCODE, type ServerAddress } from '@seamark/dns'

/** One server, with its addresses in the order in which they are tried. */
export interface NameServer {
  readonly name: string
  readonly addresses: readonly ServerAddress[]
}

/** Addresses of the DNS server of this process, when it has a zone for the name; else empty. */
export type OwnServers = (name: string) => readonly ServerAddress[]
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

/**
 * Whether an answer shows what the zone has. A referral to the servers of a zone below and the answer of a cache have no records of
 * the name, or old ones, and not the flag AA; a server that does not serve the zone answers with another code.
 */
export function isAuthoritative({ rcode, flags }: Pick<Message, 'rcode' | 'flags'>): boolean {
  return (flags & FLAG.AA) !== 0 && (rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN)
}

/** What is asked of the resolver of the machine. Rejects with a c-ares error code. */
export type SystemResolver = Pick<Resolver, 'resolveNs' | 'resolve4' | 'resolve6'>

/**
 * By the resolver of the machine. Empty: none was found, or it could not be asked for the NS records of a zone. Those of the zone
 * above would not show the records of the name. A server without a known address is listed all the same: it was not asked.
 */
export async function lookUpServers(
  name: string,
  system: SystemResolver = new Resolver(TIMEOUT),
): Promise<readonly NameServer[]> {
  const labels = name.replace(/\.$/, '').split('.')
  for (let index = labels[0] === '*' ? 1 : 0; index < labels.length - 1; index++) {
    const names = await unlessAbsent(system.resolveNs(labels.slice(index).join('.')))
    if (names === undefined) return []
    if (names.length > 0)
      return Promise.all(names.map(async (server) => ({ name: server, addresses: await addressesOf(system, server) })))
  }
  return []
}

/** Codes of a response that says that there is no such record. */
const ABSENT_CODES: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND'])

/** Empty: there are none. Undefined: the resolver did not answer, or could not. */
async function unlessAbsent(found: Promise<string[]>): Promise<readonly string[] | undefined> {
  try {
    return await found
  } catch (error) {
    return ABSENT_CODES.has((error as { code?: unknown }).code) ? [] : undefined
  }
}

async function addressesOf(system: SystemResolver, server: string): Promise<ServerAddress[]> {
  const found = await Promise.all([system.resolve4(server).catch(() => []), system.resolve6(server).catch(() => [])])
  return found.flat().map((address) => ({ address }))
}

/** Those that a DNS server knows; `resolver` is its address, empty: the servers of the machine. Remembered. */
export function serversByRecords(resolver: string, nowMs: () => number): FindServers {
  const system = new Resolver(TIMEOUT)
  if (resolver !== '') system.setServers([resolver])
  return rememberServers(async (name) => lookUpServers(name, system), nowMs)
}

/** Configured ones, else our own, else those of the NS records that `resolver` knows. */
export function findServersBy(
  {
    configured,
    ownServers,
    resolver,
  }: { readonly configured: readonly string[]; readonly ownServers: OwnServers; readonly resolver: string },
  nowMs: () => number,
): FindServers {
  const byRecords = serversByRecords(resolver, nowMs)
  const given = serversOf(configured)
  return async (name) => {
    if (given.length > 0) return given
    const own = ownServers(name)
    return own.length > 0 ? [{ name: 'the DNS server of this manager', addresses: own }] : byRecords(name)
  }
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
