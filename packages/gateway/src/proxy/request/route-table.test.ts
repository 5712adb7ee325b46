/** What one request may cost, whatever conditions the routes of a host have. */
import { expect, it } from 'vitest'
import type { HeaderMatch, Match, QueryMatch, Route } from '../../ir/model.ts'
import { normalizePath, type RequestFacts } from './request-facts.ts'
import { createRouteTable } from './route-table.ts'

/** Of a host with all routes that it may have. */
const ROUTES = 20_000
const LONG = 'a'.repeat(50_000)

function hostOf(matchOf: (index: number) => Partial<Match>) {
  const routes = Array.from({ length: ROUTES }, (_, index): Route => {
    return {
      match: { path: { kind: 'prefix', value: '/' }, headers: [], query: [], ...matchOf(index) },
      action: { kind: 'direct', status: 200, body: '' },
      upgradesToHttps: false,
      origin: { kind: 'HTTPProxy', namespace: 'a', name: 'x', at: String(index) },
      order: '',
    }
  })
  const ir = { listeners: [{ protocol: 'http' as const, hosts: [{ host: 'x.test', routes }] }], clusters: [] }
  const host = createRouteTable({ ...ir, certificates: [] }).http.find('x.test')
  if (host === undefined) throw new Error('no host')
  return host
}

function request(target: string, header = ''): RequestFacts {
  const { path = '', search = '' } = normalizePath(target) ?? {}
  return { method: 'GET', authority: 'x.test', host: 'x.test', path, search, header: () => header }
}

const header = (more: Partial<HeaderMatch>) => (index: number) => ({
  headers: [{ name: 'x-a', kind: 'contains' as const, value: `b${index}`, ...more }],
})
const query = (more: Partial<QueryMatch>) => (index: number) => ({
  query: [{ name: `q${index}`, kind: 'contains' as const, value: 'b', ...more }],
})

it.each([
  ['a header that is searched', header({}), request('/', LONG)],
  ['a header whose case is ignored', header({ kind: 'exact', ignoresCase: true }), request('/', LONG)],
  ['a parameter that is searched', (index: number) => query({ name: 'q' })(index), request(`/?q=${LONG}`)],
])('the budget of a request counts the characters of %s', (_title, match, facts) => {
  expect(hostOf(match).find(facts)).toMatchObject({ kind: 'exceeded' })
})

it('a query is read once, however many routes have conditions on it', () => {
  const pairs = Array.from({ length: 20_000 }, (_, index) => `p${index}`)
  const facts = request(`/?${pairs.join('&')}&q${ROUTES - 1}=ab`)
  expect(hostOf(query({})).find(facts)).toMatchObject({ origin: { at: String(ROUTES - 1) } })
  expect(hostOf(query({})).find(request('/?a=1'))).toBeUndefined()
})

it('conditions that cost little are within the budget for all routes of a host', () => {
  const facts = request('/', 'b19999')
  expect(hostOf(header({ kind: 'exact' })).find(facts)).toMatchObject({ origin: { at: '19999' } })
})
