/**
 * Dynamic updates (RFC 2136), for BIND, Knot, PowerDNS and other servers. One batch is one message, so it is atomic; each
 * `from` becomes a prerequisite, so the server compares before it writes (INV-12).
 *
 * Reading needs AXFR, because queries cannot distinguish a record from a wildcard answer. The zone is cached with its
 * serial: a read queries the SOA first, and transfers the zone only when the serial is not the expected one.
 * A refused transfer is an error with a reason code; it is never treated as an empty zone.
 */
import {
  createDnsClient,
  type DnsClient,
  DnsError,
  type Fqdn,
  fqdn,
  type Prerequisite,
  RCODE,
  rcodeName,
  type ServerAddress,
  TsigKey,
  type UpdateOperation,
} from '@seamark/dns'
import { octetsOf } from '../rrset/dns-limits.ts'
import { ProviderError, rejected } from '../rrset/error.ts'
import { fromDns, type ObservedRRset } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'
import type { Provider, ProviderZone, Turn } from './provider.ts'

export interface Rfc2136Options {
  readonly name: string
  readonly server: ServerAddress
  readonly key?: TsigKey
  /** The server to transfer from, when it differs from the server that accepts updates. */
  readonly transfer?: { readonly server?: ServerAddress; readonly key?: TsigKey }
  /** Required, because the protocol cannot list the zones of a server. */
  readonly zones: readonly string[]
  /** @default 15 s */
  readonly timeoutMs?: number
  /** @default 50 */
  readonly requestsPerSecond?: number
}

interface ZoneCache {
  readonly serial: number
  readonly byName: Map<string, ObservedRRset[]>
}

/** A message has at most 65535 octets; a name, a marker and their prerequisites need less than 700. */
const MAX_CHANGES = 80
/** Of the sets of one batch, with their prerequisites; the rest is for the names. */
const MAX_BATCH_OCTETS = 48_000

