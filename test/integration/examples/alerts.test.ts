/** The alert rules name only metrics, labels and reason codes that exist. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REASONS } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { listMetrics } from '../../../scripts/generate/metrics-page.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly summary: string; readonly description: string }
}

const file = join(import.meta.dirname, '../../../examples/monitoring/alerts.yaml')
const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)
const metrics = new Map(listMetrics().map((metric) => [metric.name, metric]))
const FUNCTIONS = new Set(['absent', 'sum', 'max', 'by', 'rate', 'increase', 'time'])

describe.each(rules)('the alert $alert', ({ expr, annotations }) => {
  const named = [...expr.matchAll(/\b([a-z]+(?:_[a-z0-9]+)+)\b/g)].map(([, name = '']) => name)
  const used = named.filter((name) => !FUNCTIONS.has(name))

  it('reads metrics that are registered', () => {
    expect(used.length).toBeGreaterThan(0)
    expect(used.filter((name) => !metrics.has(name))).toEqual([])
  })

  it('selects and groups by labels that the metric has', () => {
    const labels = new Set(used.flatMap((name) => metrics.get(name)?.labels ?? []))
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/))
    const selected = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = '']) =>
      [...list.matchAll(/(\w+)(?:=~|!=|=)"/g)].map(([, label = '']) => label),
    )
    const shown = [...`${annotations.summary}${annotations.description}`.matchAll(/\$labels\.(\w+)/g)].map(
      ([, label = '']) => label,
    )
    expect([...grouped, ...selected].filter((label) => !labels.has(label))).toEqual([])
    expect(shown.filter((label) => !grouped.includes(label))).toEqual([])
  })

  it('names reason codes of the catalogue', () => {
    const codes = [...expr.matchAll(/reason=~?"([^"]*)"/g)].flatMap(([, list = '']) => list.split('|'))
    expect(codes.filter((code) => code !== '' && !Object.hasOwn(REASONS, code))).toEqual([])
  })
})

it('each alert has its own name', () => {
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
})
