/** Clusters: all of them, or one with its hosts. */
import { useComputed } from '@preact/signals'
import type { JSX } from 'preact'
import type { ClusterView, State } from '../../api/state.ts'
import { query } from '../data/location.ts'
import { clusterPath } from '../data/paths.ts'
import { state } from '../data/live-state.ts'
import { FlowTable } from '../overview/flow-table.tsx'
import { EventRow } from '../overview/last-hour.tsx'
import { parseQuery } from '../overview/search-query.ts'
import { Command } from '../parts/command.tsx'
import { Region } from '../parts/region.tsx'
import { Shape } from '../parts/shape.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Age, Since, Until } from '../parts/time.tsx'
import { CLUSTER_LOOKS, countOf, countText, shareText, trafficText } from '../parts/words.ts'
import { Title } from './view-parts.tsx'

const COLUMNS: readonly Column<ClusterView>[] = [
  {
    title: 'Cluster',
    width: 'minmax(7rem, 1fr)',
    isHead: true,
    cell: ({ name }) => <a href={clusterPath(name)}>{name}</a>,
    tip: ({ name }) => name,
  },
  {
    title: 'State',
    width: '8.5rem',
    cell: ({ state }) => {
      const { shape, tone, word } = CLUSTER_LOOKS[state]
      return (
        <>
          <Shape name={shape} tone={tone} /> {word}
        </>
      )
    },
  },
  {
    title: 'Since',
    width: '4.5rem',
    isNumber: true,
    cell: ({ since }) => (since === undefined ? '–' : <Age key={since} since={since} />),
  },
  { title: 'Answers', width: '5rem', isNumber: true, cell: ({ share }) => shareText(share) },
  { title: 'Hosts', width: '4.5rem', isNumber: true, cell: ({ hosts }) => countOf(hosts) },
  { title: 'Leaves', width: '4.5rem', isNumber: true, cell: ({ leaves }) => countOf(leaves) },
  { title: 'Weight', width: '4.5rem', isNumber: true, cell: ({ weight }) => weight ?? '–' },
  { title: 'Why', width: 'minmax(10rem, 3fr)', cell: whyOf, tip: ({ text }) => text },
  {
    title: 'Addresses',
    width: 'minmax(8rem, 1.6fr)',
    cell: ({ addresses }) => <span class="mono">{addresses.join(', ') || '–'}</span>,
    tip: ({ addresses }) => addresses.join(', '),
  },
]

function whyOf({ answersStill, state, text }: ClusterView): string {
  return answersStill && state === 'Unreachable' ? `answers still; ${text}` : text
}

export function ClustersView({ value }: { value: State }): JSX.Element {
  const search = parseQuery(query.value)
  const found = value.clusters.filter(search.cluster)
  return (
    <div class="view">
      <Title note={<Command command="seamark cluster list" />}>Clusters</Title>
      <Table
        label="Clusters"
        columns={COLUMNS}
        rows={found}
        keyOf={({ name }) => name}
        empty={
          value.clusters.length === 0
            ? 'No cluster is registered: seamark cluster add CONTEXT registers one.'
            : 'No cluster matches.'
        }
      />
    </div>
  )
}

export function ClusterDetails({ value, name }: { value: State; name: string }): JSX.Element {
  const hosts = useComputed(() =>
    (state.value?.hosts ?? []).filter(({ answers }) => answers.some(({ cluster }) => cluster === name)),
  )
  const cluster = value.clusters.find((each) => each.name === name)
  if (cluster === undefined)
    return (
      <div class="view">
        <Title>{name}</Title>
        <p class="empty">
          No cluster of this name is registered. <a href="/clusters">All clusters</a>
        </p>
      </div>
    )
  const events = value.lastHour.filter((event) => event.cluster === name)
  return (
    <div class="view">
      <Title>{name}</Title>
      <Facts cluster={cluster} />
      <Region title="Hosts" class="plain" note={<span>{countText(hosts.value.length, 'host')}</span>}>
        <FlowTable hosts={hosts.value} cluster={name} />
      </Region>
      {events.length > 0 && (
        <Region title="Last hour" class="plain">
          <ol role="list" class="events">
            {events.map((event) => (
              <EventRow key={event.id} event={event} />
            ))}
          </ol>
        </Region>
      )}
    </div>
  )
}

function Facts({ cluster }: { cluster: ClusterView }): JSX.Element {
  const { name, state, text, reason, since, until, share, hosts, answeredHosts, leaves, weight, location, version } =
    cluster
  const { shape, tone, word } = CLUSTER_LOOKS[state]
  const isDrained = state === 'Draining' || state === 'Drained'
  const facts: readonly (readonly [string, string | number | undefined])[] = [
    ['Answers', `${shareText(share)} of all, of ${countText(answeredHosts, 'host')}`],
    ['Placed', `${countText(leaves, 'leaf', 'leaves')} of ${countText(hosts, 'host')}`],
    ['Weight', weight],
    ['Location', location],
    ['Version', version],
    ['Addresses', cluster.addresses.join(', ')],
    ['Gateway', cluster.traffic === undefined ? undefined : trafficText(cluster.traffic)],
  ]
  return (
    <div class="verdict">
      <p>
        <Shape name={shape} tone={tone} /> <strong class={tone}>{word}</strong>
        {reason !== undefined && <code class="code">{reason}</code>}
        {since !== undefined && <Since at={since} />}
        {until !== undefined && <Until key={until} at={until} before="at most " after=" more" />}
        {cluster.answersStill && <strong class={tone}>answers still</strong>}
      </p>
      <p class="verdict-text">{text}</p>
      <dl class="facts">
        {facts.map(([title, fact]) =>
          fact === undefined || fact === '' ? null : (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{fact}</dd>
            </div>
          ),
        )}
      </dl>
      <Command command={isDrained ? `seamark undrain ${name}` : `seamark drain ${name} --wait`} />
    </div>
  )
}