export function rfc2136Provider(options: Rfc2136Options): Provider {
  const { server, key, timeoutMs = 15_000 } = options
  const source = { server: options.transfer?.server ?? server, key: options.transfer?.key ?? key }
  const reading = createDnsClient({ timeoutMs: Math.min(timeoutMs, 3000) })
  // An update is sent once: whether it was applied is determined by reading, not by sending it again.
  const updating = createDnsClient({ timeoutMs, tries: 1 })
  const caches = new Map<string, ZoneCache>()
  const zones = options.zones.map((name): ProviderZone => ({ id: fqdn(name), name: fqdn(name) }))
  const keyed = (which: TsigKey | undefined) => (which === undefined ? {} : { key: which })

  const get = (zone: ProviderZone): Fqdn => {
    if (!zones.some(({ name }) => name === zone.name)) {
      throw new ProviderError(
        'ZoneNotFound',
        'later',
        `${zone.name} is not among the zones configured for ${options.name}`,
      )
    }
    return fqdn(zone.name)
  }
  const askSerial = async (zone: Fqdn, signal: AbortSignal): Promise<number> => {
    const reply = await reading.query({
      ...source,
      ...keyed(source.key),
      name: zone,
      type: 'SOA',
      signal,
    } as Parameters<DnsClient['query']>[0])
    const soa = reply.message.answers.find(({ type }) => type === 6)
    if (soa === undefined) throw refusedRead(zone, reply.message.rcode)
    // The serial precedes the last four numbers (RFC 1035 §3.3.13).
    return Buffer.from(soa.data).readUInt32BE(soa.data.length - 20)
  }
  const transfer = async (zone: Fqdn, signal: AbortSignal): Promise<ZoneCache> => {
    const records = await reading.transferRRsets({ server: source.server, zone, ...keyed(source.key), signal })
    const byName = new Map<string, ObservedRRset[]>()
    for (const set of records) putSet(byName, fromDns(set))
    const serial = Number(records.find(({ type, name }) => type === 'SOA' && name === zone)?.values[0]?.split(' ')[2])
    return { serial, byName }
  }
  const refresh = async (zone: Fqdn, signal: AbortSignal, turn: Turn | undefined): Promise<ZoneCache> => {
    const known = caches.get(zone)
    if (known !== undefined) {
      if ((await askSerial(zone, signal)) === known.serial) return known
      await turn?.()
    }
    const fresh = await transfer(zone, signal)
    caches.set(zone, fresh)
    return fresh
  }

  return {
    name: options.name,
    account: `${server.address}:${server.port ?? 53}`,
    capabilities: {
      isAtomic: true,
      comparesAndSwaps: true,
      readsByName: false,
      readsServer: true,
      maxChanges: MAX_CHANGES,
      requestsPerSecond: options.requestsPerSecond ?? 50,
    },
    zones: async () => zones,
    // Two large sets would otherwise be refused together, and cost a bisection.
    fits: (batch) =>
      batch
        .flatMap(({ from, to }) => [from, to])
        .reduce((sum, set) => sum + (set === undefined ? 0 : octetsOf(set)), 0) <= MAX_BATCH_OCTETS,
    async read(zone, names, signal, turn) {
      const origin = get(zone)
      try {
        const { byName } = await refresh(origin, signal, turn)
        return names === 'all' ? [...byName.values()].flat() : [...names].flatMap((name) => byName.get(name) ?? [])
      } catch (cause) {
        throw readFailure(origin, cause)
      }
    },
    async verify(zone, signal) {
      const origin = get(zone)
      const empty = { zone: origin, server, ...keyed(key), operations: [], transport: 'tcp' as const, signal }
      const rcode = await updating.update(empty).then(
        ({ message }) => message.rcode,
        (cause: unknown) => {
          throw writeFailure(origin, cause)
        },
      )
      if (rcode !== RCODE.NOERROR) throw writeRefusal(origin, rcode)
    },
    async apply(zone, batch, signal) {
      const origin = get(zone)
      const before = caches.get(origin)
      caches.delete(origin)
      let rcode: number
      try {
        const update = {
          zone: origin,
          server,
          ...keyed(key),
          prerequisites: batch.flatMap(prerequisiteOf),
          // Deletes first: an address beside a CNAME is ignored, not refused (RFC 2136 §3.4.2.2).
          operations: [...batch.flatMap(removalOf), ...batch.flatMap(additionOf)],
          transport: 'tcp' as const,
          signal,
        }
        rcode = (await updating.update(update)).message.rcode
      } catch (cause) {
        const failure = writeFailure(origin, cause)
        // Nothing was sent: the next read needs no transfer.
        if (failure.outcome === 'rejected' && before !== undefined) caches.set(origin, before)
        throw failure
      }
      // A server has undone what it answers with SERVFAIL (RFC 2136 §3.4.2.7), which some do for a set that is too large.
      if (rcode === RCODE.REFUSED || rcode === RCODE.SERVFAIL)
        await explainRefusal(updating, {
          zone: origin,
          server,
          ...keyed(key),
          operations: [],
          transport: 'tcp',
          signal,
        })
      if (rcode !== RCODE.NOERROR) throw writeRefusal(origin, rcode)
      // If ours was the only change, the serial increased by one: the next read checks it, and transfers when it did not.
      if (before !== undefined) {
        merge(before.byName, batch)
        caches.set(origin, { serial: before.serial + 1, byName: before.byName })
      }
    },
    async close() {
      await Promise.all([reading.close(), updating.close()])
    },
  }
}

/** Distinguishes a refused key, or a server that fails, from a refused record by an update without operations (RFC 2136 §3.3). */
async function explainRefusal(client: DnsClient, empty: Parameters<DnsClient['update']>[0]): Promise<void> {
  const rcode = await client.update(empty).then(
    (reply) => reply.message.rcode,
    () => RCODE.REFUSED,
  )
  if (rcode === RCODE.NOERROR) {
    throw new ProviderError(
      'RecordRejected',
      'rejected',
      `${empty.zone}: the server refuses one of these records: its policy, or a limit of its configuration`,
    )
  }
}

function merge(byName: Map<string, ObservedRRset[]>, batch: readonly SetChange[]): void {
  for (const { from, to } of batch) {
    if (from !== undefined) removeSet(byName, from)
    if (to !== undefined) putSet(byName, to)
  }
}

/** The list of a name is replaced, never modified: readers hold references to it. */
function putSet(byName: Map<string, ObservedRRset[]>, set: ObservedRRset): void {
  const others = byName.get(set.name)
  byName.set(set.name, others === undefined ? [set] : [...others, set])
}

