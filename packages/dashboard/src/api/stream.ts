/**
 * `GET /api/v1/stream`: server-sent events. The first one is a `snapshot`, or after `Last-Event-ID` with a version that is still
 * known the differences since then; at most 5 differences a second; a reader that is too slow gets a new snapshot.
 *
 * event: snapshot    id: VERSION   data: State
 * event: difference  id: VERSION   data: Difference
 * event: beat        (no id)       data: Beat, every 5 s and when the data stops or begins to be current
 * event: end         (no id)       data: {"message"}: the token has expired or its rights changed; read again
 */
import {
  type ClusterView,
  type DataAge,
  type EventView,
  type HostView,
  type ManagerView,
  MAX_EVENTS,
  type NeedView,
  type State,
  type ZoneView,
} from './state.ts'

export interface Keyed<T> {
  /** New, or in place of the one with this name (`needsYou`: this id). */
  readonly set: readonly T[]
  readonly removed: readonly string[]
}

/** What is absent did not change. */
export interface Difference {
  /** The version that it applies to; a reader with another one reads a snapshot. */
  readonly base: string
  readonly version: string
  readonly manager?: ManagerView
  readonly clusters?: Keyed<ClusterView>
  readonly hosts?: Keyed<HostView>
  readonly zones?: Keyed<ZoneView>
  readonly needsYou?: Keyed<NeedView>
  readonly needsYouTotal?: number
  /** New ones, and those with another count or time. */
  readonly events?: readonly EventView[]
  readonly changedAt?: string
}

export interface Beat {
  /** Now, in the manager. */
  readonly at: string
  readonly data: DataAge
}

/** The state after a difference; undefined: it does not apply to this state. */
export function applyDifference(state: State, difference: Difference): State | undefined {
  const { base, version, clusters, hosts, zones, needsYou, events, ...whole } = difference
  if (state.version !== base) return undefined
  return {
    ...state,
    ...whole,
    version,
    clusters: merge(state.clusters, clusters, nameOf, byName),
    hosts: merge(state.hosts, hosts, nameOf, byName),
    zones: merge(state.zones, zones, nameOf, byName),
    needsYou: merge(state.needsYou, needsYou, idOf, byHarm),
    lastHour: events === undefined ? state.lastHour : mergeEvents(state.lastHour, events),
  }
}

interface Harm {
  readonly id: string
  readonly severity: HostView['state']
  readonly since?: string | undefined
}

/** The order of `needsYou`: what breaks answers first, and of these the oldest. */
export function byHarm(a: Harm, b: Harm): number {
  const harm = Number(b.severity === 'broken') - Number(a.severity === 'broken')
  return harm || compare(a.since ?? '9', b.since ?? '9') || compare(a.id, b.id)
}

export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compare(a.name, b.name)
}

/** Newest first; not older than an hour before the newest, and not more than MAX_EVENTS. */
export function mergeEvents(before: readonly EventView[], added: readonly EventView[]): readonly EventView[] {
  const ids = new Set(added.map(({ id }) => id))
  const all = [...added, ...before.filter(({ id }) => !ids.has(id))].sort(
    (a, b) => compare(b.at, a.at) || compare(b.id, a.id),
  )
  const newestMs = Date.parse(all[0]?.at ?? '')
  return all.slice(0, MAX_EVENTS).filter(({ at }) => Date.parse(at) > newestMs - HOUR_MS)
}

const HOUR_MS = 3_600_000
const nameOf = ({ name }: { readonly name: string }): string => name
const idOf = ({ id }: { readonly id: string }): string => id
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** `before` is in order; unchanged elements stay the same objects. */
function merge<T>(
  before: readonly T[],
  change: Keyed<T> | undefined,
  keyOf: (item: T) => string,
  order: (a: T, b: T) => number,
): readonly T[] {
  if (change === undefined) return before
  const set = new Map(change.set.map((each) => [keyOf(each), each]))
  const removed = new Set(change.removed)
  const after: T[] = []
  let isOrdered = true
  for (const each of before) {
    const next = set.get(keyOf(each))
    if (next !== undefined) set.delete(keyOf(each))
    if (next !== undefined && order(next, each) !== 0) isOrdered = false
    if (next !== undefined || !removed.has(keyOf(each))) after.push(next ?? each)
  }
  after.push(...set.values())
  return isOrdered && set.size === 0 ? after : after.sort(order)
}
