/**
 * What the DNS servers of a host answer now, for commands: the servers of the manager for its zones, else those that the
 * configuration or the NS records name.
 *
 * Guarantees: ends within two seconds; a server that gives no answer is a fault, never an empty answer; empty: no server is known
 * from here, for instance that of a Pod on another machine that listens on all addresses.
 */
import { Resolver } from 'node:dns/promises'
import { hostname } from 'node:os'
import { type DnsClient, type ServerAddress, serverText } from '@seamark/dns'
import { ADDRESS_TYPES, addressValues, askServer, type AuthoritativeClient } from '../authority/answers.ts'
import { lookUpServers, type NameServer, serversOf } from '../authority/name-servers.ts'
import type { ManagerLease } from '../process/manager-lease.ts'
import { type DnsConfig, parseHostAndPort, splitPair } from '../serve/config.ts'
import { LOOPBACK } from '../serve/own-servers.ts'
import type { AnswerFact } from './facts.ts'

export interface HostServersOptions {
  /** `fleet.dnsServers` */
  readonly configured: readonly string[]
  /** Of the manager. */
  readonly dns: Pick<DnsConfig, 'listen' | 'zones' | 'nameServers'>
  /** Of the manager; undefined: it may not be read. */
  readonly lease: Pick<ManagerLease, 'host' | 'dnsServers'> | undefined
  /** Servers to which records are written; asked where no NS record is found. */
  readonly primaries: (host: string) => readonly string[]
}

const LOOKUP_MS = 800
const ASK_MS = 1_000

export async function findHostAnswers(
  host: string,
  options: HostServersOptions,
  client: AuthoritativeClient & Pick<DnsClient, 'close'>,
  signal: AbortSignal,
): Promise<AnswerFact[]> {
  const { configured, dns, lease } = options
  if (configured.length > 0) return askAll(host, serversOf(configured), client, signal)
  const announced = (lease?.dnsServers ?? []).flatMap((text) => parseAddress(text) ?? [])
  if (isWithin(host, dns.zones)) {
    const listening = dns.listen.flatMap((text) => parseAddress(text) ?? [])
    const own = reachable([...listening, ...announced], lease)
    const known = own.length > 0 ? own : advertised(dns.nameServers)
    if (known.length > 0) return askAll(host, known, client, signal)
  } else {
    // Whether it has a zone of the host, only its answer shows.
    const found = await askAll(host, reachable(announced, lease), client, signal)
    const isForeign = found.every(({ fault }) => fault?.includes(NO_AUTHORITY) === true)
    if (!isForeign) return found
  }
  const resolver = new Resolver({ timeout: LOOKUP_MS / 2, tries: 1 })
  const listed = await within(LOOKUP_MS, lookUpServers(host, resolver), [])
  resolver.cancel()
  const reached = listed.filter(({ addresses }) => addresses.length > 0)
  return askAll(host, reached.length > 0 ? reached : serversOf(options.primaries(host)), client, signal)
}

/** In the words of askServer. */
const NO_AUTHORITY = 'without authority'

async function askAll(
  host: string,
  servers: readonly NameServer[],
  client: AuthoritativeClient,
  signal: AbortSignal,
): Promise<AnswerFact[]> {
  return Promise.all(servers.map(async (server) => askOne(host, server, client, signal)))
}

/** All addresses of a server at once: one that is not reachable from here, for instance of IPv6, takes no time of the others. */
async function askOne(
  host: string,
  { name, addresses }: NameServer,
  client: AuthoritativeClient,
  signal: AbortSignal,
): Promise<AnswerFact> {
  const question = { name: host, types: ADDRESS_TYPES, deadlineMs: ASK_MS }
  const asked = await Promise.all(
    addresses.map(async (address) => askServer(client, question, { name, addresses: [address] }, signal)),
  )
  const answered = asked.flatMap((each) => ('answers' in each ? [each.answers] : []))[0]
  if (answered !== undefined) {
    const own = answered.filter((record) => sameName(record.name, host))
    return { server: name, targets: [...new Set(addressValues(own))].sort() }
  }
  const why = asked.flatMap((each) => ('why' in each ? [each.why] : []))[0]
  return { server: name, targets: [], fault: why ?? 'it has no known address' }
}

function sameName(a: string, b: string): boolean {
  return a.replace(/\.$/, '').toLowerCase() === b.replace(/\.$/, '').toLowerCase()
}

/** Those that can be asked from here: all addresses of a process are asked by loopback where it runs on this machine. */
function reachable(addresses: readonly ServerAddress[], lease: HostServersOptions['lease']): NameServer[] {
  const isHere = lease === undefined || lease.host === '' || lease.host === hostname()
  const found = addresses.flatMap(({ address, port }): ServerAddress[] => {
    const loopback = LOOPBACK[address]
    if (port === 0 || (loopback !== undefined && !isHere)) return []
    return [{ address: loopback ?? address, ...(port !== undefined && { port }) }]
  })
  const byText = new Map(found.map((address) => [serverText(address), address]))
  return [...byText].map(([name, address]) => ({ name, addresses: [address] }))
}

/** `dns.nameServers`: NAME=ADDRESS. */
function advertised(nameServers: readonly string[]): NameServer[] {
  return nameServers
    .map(splitPair)
    .flatMap(({ name, value }) => (value === undefined ? [] : [{ name, addresses: [{ address: value }] }]))
}

function parseAddress(text: string): ServerAddress | undefined {
  const parsed = parseHostAndPort(text, 53)
  if (parsed === undefined) return undefined
  const { host, port } = parsed
  return { address: host === '' ? '0.0.0.0' : host === 'localhost' ? '127.0.0.1' : host, port }
}

/** `zones`: NAME or NAME=FILE. */
export function isWithin(host: string, zones: readonly string[]): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return zones
    .map((text) => splitPair(text).name.toLowerCase().replace(/\.$/, ''))
    .some((zone) => name === zone || name.endsWith(`.${zone}`))
}

async function within<T>(ms: number, wanted: Promise<T>, otherwise: T): Promise<T> {
  const timeout = AbortSignal.timeout(ms)
  const late = new Promise<T>((resolve) => {
    timeout.addEventListener('abort', () => resolve(otherwise), { once: true })
  })
  return Promise.race([wanted, late])
}
