/**
 * RRsets in memory: for tests and the playground, and as the simplest example of a provider.
 * Atomic, with compare-and-swap; it counts its calls, so that a test can assert how much was read and written.
 */
import { checkBatch } from '../rrset/dns-limits.ts'
import { ProviderError } from '../rrset/error.ts'
import { compareSets, isWithin, type ObservedRRset, printSet, type RRset, sameSet, setKey } from '../rrset/rrset.ts'
import type { SetChange } from '../rrset/set-change.ts'
import type { Capabilities, Provider, ProviderZone } from './provider.ts'

export interface MemoryProvider extends Provider {
  readonly counts: { reads: number; readSets: number; writes: number }
  /** Everything in a zone, in canonical order. */
  dump(zone: string): readonly ObservedRRset[]
  /** A change by another program, which bypasses all guards. */
  put(zone: string, set: ObservedRRset): void
  remove(zone: string, name: string, type: string): void
}

export interface MemoryOptions {
  readonly name?: string
  readonly zones: readonly (string | ProviderZone)[]
  readonly capabilities?: Partial<Capabilities>
}

interface ZoneTable {
  readonly zone: ProviderZone
  /** The sets of one name, one per type. */
  readonly byName: Map<string, ObservedRRset[]>
}

export function memoryProvider(options: MemoryOptions): MemoryProvider {
  const tables = new Map<string, ZoneTable>()
  for (const item of options.zones) {
    const zone = typeof item === 'string' ? { id: item, name: item } : item
    tables.set(zone.id, { zone, byName: new Map() })
  }
  const counts = { reads: 0, readSets: 0, writes: 0 }
  const capabilities: Capabilities = {
    isAtomic: true,
    comparesAndSwaps: true,
    readsByName: true,
    maxChanges: 1000,
    requestsPerSecond: 10_000,
    ...options.capabilities,
  }
  const get = (id: string): ZoneTable => {
    const table = tables.get(id)
    if (table === undefined) throw new ProviderError('ZoneNotFound', 'later', `there is no zone ${id}`)
    return table
  }
  const put = (id: string, set: ObservedRRset): void => {
    const { byName } = get(id)
    const sets = byName.get(set.name)
    if (sets === undefined) {
      byName.set(set.name, [set])
      return
    }
    const at = sets.findIndex(({ type }) => type === set.type)
    sets[at < 0 ? sets.length : at] = set
  }
  const remove = (id: string, name: string, type: string): void => {
    const { byName } = get(id)
    const left = (byName.get(name) ?? []).filter((set) => set.type !== type)
    if (left.length > 0) byName.set(name, left)
    else byName.delete(name)
  }
  const find = (table: ZoneTable, { name, type }: RRset): ObservedRRset | undefined =>
    table.byName.get(name)?.find((set) => set.type === type)

  return {
    name: options.name ?? 'memory',
    account: options.name ?? 'memory',
    capabilities,
    counts,
    put,
    remove,
    dump: (id) => [...get(id).byName.values()].flat().sort(compareSets),
    zones: async () => [...tables.values()].map(({ zone }) => zone),
    async read(zone, names) {
      const { byName } = get(zone.id)
      const found: ObservedRRset[] = []
      if (names === 'all') for (const sets of byName.values()) found.push(...sets)
      else for (const name of names) found.push(...(byName.get(name) ?? []))
      counts.reads++
      counts.readSets += found.length
      return found
    },
    async apply(zone, batch) {
      const table = get(zone.id)
      checkBatch(batch)
      for (const change of batch) check(table, change, find)
      counts.writes++
      // Deletes first: a CNAME may replace an address in the same batch.
      for (const { from, to } of batch)
        if (from !== undefined && to === undefined) remove(zone.id, from.name, from.type)
      for (const { to } of batch) if (to !== undefined) put(zone.id, to)
    },
  }
}

function check(
  table: ZoneTable,
  { from, to }: SetChange,
  find: (table: ZoneTable, set: RRset) => ObservedRRset | undefined,
): void {
  const subject = to ?? from
  if (subject === undefined) return
  if (!isWithin(subject.name, table.zone.name)) {
    throw new ProviderError('RecordRejected', 'rejected', `${setKey(subject)} is not in zone ${table.zone.name}`)
  }
  if (to !== undefined && to.values.length === 0) {
    throw new ProviderError('RecordRejected', 'rejected', `${setKey(to)} has no value`)
  }
  const present = find(table, subject)
  if (!sameSet(present, from)) {
    const there = present === undefined ? 'nothing' : printSet(present)
    throw new ProviderError('BaseMoved', 'moved', `${setKey(subject)}: the zone holds ${there}`)
  }
}
