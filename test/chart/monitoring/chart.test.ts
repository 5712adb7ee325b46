/** What the chart makes of the alerts, the dashboards and the metrics of the manager. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, needs } from '@seamark/kit'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { groups } from './alert-rules.ts'

const CHART = join(import.meta.dirname, '../../../charts/seamark')

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec?: unknown
  readonly data?: Readonly<Record<string, string>>
}

function render(...values: readonly string[]): readonly Manifest[] {
  const flags = values.flatMap((value) => ['--set', value])
  const text = execFileSync(
    findProgram('helm') ?? '',
    ['template', 'seamark', CHART, '--namespace', 'seamark', ...flags],
    {
      encoding: 'utf8',
      stdio: 'pipe',
      maxBuffer: 2 ** 26,
    },
  )
  return parseAllDocuments(text).flatMap((document) => (document.toJS() as Manifest | null) ?? [])
}

describe.skipIf(!needs('helm'))('the chart', () => {
  let manifests: readonly Manifest[] = []
  const find = (kind: string, name = 'seamark'): Manifest => {
    const found = manifests.find((each) => each.kind === kind && each.metadata.name === name)
    if (found === undefined) throw new Error(`no ${kind} ${name}`)
    return found
  }

  beforeAll(() => {
    manifests = render(
      'serviceMonitor.enabled=true',
      'serviceMonitor.labels.release=prometheus',
      'prometheusRule.enabled=true',
      'grafanaDashboards.enabled=true',
    )
  })

  it('has a ServiceMonitor that selects the Service of the metrics, and keeps the labels that the manager gives', () => {
    const monitor = find('ServiceMonitor')
    const { selector, endpoints } = monitor.spec as {
      selector: { matchLabels: Record<string, string> }
      endpoints: { port: string; honorLabels: boolean }[]
    }
    const [service, ...others] = manifests.filter(
      ({ kind, metadata }) =>
        kind === 'Service' &&
        Object.entries(selector.matchLabels).every(([key, value]) => metadata.labels[key] === value),
    )
    expect(others).toEqual([])
    expect(service?.metadata.name).toBe('seamark-metrics')
    const { ports } = find('Service', 'seamark-metrics').spec as { ports: { name: string }[] }
    expect(ports.map(({ name }) => name)).toEqual(endpoints.map(({ port }) => port))
    expect(endpoints.map(({ honorLabels }) => honorLabels)).toEqual([true])
    expect(monitor.metadata.labels['release']).toBe('prometheus')
  })

  it('has a PrometheusRule with every alert as it is in the file', () => {
    expect(find('PrometheusRule').spec).toEqual({ groups })
  })

  it('has a ConfigMap with every dashboard, which the sidecar of Grafana finds', () => {
    const map = find('ConfigMap', 'seamark-dashboards')
    expect(map.metadata.labels['grafana_dashboard']).toBe('1')
    const files = readdirSync(join(CHART, 'dashboards'))
    expect(Object.keys(map.data ?? {})).toEqual(files.map((name) => `seamark-${name}`))
    for (const name of files)
      expect(map.data?.[`seamark-${name}`]?.trim()).toBe(readFileSync(join(CHART, 'dashboards', name), 'utf8').trim())
  })

  it('refuses a ServiceMonitor without a Service to read, and says what to do', () => {
    expect(() => render('serviceMonitor.enabled=true', 'metrics.service.enabled=false')).toThrow(
      'serviceMonitor.enabled: there is no Service of the metrics to read; set metrics.service.enabled: true',
    )
  })

  it('has none of them where they are not asked for, as their kinds may be absent', () => {
    const names = render().map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(names).toContain('Service seamark-metrics')
    expect(names.filter((name) => /^(?:ServiceMonitor|PrometheusRule) |dashboards$/.test(name))).toEqual([])
  })
})
