/** The flow as a table: one row for each answer. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { AnswerView, HostView } from '../../api/state.ts'
import { clusterPath, hostPath } from '../data/paths.ts'
import { Shape } from '../parts/shape.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { ANSWER_LOOKS, HELD_LOOK, HOST_LOOKS, shareText } from '../parts/words.ts'

interface Row {
  readonly key: string
  readonly host: HostView
  readonly answer?: AnswerView
}

const COLUMNS: readonly Column<Row>[] = [
  {
    title: 'Host',
    width: 'minmax(0, 2fr)',
    isHead: true,
    cell: ({ host }) => <a href={hostPath(host.name)}>{host.name}</a>,
    tip: ({ host }) => host.name,
  },
  {
    title: 'State',
    width: '6.6rem',
    cell: ({ host }) => {
      const { shape, tone, word } = host.state === 'as it should be' && host.held ? HELD_LOOK : HOST_LOOKS[host.state]
      return (
        <>
          <Shape name={shape} tone={tone} /> {word}
        </>
      )
    },
  },
  {
    title: 'Answer',
    width: 'minmax(0, 1.25fr)',
    cell: ({ answer }) => (answer === undefined ? 'no answer' : answer.address),
    tip: ({ answer }) => answer?.address ?? '',
  },
  {
    title: 'Is',
    width: '5.4rem',
    cell: ({ answer }) => {
      if (answer === undefined) return '–'
      const { shape, tone, word } = answer.isHeld ? HELD_LOOK : ANSWER_LOOKS[answer.state]
      return (
        <>
          <Shape name={shape} tone={tone} /> {word}
        </>
      )
    },
  },
  {
    title: 'Share',
    width: '2.9rem',
    isNumber: true,
    cell: ({ answer }) => (answer === undefined ? '–' : shareText(answer.share)),
  },
  {
    title: 'Cluster',
    width: 'minmax(0, 0.8fr)',
    cell: ({ answer }) =>
      answer?.cluster === undefined ? '–' : <a href={clusterPath(answer.cluster)}>{answer.cluster}</a>,
    tip: ({ answer }) => answer?.cluster ?? '',
  },
  {
    title: 'Gateway',
    width: 'minmax(0, 0.75fr)',
    cell: ({ answer }) => answer?.gateway ?? '–',
    tip: ({ answer }) => answer?.gateway ?? '',
  },
  {
    title: 'Service',
    width: 'minmax(0, 1.2fr)',
    cell: ({ answer }) => answer?.services?.join(', ') ?? '–',
    tip: ({ answer }) => answer?.services?.join(', ') ?? '',
  },
]

/** `cluster`: only its answers. */
export function FlowTable({ hosts, cluster }: { hosts: readonly HostView[]; cluster?: string }): JSX.Element {
  const rows = useMemo(() => {
    const all = hosts.flatMap(rowsOf)
    return cluster === undefined ? all : all.filter(({ answer }) => answer?.cluster === cluster)
  }, [hosts, cluster])
  return <Table label="Flow" columns={COLUMNS} rows={rows} keyOf={({ key }) => key} empty="No host matches." />
}

const rows = new WeakMap<HostView, readonly Row[]>()

function rowsOf(host: HostView): readonly Row[] {
  const known = rows.get(host)
  if (known !== undefined) return known
  const made =
    host.answers.length === 0
      ? [{ key: host.name, host }]
      : host.answers.map((answer, index) => ({ key: `${host.name} ${index}`, host, answer }))
  rows.set(host, made)
  return made
}