function removeSet(byName: Map<string, ObservedRRset[]>, { name, type }: ObservedRRset): void {
  const left = (byName.get(name) ?? []).filter((set) => set.type !== type)
  if (left.length > 0) byName.set(name, left)
  else byName.delete(name)
}

function prerequisiteOf({ from, to }: SetChange): Prerequisite[] {
  if (from !== undefined) return [{ kind: 'set-equals', name: fqdn(from.name), type: from.type, values: from.values }]
  return to === undefined ? [] : [{ kind: 'set-absent', name: fqdn(to.name), type: to.type }]
}

function removalOf({ from }: SetChange): UpdateOperation[] {
  return from === undefined ? [] : [{ kind: 'delete-set', name: fqdn(from.name), type: from.type }]
}

function additionOf({ to }: SetChange): UpdateOperation[] {
  return to === undefined ? [] : [{ kind: 'add', set: { ...to, name: fqdn(to.name) } }]
}

function refusedRead(zone: string, rcode: number): ProviderError {
  if (rcode === RCODE.REFUSED || rcode === RCODE.NOTAUTH) {
    return new ProviderError(
      'TransferRefused',
      'later',
      `${zone}: the server answers ${rcodeName(rcode)} to the zone transfer; allow AXFR for this key on the server`,
    )
  }
  return new ProviderError('ZoneNotFound', 'later', `${zone}: the server says ${rcodeName(rcode)} and gives no SOA`)
}

function readFailure(zone: string, cause: unknown): ProviderError {
  if (cause instanceof ProviderError) return cause
  if (!(cause instanceof DnsError))
    return new ProviderError('ProviderUnavailable', 'later', `${zone}: ${String(cause)}`, { cause })
  if (cause.code === 'TRANSFER' || cause.code === 'RCODE')
    return new ProviderError('TransferRefused', 'later', `${zone}: ${cause.message}`, { cause })
  if (cause.code.startsWith('TSIG'))
    return new ProviderError('CredentialsInvalid', 'later', `${zone}: ${cause.message}`, { cause })
  return new ProviderError('ProviderUnavailable', 'later', `${zone}: ${cause.message}`, { cause })
}

function writeFailure(zone: string, cause: unknown): ProviderError {
  if (!(cause instanceof DnsError))
    return new ProviderError('OutcomeUnknown', 'unknown', `${zone}: ${String(cause)}`, { cause })
  switch (cause.code) {
    case 'BAD_NAME':
    case 'BAD_RDATA':
    case 'BAD_TYPE':
    case 'BAD_ADDRESS':
    case 'TOO_LARGE':
      return rejected(cause, zone)
    case 'TSIG_BAD_KEY':
    case 'TSIG_BAD_SIG':
    case 'TSIG_BAD_TIME':
    case 'TSIG_BAD_TRUNC':
    case 'BAD_KEY':
      return new ProviderError('CredentialsInvalid', 'later', `${zone}: ${cause.message}`, { cause })
    case 'BAD_ZONE':
    case 'MALFORMED':
    case 'TIMEOUT':
    case 'NETWORK':
    case 'ABORTED':
    case 'RCODE':
    case 'TRANSFER':
    case 'TSIG_MISSING':
    case 'STORE_CORRUPT':
    case 'STORE_VERSION':
    case 'STORE_WRITE':
    case 'STORE_TAKEN':
      return new ProviderError('OutcomeUnknown', 'unknown', `${zone}: ${cause.message}`, { cause })
  }
}

function writeRefusal(zone: string, rcode: number): ProviderError {
  const says = `${zone}: the server says ${rcodeName(rcode)}`
  switch (rcode) {
    case RCODE.NXRRSET:
    case RCODE.YXRRSET:
    case RCODE.NXDOMAIN:
    case RCODE.YXDOMAIN:
      return new ProviderError('BaseMoved', 'moved', `${says}: the zone does not hold what was expected`)
    case RCODE.FORMERR:
    case RCODE.NOTZONE:
      return new ProviderError('RecordRejected', 'rejected', says)
    case RCODE.REFUSED:
      return new ProviderError('PermissionDenied', 'later', `${says}; may this key update the zone?`)
    case RCODE.NOTAUTH:
      return new ProviderError(
        'ZoneNotFound',
        'later',
        `${says}; check that the server is primary for the zone and has the key`,
      )
    default:
      return new ProviderError('ProviderUnavailable', 'unknown', says)
  }
}
