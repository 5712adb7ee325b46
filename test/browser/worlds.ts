/** Installations that the page has to show: empty, calm, in the middle of an outage, very large, and with hostile names. */
import type { ClusterView, HostView, PlanPage, RecordsPage, State } from '@seamark/dashboard'
import { exampleHostPage, examplePlanPage, exampleState, exampleStateWith } from '@seamark/dashboard/testing'
import type { PageValues } from './page-server.ts'

const CALM_HOST = exampleStateWith(1).hosts.find(({ name }) => name.startsWith('host-')) as HostView

const emptyPlan: PlanPage = { ...examplePlanPage, zones: [], held: [], unread: [] }
const emptyRecords: RecordsPage = {
  apiVersion: exampleState.apiVersion,
  kind: 'Records',
  at: examplePlanPage.at,
  records: [],
  total: 0,
}

export function emptyWorld(): PageValues {
  const { changedAt: _, ...rest } = exampleState
  return {
    state: { ...rest, clusters: [], hosts: [], zones: [], needsYou: [], needsYouTotal: 0, lastHour: [] },
    hosts: new Map(),
    plan: emptyPlan,
    records: emptyRecords,
  }
}

/** Everything is as it should be. */
export function calmWorld(count: number): PageValues {
  const clusters = exampleState.clusters.map((cluster): ClusterView => ({
    ...cluster,
    state: 'Serving',
    text: 'leaves can be placed on it',
    answersStill: false,
    share: 1 / 3,
    answeredHosts: count,
    hosts: count,
    reason: 'ClusterReady',
  }))
  const hosts = Array.from({ length: count }, (_, index) => calmHost(index))
  return {
    state: {
      ...exampleState,
      clusters,
      hosts: hosts.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      zones: exampleState.zones.slice(0, 1).map((zone) => ({ ...zone, held: 0 })),
      needsYou: [],
      needsYouTotal: 0,
      lastHour: exampleState.lastHour.filter(({ what }) => what === 'verified'),
    },
    hosts: new Map(),
    plan: emptyPlan,
    records: emptyRecords,
  }
}

const NAMES = ['shop', 'api', 'cart', 'search', 'login', 'pay', 'mail', 'blog', 'docs', 'status'] as const

function calmHost(index: number): HostView {
  const label = NAMES[index % NAMES.length] ?? 'www'
  const name = `${label}${index < NAMES.length ? '' : `-${Math.floor(index / NAMES.length)}`}.demo.test`
  const shares = index % 3 === 0 ? [0.5, 0.5] : index % 3 === 1 ? [1] : [0.6, 0.3, 0.1]
  return {
    ...CALM_HOST,
    name,
    owner: `Ingress ${label}/web`,
    namespace: label,
    zone: 'demo.test',
    text: `${name} is as it should be`,
    answers: shares.map((share, at) => ({
      address: `203.0.113.${(at + 1) * 10}`,
      share,
      state: 'answered',
      isHeld: false,
      cluster: ['eu1', 'us1', 'ap1'][at] ?? 'eu1',
      gateway: 'envoy',
      services: [`${label}/web:80`],
    })),
  }
}

/** ap1 is lost, us1 drains, a mass deletion is held. */
export function outage(): PageValues {
  return {
    state: exampleState,
    hosts: new Map([[exampleHostPage.host.name, exampleHostPage]]),
    plan: examplePlanPage,
    records: recordsOf(exampleState),
    route: {
      apiVersion: exampleState.apiVersion,
      kind: 'Route',
      host: exampleHostPage.host.name,
      method: 'GET',
      path: '/',
      outcome: 'route',
      text: 'HTTPProxy shop/api routes[0], Service api:80',
      command: `seamark explain http://${exampleHostPage.host.name}/`,
    },
  }
}

export function largeWorld(count: number): PageValues {
  const state = exampleStateWith(count)
  return { ...outage(), state, records: recordsOf(state) }
}

