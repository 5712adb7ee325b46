/** The head of every view: where to go, what is searched for, who writes, and how old the data is. */
import { useComputed } from '@preact/signals'
import type { JSX } from 'preact'
import type { ManagerView } from '../api/state.ts'
import { durationText, nowMs } from './data/clock.ts'
import { path } from './data/location.ts'
import { connection, dataAge, state } from './data/live-state.ts'
import { SearchBox } from './overview/search-box.tsx'
import { Shape } from './parts/shape.tsx'
import { Clock } from './parts/time.tsx'
import { trafficText } from './parts/words.ts'

const LINKS = [
  ['/', 'Overview'],
  ['/plan', 'Plan'],
  ['/clusters', 'Clusters'],
  ['/zones', 'Zones and records'],
  ['/history', 'History'],
] as const

export function Head(): JSX.Element {
  const manager = state.value?.manager
  return (
    <header class="head">
      <a class="brand" href="/">
        <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true" focusable="false">
          <path d="M8 1.5 11.4 12H4.6z" fill="currentColor" />
          <path d="M2 14h12" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" />
        </svg>
        Seamark
      </a>
      <nav aria-label="Views">
        {LINKS.map(([href, text]) => (
          <a key={href} href={href} aria-current={isOf(path.value, href) ? 'page' : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <SearchBox />
      <div class="status">{manager !== undefined && <ManagerStatus manager={manager} />}</div>
    </header>
  )
}

function isOf(path: string, href: string): boolean {
  return path === href || (href !== '/' && path.startsWith(`${href}/`))
}

function ManagerStatus({ manager }: { manager: ManagerView }): JSX.Element {
  const { mode, pausedBy, leader, isLeading, traffic } = manager
  return (
    <>
      <span class={pausedBy.length > 0 || mode === 'observe' ? 'warn' : ''} title={modeTip(manager)}>
        {pausedBy.length > 0 && (
          <>
            <Shape name="held" tone="warn" />{' '}
          </>
        )}
        {pausedBy.length > 0 ? 'paused' : mode}
      </span>
      {(leader !== undefined || isLeading) && (
        <span class="leader" title={leader}>
          {leader === undefined ? 'leads' : `leader ${leader}`}
        </span>
      )}
      {traffic !== undefined && traffic.requestsPerSecond > 0 && (
        <span class="leader" title="of the gateway in this process">
          {trafficText(traffic)}
        </span>
      )}
      <DataAgeText />
    </>
  )
}

function modeTip({ mode, pausedBy, version }: ManagerView): string {
  const writes =
    pausedBy.length > 0
      ? `paused by ${pausedBy.join(' and ')}`
      : mode === 'observe'
        ? 'it decides and writes nothing'
        : 'it writes'
  return `Seamark ${version}: ${writes}`
}

function DataAgeText(): JSX.Element {
  const text = useComputed(() => {
    const age = dataAge.value
    if (age === undefined) return ''
    if (connection.value.kind === 'open' && age.isCurrent) return 'data is current'
    return `data ${durationText(nowMs.value - Date.parse(age.readAt))} old`
  })
  return <span class="age">{text}</span>
}

/** Said where it matters: what is on the page is not what is. */
export function Notices(): JSX.Element | null {
  const { value } = connection
  const age = dataAge.value
  if (value.kind === 'lost' && state.value !== undefined)
    return (
      <aside class="notice bar" aria-label="State of the data">
        <Shape name="dashed" tone="warn" /> No connection to the manager: {value.message}. What is shown is from{' '}
        {age !== undefined && <Clock key={age.readAt} at={age.readAt} />}; it is tried again.
      </aside>
    )
  if (age !== undefined && !age.isCurrent)
    return (
      <aside class="notice bar" aria-label="State of the data">
        <Shape name="triangle" tone="warn" /> The API server of the hub cannot be read
        {age.message !== undefined && `: ${age.message}`}. What is shown is from{' '}
        <Clock key={age.readAt} at={age.readAt} />, and DNS goes on as it was.
      </aside>
    )
  return null
}
