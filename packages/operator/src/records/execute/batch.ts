/**
 * Packs changes into batches: groups that must not be split, in plan order, up to the limits of the provider; and
 * bisects a refused batch to find the record that the service refuses.
 */
import type { Provider } from '../../providers/provider.ts'
import type { Change } from '../plan/plan.ts'
import type { SetChange } from '../../rrset/set-change.ts'

/** Changes of one name that are sent in the same batch. */
export interface Group {
  readonly name: string
  readonly changes: readonly Change[]
  readonly writes: readonly SetChange[]
}

/** Groups in the order of their first change; a record and its marker are always in the same group (INV-10). */
export function groupChanges(changes: readonly Change[], writesOf: (change: Change) => readonly SetChange[]): Group[] {
  const groups = new Map<string, { name: string; changes: Change[]; writes: SetChange[] }>()
  for (const change of changes) {
    let group = groups.get(change.group)
    if (group === undefined) {
      group = { name: change.group, changes: [], writes: [] }
      groups.set(change.group, group)
    }
    group.changes.push(change)
    group.writes.push(...writesOf(change))
  }
  return [...groups.values()]
}

/**
 * Every set that a change writes, in an order that is safe where a provider has no transactions: the marker is written
 * first and deleted last, so a record is never without its marker.
 */
export function orderedWrites(change: Change): SetChange[] {
  const { from, to, markers } = change
  const isEmpty = from === undefined && to === undefined
  if (isEmpty) return [...markers]
  return to === undefined ? [{ from, to }, ...markers] : [...markers.toReversed(), { from, to }]
}

export function packGroups(groups: readonly Group[], provider: Pick<Provider, 'capabilities' | 'fits'>): Group[][] {
  const { isAtomic, maxChanges } = provider.capabilities
  const batches: Group[][] = []
  let batch: Group[] = []
  let size = 0
  for (const group of groups) {
    const isFull = !isAtomic || size + group.writes.length > maxChanges || !isFitting(provider, batch, group)
    if (batch.length > 0 && isFull) {
      batches.push(batch)
      batch = []
      size = 0
    }
    batch.push(group)
    size += group.writes.length
  }
  if (batch.length > 0) batches.push(batch)
  return batches
}

function isFitting(provider: Pick<Provider, 'fits'>, batch: readonly Group[], group: Group): boolean {
  return provider.fits === undefined || provider.fits([...batch, group].flatMap((item) => item.writes))
}

/**
 * Finds the groups that a service refuses in a batch that it refused as a whole, and writes all others.
 *
 * Guarantees: one refused group among n is found after at most ⌈log2 n⌉ further calls, because each call halves the
 * remainder and sends only one half; then one call writes the accepted groups.
 */
export async function isolate(
  refused: readonly Group[],
  attempt: (groups: readonly Group[]) => Promise<'written' | 'refused' | 'stop'>,
): Promise<{ written: Group[]; bad: Group[]; left: Group[] }> {
  const written: Group[] = []
  const bad: Group[] = []
  let suspects = refused
  for (;;) {
    const deferred: Group[] = []
    while (suspects.length > 1) {
      const half = suspects.slice(0, suspects.length >> 1)
      const rest = suspects.slice(suspects.length >> 1)
      const result = await attempt(half)
      if (result === 'stop') return { written, bad, left: [...suspects, ...deferred] }
      if (result === 'written') {
        written.push(...half)
        suspects = rest
      } else {
        deferred.unshift(...rest)
        suspects = half
      }
    }
    bad.push(...suspects)
    if (deferred.length === 0) return { written, bad, left: [] }
    const result = await attempt(deferred)
    if (result === 'stop') return { written, bad, left: deferred }
    if (result === 'written') {
      written.push(...deferred)
      return { written, bad, left: [] }
    }
    suspects = deferred
  }
}
