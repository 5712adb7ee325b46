/** The page: its head, and the view that the address names. */
import type { JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { State } from '../api/state.ts'
import { path, view, type View } from './data/location.ts'
import { connection, state } from './data/live-state.ts'
import { tokenWanted } from './data/requests.ts'
import { Head, Notices } from './head.tsx'
import { HostDetails } from './host/host-view.tsx'
import { Overview } from './overview/overview.tsx'
import { TokenForm } from './token-form.tsx'
import { ClusterDetails, ClustersView } from './views/clusters-view.tsx'
import { HistoryView } from './views/history-view.tsx'
import { PlanView } from './views/plan-view.tsx'
import { Title } from './views/view-parts.tsx'
import { ZonesView } from './views/zones-view.tsx'

const TITLES: Readonly<Record<View['kind'], string>> = {
  overview: 'Overview',
  host: '',
  plan: 'Plan',
  clusters: 'Clusters',
  zones: 'Zones and records',
  history: 'History',
  none: 'No such page',
}

export function Page(): JSX.Element {
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  const now = view.value
  useLayoutEffect(() => {
    document.title = `${('name' in now && now.name) || TITLES[now.kind]} · Seamark`
    // Where a link led to is read next: the title of the view.
    if (!isFirst.current) {
      scrollTo(0, 0)
      const title = main.current?.querySelector<HTMLElement>('h1[tabindex]') ?? main.current
      title?.focus({ preventScroll: true })
    }
    isFirst.current = false
  }, [path.value])
  const isOverview = now.kind === 'overview' && tokenWanted.value === undefined
  return (
    <div class={isOverview ? 'page fits' : 'page'}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Head />
      <Notices />
      <main id="main" ref={main} tabIndex={-1}>
        {tokenWanted.value !== undefined ? <TokenForm /> : <Content now={now} value={state.value} />}
      </main>
    </div>
  )
}

function Content({ now, value }: { now: View; value: State | undefined }): JSX.Element {
  if (value === undefined) return <Waiting />
  switch (now.kind) {
    case 'overview':
      return <Overview value={value} />
    case 'host':
      return <HostDetails key={now.name} name={now.name} />
    case 'plan':
      return <PlanView />
    case 'clusters':
      return now.name === undefined ? (
        <ClustersView value={value} />
      ) : (
        <ClusterDetails key={now.name} value={value} name={now.name} />
      )
    case 'zones':
      return <ZonesView value={value} name={now.name} />
    case 'history':
      return <HistoryView />
    case 'none':
      return (
        <div class="view">
          <Title>No such page</Title>
          <p class="empty">
            <a href="/">Overview</a>
          </p>
        </div>
      )
  }
}

function Waiting(): JSX.Element {
  const { value } = connection
  return (
    <div class="view">
      <h1 class="sr">Seamark</h1>
      <p class="empty">{value.kind === 'lost' ? `Not read yet: ${value.message}. It is tried again.` : 'Reading …'}</p>
    </div>
  )
}
