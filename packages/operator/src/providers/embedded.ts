/**
 * The embedded authoritative server as a provider: the zone is a value in this process and replaced as a whole, so a batch
 * is atomic, compare-and-swap is exact, and changes are served immediately. With `commit` (a ZoneKeeper) a batch is durable
 * before it is served and acknowledged.
 */
import { DnsError, type DnsServer, type Fqdn, fqdn, type Zone, type ZoneChange, type ZoneKeeper } from '@seamark/dns'
import { POLICY_SET_TYPE } from '../rrset/answer-policy.ts'
import { ProviderError, rejected } from '../rrset/error.ts'
import { fromDns, type ObservedRRset, printSet, sameSet, setKey } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'
import type { Provider, ProviderZone } from './provider.ts'

export interface EmbeddedOptions {
  readonly name?: string
  readonly server: Pick<DnsServer, 'zones' | 'findZone' | 'swap'> | Pick<ZoneKeeper, 'zones' | 'findZone' | 'commit'>
}

/** The types that are looked up when only some names are read. */
const TYPES = [
  'A',
  'AAAA',
  'CNAME',
  'TXT',
  'MX',
  'SRV',
  'NS',
  'PTR',
  'CAA',
  'SOA',
  'DNAME',
  'NAPTR',
  'TLSA',
  'SVCB',
  'HTTPS',
  POLICY_SET_TYPE,
] as const

export function embeddedProvider(options: EmbeddedOptions): Provider {
  const { server, name = 'embedded' } = options
  const get = (zone: ProviderZone): Zone => {
    const found = server.findZone(fqdn(zone.name))
    if (found === undefined) throw new ProviderError('ZoneNotFound', 'later', `the server does not serve ${zone.name}`)
    return found
  }
  return {
    name,
    account: name,
    capabilities: {
      isAtomic: true,
      comparesAndSwaps: true,
      readsByName: true,
      answersByPolicy: true,
      readsServer: true,
      maxChanges: 10_000,
      // In this process: there is no service to protect, and a wait would be part of every failover.
      requestsPerSecond: Number.POSITIVE_INFINITY,
    },
    zones: async () => [...server.zones()].map(({ origin }) => ({ id: origin, name: origin })),
    async read(zone, names) {
      const found = get(zone)
      if (names === 'all') return Array.from(found.sets(), fromDns)
      const sets: ObservedRRset[] = []
      for (const text of names) {
        const at = nameIn(text)
        if (at === undefined || !found.hasName(at)) continue
        for (const type of TYPES) {
          const set = found.find(at, type)
          if (set !== undefined) sets.push(fromDns(set))
        }
      }
      return sets
    },
    async apply(zone, batch) {
      const { origin } = get(zone)
      try {
        const changes = [...batch]
          .sort((a, b) => Number(a.to !== undefined) - Number(b.to !== undefined))
          .flatMap(toZoneChange)
        const change = (found: Zone, serial?: number): Zone => {
          for (const item of batch) compare(found, item)
          return found.with(changes, serial)
        }
        if ('commit' in server) await server.commit(origin, change)
        else server.swap(change(get(zone)))
      } catch (cause) {
        if (!(cause instanceof DnsError)) throw cause
        if (cause.code.startsWith('STORE_')) throw new ProviderError('ZoneNotStored', 'later', cause.message, { cause })
        throw rejected(cause)
      }
    },
  }
}

/** Undefined: no name of DNS, so that no zone has it. */
function nameIn(text: string): Fqdn | undefined {
  try {
    return fqdn(text)
  } catch (error) {
    if (error instanceof DnsError) return undefined
    throw error
  }
}

function compare(zone: Zone, { from, to }: SetChange): void {
  const subject = to ?? from
  if (subject === undefined) return
  const found = zone.find(fqdn(subject.name), subject.type)
  const present = found === undefined ? undefined : fromDns(found)
  if (sameSet(present, from)) return
  const there = present === undefined ? 'nothing' : printSet(present)
  throw new ProviderError('BaseMoved', 'moved', `${setKey(subject)}: the zone holds ${there}`)
}

function toZoneChange({ from, to }: SetChange): ZoneChange[] {
  if (to !== undefined) return [{ kind: 'put', set: { ...to, name: fqdn(to.name) } }]
  return from === undefined ? [] : [{ kind: 'delete', name: fqdn(from.name), type: from.type }]
}
