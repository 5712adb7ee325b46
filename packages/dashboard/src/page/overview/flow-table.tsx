/** The flow as a table: one row for each answer. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { AnswerView, HostView } from '../../api/state.ts'
import { clusterPath, hostPath } from '../data/paths.ts'
import { Shape } from '../parts/shape.tsx'
import { lastAtOrBefore } from '../parts/row-range.ts'
import { type Column, type Rows, Table } from '../parts/table.tsx'
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
  const rows = useMemo(
    () => (cluster === undefined ? new AnswerRows(hosts) : hosts.flatMap((host) => rowsOf(host, cluster))),
    [hosts, cluster],
  )
  return <Table label="Flow" columns={COLUMNS} rows={rows} keyOf={({ key }) => key} empty="No host matches." />
}

/** A row for each answer, and one for a host without any; made when it is asked for, because there may be many thousands. */
class AnswerRows implements Rows<Row> {
  readonly #hosts: readonly HostView[]
  /** Index of the first row of each host, and at the end how many there are. */
  readonly #starts: Uint32Array

  constructor(hosts: readonly HostView[]) {
    this.#hosts = hosts
    this.#starts = new Uint32Array(hosts.length + 1)
    let count = 0
    for (const [index, { answers }] of hosts.entries()) {
      count += Math.max(1, answers.length)
      this.#starts[index + 1] = count
    }
  }

  get length(): number {
    return this.#starts[this.#hosts.length] ?? 0
  }

  at(row: number): Row | undefined {
    const at = lastAtOrBefore(this.#starts, row)
    const host = this.#hosts[at]
    if (host === undefined) return undefined
    const index = row - (this.#starts[at] ?? 0)
    const answer = host.answers[index]
    return { key: `${host.name} ${index}`, host, ...(answer !== undefined && { answer }) }
  }
}

function rowsOf(host: HostView, cluster: string): Row[] {
  return host.answers.flatMap((answer, index) =>
    answer.cluster === cluster ? [{ key: `${host.name} ${index}`, host, answer }] : [],
  )
}