export function manyClusters(count: number): PageValues {
  const [, serving] = exampleState.clusters as [ClusterView, ClusterView]
  const clusters = Array.from({ length: count }, (_, index) => ({
    ...serving,
    name: `cluster-${String(index).padStart(3, '0')}`,
    share: 1 / count,
  }))
  const host = {
    ...CALM_HOST,
    answers: clusters.map(({ name }, index) => ({
      address: `203.0.113.${index}`,
      share: 1 / count,
      state: 'answered' as const,
      isHeld: false,
      cluster: name,
      gateway: 'envoy',
      services: ['shop/web:80'],
    })),
  }
  return { ...outage(), state: { ...exampleState, clusters, hosts: [host] } }
}

export const HOSTILE = {
  markup: '<img src=x onerror=alert(1)>',
  /** Right-to-left override: what follows is shown backwards. */
  rtl: 'gpj.\u202Eexe.shop',
  long: `${'a'.repeat(60)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(59)}.test`,
  punycode: 'xn--80ak6aa92e.xn--p1ai',
} as const

/** Whatever a tenant may write into an object, and some of what it may not. */
export function hostileWorld(): PageValues {
  const names = [HOSTILE.long, HOSTILE.punycode, HOSTILE.markup, HOSTILE.rtl]
  const hosts = names.map((name): HostView => ({
    ...CALM_HOST,
    name,
    owner: `Ingress ${HOSTILE.markup}/${HOSTILE.rtl}`,
    namespace: HOSTILE.markup,
    state: 'degraded',
    reason: 'AnswerDiffers',
    text: `${name} is degraded at ${HOSTILE.markup}`,
    answers: CALM_HOST.answers.map((answer) => ({
      ...answer,
      address: HOSTILE.long,
      cluster: HOSTILE.rtl,
      gateway: HOSTILE.markup,
      services: [HOSTILE.long, HOSTILE.markup],
    })),
  }))
  const [cluster] = exampleState.clusters as [ClusterView]
  const [need] = exampleState.needsYou
  const [event] = exampleState.lastHour
  if (need === undefined || event === undefined) throw new Error('the example has no needs or events')
  const object = { kind: HOSTILE.markup, namespace: HOSTILE.rtl, name: HOSTILE.long }
  const state: State = {
    ...exampleState,
    clusters: [HOSTILE.long, HOSTILE.markup, HOSTILE.rtl].map((name) => ({ ...cluster, name, text: HOSTILE.markup })),
    hosts,
    needsYou: names.map((name) => ({
      ...need,
      id: name,
      object,
      text: `${name} ${HOSTILE.markup}`,
      host: name,
      command: `seamark explain '${name}'`,
    })),
    needsYouTotal: names.length,
    lastHour: names.map((name) => ({ ...event, id: name, object, text: `${name} ${HOSTILE.markup}`, host: name })),
  }
  const page = (host: HostView): [string, typeof exampleHostPage] => [
    host.name,
    {
      ...exampleHostPage,
      host,
      hops: exampleHostPage.hops.map((hop) => ({ ...hop, text: `${HOSTILE.markup} ${HOSTILE.long}`, object })),
      targets: exampleHostPage.targets.map((target) => ({ ...target, address: HOSTILE.long, cluster: HOSTILE.rtl })),
      objects: [{ ...object, apiVersion: 'v1', yaml: `name: ${HOSTILE.markup}\nother: ${HOSTILE.long}\n` }],
    },
  ]
  return {
    ...outage(),
    state,
    hosts: new Map(hosts.map(page)),
    plan: {
      ...examplePlanPage,
      held: examplePlanPage.held.map((held) => ({
        ...held,
        name: HOSTILE.long,
        scope: HOSTILE.markup,
        text: HOSTILE.markup,
      })),
    },
    records: recordsOf(state),
  }
}

function recordsOf({ apiVersion, hosts }: State): RecordsPage {
  const records = hosts.map(({ name, owner, zone, answers, ttl = 300 }, index) => ({
    zone: zone ?? 'demo.test',
    name,
    type: 'A',
    ttl,
    values: answers.filter(({ share }) => share > 0).map(({ address }) => address),
    ownership: (['ours', 'ours', 'other', 'none'] as const)[index % 4] ?? 'ours',
    ...(index % 4 === 2 && { owner: 'external-dns/default' }),
    source: owner,
    host: name,
  }))
  return { apiVersion, kind: 'Records', at: examplePlanPage.at, records, total: records.length }
}
