/**
 * The page as its manager serves it, with values that a test makes up: the browser sees the same paths, headers and events. What
 * no manager does on request, this one does: it cuts the stream, falls silent, forgets versions and refuses tokens.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Beat, Difference, HostPage, Keyed, PlanPage, RecordsPage, RouteAnswer, State } from '@seamark/dashboard'
import { buildPage } from '../../scripts/build-page.mjs'

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
const SHELL = /^\/(?:$|plan$|history$|(?:hosts|clusters|zones)(?:\/|$))/
const ASSETS: Readonly<Record<string, string | undefined>> = {
  '/page.js': 'text/javascript; charset=utf-8',
  '/page.css': 'text/css; charset=utf-8',
  '/icon.svg': 'image/svg+xml',
}

export interface PageValues {
  state: State
  hosts: ReadonlyMap<string, HostPage>
  plan: PlanPage
  records: RecordsPage
  route?: RouteAnswer
}

export interface PageServer extends AsyncDisposable {
  readonly url: string
  readonly values: PageValues
  /** `Last-Event-ID` of each request for the stream, in order; undefined: it had none. */
  readonly resumedFrom: readonly (string | undefined)[]
  /** Sends the difference from the present state to the next. */
  readonly change: (next: Omit<State, 'version'>) => void
  /** Sends this in place of what would be right. */
  readonly send: (event: string, data: unknown, id?: string) => void
  readonly beat: (beat: Beat) => void
  /** Closes the streams; the readers come back. */
  readonly cut: () => void
  /** Requests for data are answered so, until it is called without one. */
  readonly refuse: (status?: number) => void
  /** Only this token is accepted; undefined: none is asked for. */
  readonly requireToken: (token: string | undefined) => void
}

export async function servePage(values: PageValues): Promise<PageServer> {
  const assets = await buildPage()
  const streams = new Set<ServerResponse>()
  const resumedFrom: (string | undefined)[] = []
  const history: Difference[] = []
  let token: string | undefined
  let refusal: number | undefined
  let versions = 0

  const json = (response: ServerResponse, status: number, value: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  }
  const fail = (response: ServerResponse, status: number, code: string): void =>
    json(response, status, { kind: 'Error', code, message: `the test answers ${code}` })
  const write = (stream: ServerResponse, event: string, data: unknown, id?: string): void => {
    stream.write(`event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`)
  }

  /** As a manager does, it serialises a state once for all readers. */
  const snapshots = new WeakMap<State, string>()
  function snapshotOf(state: State): string {
    const text = snapshots.get(state) ?? `event: snapshot\nid: ${state.version}\ndata: ${JSON.stringify(state)}\n\n`
    snapshots.set(state, text)
    return text
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://page')
    response.setHeader('content-security-policy', POLICY)
    response.setHeader('x-content-type-options', 'nosniff')
    response.setHeader('cache-control', 'no-cache')
    const type = ASSETS[url.pathname]
    if (type !== undefined)
      return void response.setHeader('content-type', type).end(assets.get(url.pathname.slice(1) as 'page.js'))
    if (SHELL.test(url.pathname))
      return void response.setHeader('content-type', 'text/html; charset=utf-8').end(assets.get('index.html'))
    if (!url.pathname.startsWith('/api/v1/')) return fail(response, 404, 'NotFound')
    if (refusal !== undefined) return fail(response, refusal, 'NotReady')
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`)
      return fail(response, 401, 'Unauthorized')
    data(url, request, response)
  }

  function data(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const [kind, name, more] = url.pathname.slice('/api/v1/'.length).split('/').map(decodeURIComponent)
    switch (kind ?? '') {
      case 'state':
        return json(response, 200, values.state)
      case 'plan':
        return json(response, 200, values.plan)
      case 'history':
        return json(response, 200, { kind: 'History', events: values.state.lastHour })
      case 'records': {
        const search = url.searchParams.get('search') ?? ''
        const records = values.records.records.filter((record) => record.name.includes(search))
        const limit = Number(url.searchParams.get('limit') ?? 1000)
        return json(response, 200, { ...values.records, records: records.slice(0, limit), total: records.length })
      }
      case 'hosts': {
        const host = values.hosts.get(name ?? '')
        if (host === undefined) return fail(response, 404, 'NotFound')
        return json(response, 200, more === 'route' ? values.route : host)
      }
      case 'stream':
        return open(request, response)
      default:
        return fail(response, 404, 'NotFound')
    }
  }

  function open(request: IncomingMessage, response: ServerResponse): void {
    const from = request.headers['last-event-id']
    const id = typeof from === 'string' ? from : undefined
    resumedFrom.push(id)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const missed = history.findIndex(({ base }) => base === id)
    if (missed >= 0) for (const each of history.slice(missed)) write(response, 'difference', each, each.version)
    else if (id !== values.state.version) response.write(snapshotOf(values.state))
    write(response, 'beat', { at: values.state.manager.data.readAt, data: values.state.manager.data })
    streams.add(response)
    response.on('close', () => streams.delete(response))
  }

  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const send: PageServer['send'] = (event, value, id) => {
    for (const stream of streams) write(stream, event, value, id)
  }
  const cut = (): void => {
    for (const stream of streams) stream.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    values,
    resumedFrom,
    send,
    cut,
    change: (next) => {
      const before = values.state
      values.state = { ...next, version: `test.${++versions}` }
      const difference = differenceOf(before, values.state)
      history.push(difference)
      send('difference', difference, difference.version)
    },
    beat: (beat) => send('beat', beat),
    refuse: (status) => {
      refusal = status
    },
    requireToken: (wanted) => {
      token = wanted
    },
    [Symbol.asyncDispose]: async () => {
      cut()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(() => resolve(undefined)))
    },
  }
}

function differenceOf(before: State, after: State): Difference {
  const { version, manager, needsYouTotal, changedAt } = after
  const known = new Set(before.lastHour)
  return {
    base: before.version,
    version,
    manager,
    clusters: keyed(before.clusters, after.clusters, ({ name }) => name),
    hosts: keyed(before.hosts, after.hosts, ({ name }) => name),
    zones: keyed(before.zones, after.zones, ({ name }) => name),
    needsYou: keyed(before.needsYou, after.needsYou, ({ id }) => id),
    needsYouTotal,
    events: after.lastHour.filter((event) => !known.has(event)),
    ...(changedAt !== undefined && { changedAt }),
  }
}

function keyed<T>(before: readonly T[], after: readonly T[], keyOf: (each: T) => string): Keyed<T> {
  const known = new Map(before.map((each) => [keyOf(each), each]))
  const set = after.filter((each) => known.get(keyOf(each)) !== each)
  for (const each of after) known.delete(keyOf(each))
  return { set, removed: [...known.keys()] }
}
