/** Plan: what would be written to DNS, and what holds it. */
import type { JSX } from 'preact'
import type { HeldView, PlanPage, ZonePlan } from '../../api/plan-page.ts'
import { query } from '../data/location.ts'
import { zonePath } from '../data/paths.ts'
import { state } from '../data/live-state.ts'
import { useReading } from '../data/reading.ts'
import { Command } from '../parts/command.tsx'
import { Region } from '../parts/region.tsx'
import { Shape } from '../parts/shape.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Age } from '../parts/time.tsx'
import { countOf, countText } from '../parts/words.ts'
import { ReadingFault, Title } from './view-parts.tsx'

const HELD_COLUMNS: readonly Column<HeldView>[] = [
  {
    title: 'Reason',
    width: 'minmax(12rem, 1.4fr)',
    isHead: false,
    cell: ({ reason }) => (
      <>
        <Shape name="held" tone="warn" /> <span class="mono">{reason}</span>
      </>
    ),
    tip: ({ text }) => text,
  },
  { title: 'Change', width: '5rem', cell: ({ op }) => op },
  {
    title: 'Name',
    width: 'minmax(10rem, 2fr)',
    cell: ({ name }) => <span class="mono">{name}</span>,
    tip: ({ name }) => name,
  },
  { title: 'Type', width: '5.5rem', cell: ({ type }) => type },
  { title: 'Zone or kind', width: 'minmax(6rem, 1fr)', cell: ({ scope }) => scope, tip: ({ scope }) => scope },
  {
    title: 'Held',
    width: '4.5rem',
    isNumber: true,
    cell: ({ since }) => (since === undefined ? '–' : <Age key={since} since={since} />),
  },
  {
    title: 'Command',
    width: 'minmax(16rem, 1.4fr)',
    cell: ({ command }) => (command === '' ? 'no approval lets it pass' : <Command command={command} />),
  },
]

type Change = ZonePlan['changes'][number]

const CHANGE_COLUMNS: readonly Column<Change>[] = [
  { title: 'Change', width: '5rem', cell: ({ op }) => op },
  {
    title: 'Name',
    width: 'minmax(10rem, 2fr)',
    isHead: true,
    cell: ({ name }) => <span class="mono">{name}</span>,
    tip: ({ name }) => name,
  },
  { title: 'Type', width: '4.5rem', cell: ({ type }) => type },
  {
    title: 'From',
    width: 'minmax(8rem, 2fr)',
    cell: ({ from }) => <Values values={from} />,
    tip: ({ from }) => from.join(', '),
  },
  { title: 'To', width: 'minmax(8rem, 2fr)', cell: ({ to }) => <Values values={to} />, tip: ({ to }) => to.join(', ') },
  { title: 'Reason', width: 'minmax(9rem, 1.2fr)', cell: ({ reason }) => <span class="mono">{reason}</span> },
]

function Values({ values }: { values: readonly string[] }): JSX.Element {
  return <span class="mono">{values.length === 0 ? '–' : values.join(', ')}</span>
}

export function PlanView(): JSX.Element {
  const { value, fault } = useReading<PlanPage>('/api/v1/plan', state.value?.zones).value
  const search = query.value.toLowerCase()
  const isFound = (...texts: readonly string[]): boolean => texts.some((text) => text.toLowerCase().includes(search))
  return (
    <div class="view">
      <Title note={<Command command="seamark plan" />}>Plan</Title>
      {value === undefined && fault === undefined && <p class="empty">Reading …</p>}
      {value !== undefined && (
        <>
          <Region title="Held" class="plain" note={<span>{countOf(value.held.length)}</span>}>
            <Table
              label="Held changes"
              columns={HELD_COLUMNS}
              rows={value.held.filter(({ name, reason, scope, id }) => isFound(name, reason, scope, id))}
              keyOf={({ id, scope, op, name, type }) => `${id} ${scope} ${op} ${name} ${type}`}
              empty={value.held.length === 0 ? 'Nothing is held.' : 'Nothing that is held matches.'}
            />
          </Region>
          {value.unread.map(({ zone, reason, text }) => (
            <p class="notice" key={zone}>
              <Shape name="dashed" tone="warn" /> <strong>{zone}</strong> is not known:{' '}
              <code class="code">{reason}</code> {text}
            </p>
          ))}
          {value.zones.map(({ zone, provider, changes, changesTotal }) => (
            <Region
              key={zone}
              title={zone}
              class="plain"
              note={
                <>
                  <span>{countText(changesTotal, 'change')}</span>
                  <span>{provider}</span>
                  <a href={zonePath(zone)}>records</a>
                </>
              }
            >
              <Table
                label={`Changes of ${zone}`}
                columns={CHANGE_COLUMNS}
                rows={changes.filter(({ name, reason }) => isFound(name, reason, zone))}
                keyOf={({ op, name, type }) => `${op} ${name} ${type}`}
                empty={changesTotal === 0 ? 'Nothing to change.' : 'No change matches.'}
              />
            </Region>
          ))}
        </>
      )}
      {fault !== undefined && <ReadingFault fault={fault} />}
    </div>
  )
}
