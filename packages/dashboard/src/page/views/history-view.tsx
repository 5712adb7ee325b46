/** History: the Events, newest first. */
import type { JSX } from 'preact'
import type { HistoryPage } from '../../api/plan-page.ts'
import type { EventView } from '../../api/state.ts'
import { query } from '../data/location.ts'
import { clusterPath, hostPath } from '../data/paths.ts'
import { state } from '../data/live-state.ts'
import { useReading } from '../data/reading.ts'
import { parseQuery } from '../overview/search-query.ts'
import { Shape } from '../parts/shape.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Clock } from '../parts/time.tsx'
import { countText, eventLook, objectText } from '../parts/words.ts'
import { ReadingFault, Title } from './view-parts.tsx'

const COLUMNS: readonly Column<EventView>[] = [
  { title: 'Time', width: '7rem', cell: ({ at }) => <Clock at={at} /> },
  {
    title: 'What',
    width: '6rem',
    cell: (event) => {
      const { shape, tone, word } = eventLook(event)
      return (
        <>
          <Shape name={shape} tone={tone} /> {word}
        </>
      )
    },
  },
  {
    title: 'Object',
    width: 'minmax(10rem, 1.4fr)',
    cell: ({ object, host, cluster }) => {
      const href = host !== undefined ? hostPath(host) : cluster === undefined ? undefined : clusterPath(cluster)
      return href === undefined ? objectText(object) : <a href={href}>{objectText(object)}</a>
    },
    tip: ({ object }) => objectText(object),
  },
  {
    title: 'Reason',
    width: 'minmax(9rem, 1fr)',
    cell: ({ reason }) => <span class="mono">{reason}</span>,
    tip: ({ reason }) => reason,
  },
  {
    title: 'Sentence',
    width: 'minmax(12rem, 4fr)',
    cell: ({ text, count = 1 }) => (count > 1 ? `${text} (${countText(count, 'time')})` : text),
    tip: ({ text }) => text,
  },
]

export function HistoryView(): JSX.Element {
  const { value, fault } = useReading<HistoryPage>('/api/v1/history', state.value?.lastHour).value
  const search = parseQuery(query.value)
  return (
    <div class="view">
      <Title note={value !== undefined && countText(value.events.length, 'event')}>History</Title>
      {value === undefined && fault === undefined && <p class="empty">Reading …</p>}
      {value !== undefined && (
        <Table
          label="History"
          columns={COLUMNS}
          rows={search.isEmpty ? value.events : value.events.filter(search.event)}
          keyOf={({ id }) => id}
          empty={value.events.length === 0 ? 'There are no Events.' : 'No Event matches.'}
        />
      )}
      {fault !== undefined && <ReadingFault fault={fault} />}
    </div>
  )
}
