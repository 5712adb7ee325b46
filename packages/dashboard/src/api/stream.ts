/**
 * `GET /api/v1/stream`: server-sent events. The first one is a `snapshot`, or after `Last-Event-ID` with a version that is still
 * known the differences since then; at most 5 differences a second; a reader that is too slow gets a new snapshot.
 *
 * event: snapshot    id: VERSION   data: State
 * event: difference  id: VERSION   data: Difference
 * event: beat        (no id)       data: Beat, every 5 s and when the data stops or begins to be current
 * event: end         (no id)       data: {"message"}: the token has expired or its rights changed; read again
 */
import type { ClusterView, DataAge, EventView, HostView, ManagerView, NeedView, State, ZoneView } from './state.ts'

export interface Keyed<T> {
  /** New, or in place of the one with this name. */
  readonly set: readonly T[]
  /** Names. */
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
  /** The whole list. */
  readonly needsYou?: readonly NeedView[]
  readonly needsYouTotal?: number
  /** The whole list. */
  readonly lastHour?: readonly EventView[]
  readonly changedAt?: string
}

export interface Beat {
  /** Now, in the manager. */
  readonly at: string
  readonly data: DataAge
}

/** The state after a difference; undefined: it does not apply to this state. */
export function applyDifference(state: State, difference: Difference): State | undefined {
  const { base, version, clusters, hosts, zones, ...whole } = difference
  if (state.version !== base) return undefined
  return {
    ...state,
    ...whole,
    version,
    clusters: merge(state.clusters, clusters),
    hosts: merge(state.hosts, hosts),
    zones: merge(state.zones, zones),
  }
}

/** Both sorted by name; unchanged elements are the same objects. */
function merge<T extends { readonly name: string }>(before: readonly T[], change: Keyed<T> | undefined): readonly T[] {
  if (change === undefined) return before
  const set = new Map(change.set.map((each) => [each.name, each]))
  const removed = new Set(change.removed)
  const after: T[] = []
  for (const each of before) {
    const next = set.get(each.name)
    if (next !== undefined) set.delete(each.name)
    if (next !== undefined || !removed.has(each.name)) after.push(next ?? each)
  }
  if (set.size === 0) return after
  return [...after, ...set.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}
