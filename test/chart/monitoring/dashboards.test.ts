/** The dashboards of the chart: every metric and label that their queries name is one that a manager with every capability serves. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listMetrics } from '../../../scripts/generate/metrics-page.ts'
import { familyOf, namesOf } from './queries.ts'
import { RunningManager } from './running-manager.ts'

const FOLDER = join(import.meta.dirname, '../../../charts/seamark/dashboards')

interface Dashboard {
  readonly uid: string
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] }
  readonly panels: readonly {
    readonly title: string
    readonly targets?: readonly { expr: string; legendFormat?: string }[]
  }[]
}

const dashboards = readdirSync(FOLDER).map((name) => ({
  name,
  dashboard: JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as Dashboard,
}))
const queries = dashboards.flatMap(({ name, dashboard }) =>
  dashboard.panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ name, title, ...target }))),
)

/** Prometheus adds them to what it scrapes. */
const OF_TARGETS = ['job', 'pod']
/** Their series begin with something that does not happen here: webhooks, Envoys, other clients on members, a watch that ends. */
const NOT_SEEN = [
  'controller_runtime_webhook_latency_seconds',
  'controller_runtime_webhook_requests_total',
  'seamark_fleet_drift_corrections_total',
  'seamark_gateway_xds_rejected',
  'seamark_gateway_xds_streams',
  'seamark_watch_restarts_total',
]

const registered = new Map(listMetrics().map((metric) => [metric.name, metric.labels]))
const familyOfSeries = (series: string): string => familyOf(series, (name) => registered.has(name))

describe('the dashboards', () => {
  let manager: RunningManager
  /** Labels of the served series, by metric. */
  const served = new Map<string, Set<string>>()
  let names: ReadonlySet<string> = new Set()

  beforeAll(async () => {
    manager = await RunningManager.start()
    const wanted = [...new Set(queries.flatMap(({ expr }) => namesOf(expr).metrics))]
    const text = await manager.metrics(wanted.filter((name) => !NOT_SEEN.includes(familyOfSeries(name))))
    names = new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name))
    for (const [, series = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
      const known = served.get(series) ?? new Set()
      served.set(series, known)
      for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label)
    }
  }, 180_000)
  afterAll(async () => manager[Symbol.asyncDispose]())

  it('are four, with names of their own', () => {
    expect(dashboards.map(({ name, dashboard }) => [name, dashboard.uid])).toEqual(
      ['dns', 'fleet', 'gateway', 'manager'].map((name) => [`${name}.json`, `seamark-${name}`]),
    )
    expect(queries.length).toBeGreaterThan(60)
  })

  it.each(queries)('$name, $title: its metrics and labels are served', ({ expr, legendFormat = '' }) => {
    const { metrics, labels } = namesOf(expr)
    expect(metrics.length).toBeGreaterThan(0)
    expect(metrics.filter((name) => !names.has(familyOfSeries(name)))).toEqual([])
    const known = new Set([
      ...OF_TARGETS,
      ...metrics.flatMap((name) => [...(served.get(name) ?? ['le', ...(registered.get(familyOfSeries(name)) ?? [])])]),
    ])
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
    expect([...labels, ...shown].filter((label) => !known.has(label))).toEqual([])
  })

  it('select one manager or several in every query', () => {
    for (const { expr } of queries) {
      const { metrics } = namesOf(expr)
      expect(expr.split('{job=~"$job"').length - 1, expr).toBeGreaterThanOrEqual(metrics.length)
    }
    for (const { dashboard } of dashboards)
      expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'job'])
  })
})
