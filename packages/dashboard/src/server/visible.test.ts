import { expect, it } from 'vitest'
import type { ClusterView, HostView, NeedView, State } from '../api/state.ts'
import { API_VERSION, MAX_NEEDS } from '../api/state.ts'
import { applyDifference } from '../api/stream.ts'
import type { Question, Rights } from './rights.ts'
import { Visible, type Whole } from './visible.ts'

const host = (name: string, namespace: string): HostView => ({
  name,
  owner: `DNSEndpoint ${namespace}/web`,
  namespace,
  by: 'records',
  state: 'broken',
  text: '',
  answersFrom: 'zone',
  answers: [],
})
const need = (id: string, of: HostView): NeedView => ({
  id,
  what: 'failing',
  severity: 'broken',
  reason: 'EndpointUnhealthy',
  object: { kind: 'DNSEndpoint', namespace: of.namespace, name: 'web' },
  text: '',
  command: '',
  host: of.name,
})
const cluster = (hosts: number): ClusterView => ({
  name: 'eu1',
  state: 'Serving',
  text: '',
  answersStill: false,
  share: 1,
  hosts,
  answeredHosts: hosts,
  leaves: 0,
  addresses: [],
})

const red = host('red.demo.test', 'red')
const blues = Array.from({ length: MAX_NEEDS }, (_, index) => host(`blue-${index}.demo.test`, 'blue'))
const all = [...blues, red]

const rightsTo = (...allowed: string[]): Rights => ({
  key: allowed.join(' '),
  may: ({ resource, namespace = '*' }: Question) =>
    allowed.includes(`${resource} ${namespace}`) || allowed.includes(`${resource} *`),
})
const RED = rightsTo('dnsendpoints.externaldns.k8s.io red', 'clusters.seamark.io *')

/** What the hosts of this list show. */
const wholeOf = (hosts: readonly HostView[]): Whole => ({
  findHost: (name) => hosts.find((each) => each.name === name),
  needs: () => hosts.map((each) => need(`host/${each.name}`, each)),
  clustersOf: (isSeen) => [cluster(hosts.filter(isSeen).length)],
})

function stateOf(hosts: readonly HostView[], version = '1'): State {
  return {
    apiVersion: API_VERSION,
    kind: 'State',
    version,
    manager: {
      version: '0',
      namespace: 'seamark',
      mode: 'enforce',
      pausedBy: [],
      isLeading: true,
      capabilities: [],
      data: { isCurrent: true, readAt: '2026-03-01T00:00:00Z' },
    },
    clusters: [cluster(hosts.length)],
    hosts,
    zones: [],
    needsYou: wholeOf(hosts).needs().slice(0, MAX_NEEDS),
    needsYouTotal: hosts.length,
    lastHour: [],
    changedAt: '2026-03-01T00:00:00Z',
  }
}

it('no number counts what the reader may not see, and what others need does not hide what it needs', () => {
  const state = new Visible(RED, wholeOf(all)).state(stateOf(all))
  expect(state.hosts).toEqual([red])
  expect(state.clusters).toEqual([cluster(1)])
  expect([state.needsYou.map(({ id }) => id), state.needsYouTotal]).toEqual([['host/red.demo.test'], 1])
  expect(JSON.stringify(state)).not.toContain('blue')
  expect(state.changedAt).toBeUndefined()
})

it('a difference of others tells its readers nothing, also not that something changed', () => {
  const visible = new Visible(RED, wholeOf(all))
  const shown = visible.shownOf(visible.state(stateOf(all)))
  const changed = { ...blues[0]!, text: 'other' }
  const difference = {
    base: '1',
    version: '2',
    hosts: { set: [changed], removed: ['blue-1.demo.test'] },
    clusters: { set: [cluster(7)], removed: [] },
    needsYou: { set: [need('host/blue-0.demo.test', changed)], removed: [] },
    needsYouTotal: 7,
    changedAt: '2026-03-01T00:01:00Z',
  }
  expect(visible.difference(difference, shown)).toEqual({ base: '1', version: '2' })
})

it('differences lead to the state that is read anew, when hosts come, change their namespace and go', () => {
  let hosts: readonly HostView[] = all
  const whole: Whole = {
    findHost: (name) => wholeOf(hosts).findHost(name),
    needs: () => wholeOf(hosts).needs(),
    clustersOf: (...given) => wholeOf(hosts).clustersOf(...given),
  }
  const visible = new Visible(RED, whole)
  let state = visible.state(stateOf(hosts))
  const shown = visible.shownOf(state)
  const step = (next: readonly HostView[], set: HostView[], removed: string[] = []) => {
    hosts = next
    const version = `${Number(state.version) + 1}`
    const whole = { base: state.version, version, hosts: { set, removed }, changedAt: '2026-03-01T00:01:00Z' }
    const after = applyDifference(state, visible.difference(whole, shown))
    if (after === undefined) throw new Error('the difference does not apply')
    const { changedAt: _, ...seen } = after
    expect(seen).toEqual(visible.state(stateOf(hosts, version)))
    state = after
  }
  const green = host('green.demo.test', 'red')
  step(
    [...all, green].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    [green],
  )
  const away = { ...green, namespace: 'blue' }
  step(
    hosts.map((each) => (each === green ? away : each)),
    [away],
  )
  step(
    hosts.filter((each) => each !== red),
    [],
    [red.name],
  )
  expect(state.hosts).toEqual([])
})

it('who may list everything gets it as it is', () => {
  const wide = rightsTo(
    'clusters.seamark.io *',
    'globalingresses.seamark.io *',
    'dnsloadbalancers.loadbalancer.gardener.cloud *',
    'dnsendpoints.externaldns.k8s.io *',
  )
  const visible = new Visible(wide, wholeOf(all))
  const state = stateOf(all)
  expect(visible.isEverything).toBe(true)
  expect(visible.state(state)).toBe(state)
})
