/** The progress of a change in a zone, from a fresh read: written, still to be written, or overtaken by another writer. Pure. */
import { orderedWrites } from './batch.ts'
import { markedSet, readMarker } from '../../rrset/marker.ts'
import type { Change } from '../plan/plan.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import { sameSet } from '../../rrset/rrset.ts'
import type { ZoneView } from '../plan/zone-view.ts'

/** The writes of a change that are still to be made; undefined when the zone holds neither the old nor the new set. */
export function pendingWrites(change: Change, view: ZoneView): SetChange[] | undefined {
  const open: SetChange[] = []
  for (const write of orderedWrites(change)) {
    const where = stateOf(write, view)
    if (where === 'else') return undefined
    if (where === 'from') open.push(write)
  }
  return open
}

/** Whether the zone holds the old set, the new set, or neither. */
function stateOf({ from, to }: SetChange, view: ZoneView): 'from' | 'to' | 'else' {
  const subject = to ?? from
  if (subject === undefined) return 'to'
  if (view.isOpaque(subject.name, subject.type)) return 'else'
  const present = view.find(subject.name, subject.type)
  if (sameSet(present, to)) return 'to'
  return sameSet(present, from) ? 'from' : 'else'
}

export function newestPlan(change: Change, view: ZoneView): number | undefined {
  let newest: number | undefined
  for (const { from, to } of [change, ...change.markers]) {
    const subject = markedSet((to ?? from)?.name ?? '')
    if (subject === undefined) continue
    for (const value of view.marked(subject.name, subject.type)?.set.values ?? []) {
      const reading = readMarker(subject, value)
      if (reading.kind === 'marker' && reading.marker.owner === change.owner)
        newest = Math.max(newest ?? 0, reading.marker.plan)
    }
  }
  return newest
}
