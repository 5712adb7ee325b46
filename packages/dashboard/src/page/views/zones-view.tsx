/** Zones and records: what is in each zone, and whose it is. */
import type { JSX } from 'preact'
import type { RecordsPage, RecordView } from '../../api/plan-page.ts'
import type { State, ZoneView } from '../../api/state.ts'
import { query } from '../data/location.ts'
import { hostPath, zonePath } from '../data/paths.ts'
import { useReading } from '../data/reading.ts'
import { Command } from '../parts/command.tsx'
import { Region } from '../parts/region.tsx'
import { Shape } from '../parts/shape.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { countOf, countText, type Look } from '../parts/words.ts'
import { ReadingFault, Title } from './view-parts.tsx'

const LIMIT = 20_000

const OWNERSHIP: Readonly<Record<RecordView['ownership'], Look>> = {
  ours: { shape: 'disc', tone: 'fine', word: 'ours' },
  other: { shape: 'diamond', tone: 'warn', word: 'of another owner' },
  none: { shape: 'ring', tone: 'quiet', word: 'foreign' },
}

const ZONE_COLUMNS: readonly Column<ZoneView>[] = [
  {
    title: 'Zone',
    width: 'minmax(9rem, 2fr)',
    isHead: true,
    cell: ({ name }) => <a href={zonePath(name)}>{name}</a>,
    tip: ({ name }) => name,
  },
  {
    title: 'State',
    width: 'minmax(10rem, 3fr)',
    cell: ({ fault, held }) =>
      fault !== undefined ? (
        <>
          <Shape name="triangle" tone="warn" /> {fault}
        </>
      ) : held > 0 ? (
        <>
          <Shape name="held" tone="warn" /> {countText(held, 'change')} held
        </>
      ) : (
        <>
          <Shape name="check" tone="fine" /> as it should be
        </>
      ),
    tip: ({ fault = '' }) => fault,
  },
  { title: 'Provider', width: 'minmax(6rem, 1fr)', cell: ({ provider }) => provider },
  { title: 'Records', width: '5.5rem', isNumber: true, cell: ({ records }) => countOf(records) },
  {
    title: 'Foreign',
    width: '5rem',
    isNumber: true,
    cell: ({ foreign }) => (foreign === undefined ? '–' : countOf(foreign)),
  },
  { title: 'Held', width: '4rem', isNumber: true, cell: ({ held }) => countOf(held) },
  { title: 'Serial', width: '6rem', isNumber: true, cell: ({ serial }) => serial ?? '–' },
]

const RECORD_COLUMNS: readonly Column<RecordView>[] = [
  {
    title: 'Name',
    width: 'minmax(10rem, 2.4fr)',
    isHead: true,
    cell: ({ name, host }) =>
      host === undefined ? (
        <span class="mono">{name}</span>
      ) : (
        <a class="mono" href={hostPath(host)}>
          {name}
        </a>
      ),
    tip: ({ name }) => name,
  },
  { title: 'Type', width: '4.5rem', cell: ({ type }) => type },
  { title: 'TTL', width: '4rem', isNumber: true, cell: ({ ttl }) => ttl },
  {
    title: 'Values',
    width: 'minmax(10rem, 3fr)',
    cell: ({ values }) => <span class="mono">{values.join(', ')}</span>,
    tip: ({ values }) => values.join(', '),
  },
  {
    title: 'Ownership',
    width: 'minmax(7rem, 1.2fr)',
    cell: ({ ownership, owner }) => {
      const { shape, tone, word } = OWNERSHIP[ownership]
      return (
        <>
          <Shape name={shape} tone={tone} /> {ownership === 'other' && owner !== undefined ? owner : word}
        </>
      )
    },
    tip: ({ owner = '' }) => owner,
  },
  {
    title: 'Source',
    width: 'minmax(8rem, 1.6fr)',
    cell: ({ source }) => source ?? '–',
    tip: ({ source = '' }) => source,
  },
]

export function ZonesView({ value, name }: { value: State; name: string | undefined }): JSX.Element {
  const search = query.value
  const parameters = new URLSearchParams({
    limit: String(LIMIT),
    ...(name !== undefined && { zone: name }),
    ...(search !== '' && { search }),
  })
  const { value: page, fault } = useReading<RecordsPage>(`/api/v1/records?${parameters.toString()}`, value.zones).value
  const zones = name === undefined ? value.zones : value.zones.filter((zone) => zone.name === name)
  return (
    <div class="view">
      <Title note={<Command command={name === undefined ? 'seamark provider list' : `seamark plan --zone ${name}`} />}>
        {name ?? 'Zones and records'}
      </Title>
      <Region title="Zones" class="plain" note={name !== undefined && <a href="/zones">all zones</a>}>
        <Table
          label="Zones"
          columns={ZONE_COLUMNS}
          rows={zones}
          keyOf={(zone) => zone.name}
          empty={name === undefined ? 'No zone is configured.' : 'No zone of this name is configured.'}
        />
      </Region>
      <Region title="Records" class="plain" note={page !== undefined && <span>{noteOf(page)}</span>}>
        {page === undefined ? (
          fault === undefined && <p class="empty">Reading …</p>
        ) : (
          <Table
            label="Records"
            columns={RECORD_COLUMNS}
            rows={page.records}
            keyOf={(record) => `${record.zone} ${record.name} ${record.type}`}
            empty={search === '' ? 'There are no records.' : 'No record matches.'}
            classOf={({ ownership }) => (ownership === 'ours' ? '' : 'foreign')}
          />
        )}
        {fault !== undefined && <ReadingFault fault={fault} />}
      </Region>
    </div>
  )
}

function noteOf({ records, total }: RecordsPage): string {
  return total > records.length
    ? `the first ${countOf(records.length)} of ${countOf(total)}`
    : countText(total, 'record')
}
