/** The overview: is it fine, and if not, why, since when, and what to type. */
import { useComputed } from '@preact/signals'
import type { JSX } from 'preact'
import type { State } from '../../api/state.ts'
import { query } from '../data/location.ts'
import { state } from '../data/live-state.ts'
import { ClustersRegion } from './clusters.tsx'
import { FlowRegion } from './flow.tsx'
import { LastHourRegion } from './last-hour.tsx'
import { NeedsRegion } from './needs.tsx'
import { parseQuery } from './search-query.ts'

export function Overview({ value }: { value: State }): JSX.Element {
  const search = useComputed(() => parseQuery(query.value))
  // Only what these depend on computes them again: a change of an event is none of a host.
  const all = useComputed(() => state.value?.hosts ?? [])
  const hosts = useComputed(() => (search.value.isEmpty ? all.value : all.value.filter(search.value.host)))
  const isFiltered = !search.value.isEmpty
  const needs = isFiltered ? value.needsYou.filter(search.value.need) : value.needsYou
  const events = isFiltered ? value.lastHour.filter(search.value.event) : value.lastHour
  return (
    <div class="overview">
      <h1 class="sr">Overview</h1>
      <ClustersRegion clusters={value.clusters} search={search.value} />
      <FlowRegion hosts={hosts} total={value.hosts.length} />
      <NeedsRegion needs={needs} total={value.needsYouTotal} changedAt={value.changedAt} isFiltered={isFiltered} />
      <LastHourRegion events={events} />
    </div>
  )
}
