/** The alert rules: what they name exists, promtool fires each of them, and the page for the night has a section about each. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { REASONS } from '@seamark/operator'
import { findProgram, needs } from '@seamark/kit'
import { afterAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { listMetrics } from '../../../scripts/generate/metrics-page.ts'
import { groups, RULE_FILE, rules } from './alert-rules.ts'
import { FIRING, QUIET, type Series } from './firing-series.ts'
import { namesOf } from './queries.ts'

const metrics = new Map(listMetrics().map((metric) => [metric.name, metric]))

describe.each(rules)('the alert $alert', ({ alert, expr, annotations }) => {
  const { metrics: used, labels, grouped } = namesOf(expr)

  it('reads metrics that are registered', () => {
    expect(used.length).toBeGreaterThan(0)
    expect(used.filter((name) => !metrics.has(name))).toEqual([])
  })

  it('selects and groups by labels that the metric has', () => {
    const known = new Set(used.flatMap((name) => metrics.get(name)?.labels ?? []))
    const shown = [...`${annotations.summary}${annotations.description}`.matchAll(/\$labels\.(\w+)/g)].map(
      ([, label = '']) => label,
    )
    expect(labels.filter((label) => !known.has(label))).toEqual([])
    expect(shown.filter((label) => !grouped.includes(label))).toEqual([])
  })

  // Of packets that the DNS server drops, the reason is no decision.
  it.skipIf(used.includes('seamark_dns_dropped_total'))('names reason codes of the catalogue', () => {
    const codes = [...expr.matchAll(/reason=~?"([^"]*)"/g)].flatMap(([, list = '']) => list.split('|'))
    expect(codes.filter((code) => code !== '' && !Object.hasOwn(REASONS, code))).toEqual([])
  })

  it('has a section of docs/on-call.md that names it', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/on-call.md'), 'utf8')
    const [, anchor = ''] = /^docs\/on-call\.md#(.+)$/.exec(annotations.runbook) ?? []
    const heading = page.split('\n').find((line) => slugOf(line) === anchor)
    expect(heading, `no section ${anchor}`).toBeDefined()
    const row = page.split('\n').find((line) => line.startsWith('|') && line.includes(`](#${anchor})`))
    expect(row).toMatch(new RegExp(String.raw`\b${alert}\b`))
  })
})

/** Of a heading of the second level, as a link names it. */
function slugOf(line: string): string | undefined {
  return line.startsWith('## ') ? line.slice(3).toLowerCase().replaceAll(' ', '-') : undefined
}

describe('the alert rules', () => {
  it('have names of their own', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
  })

  it('are there for every capability', () => {
    expect(groups.map(({ name, rules: own }) => [name, own.length > 0])).toEqual(
      ['manager', 'publish', 'wildcard', 'records', 'fleet', 'balance', 'dns', 'gateway'].map((name) => [
        `seamark-${name}`,
        true,
      ]),
    )
  })

  it('have series each with which promtool fires it', () => {
    expect(Object.keys(FIRING).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted())
  })
})

describe.skipIf(!needs('promtool'))('promtool', () => {
  const promtool = findProgram('promtool') ?? ''
  const folder = mkdtempSync(join(tmpdir(), 'seamark-promtool-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** With these series exactly these alerts fire in the end, and none of them at the start. */
  const testOf = (name: string, series: readonly Series[], alerts: readonly string[]): object => {
    const expr = 'group by (alertname) (ALERTS{alertstate="firing"})'
    return {
      name,
      interval: '1m',
      input_series: series.map(([each, values]) => ({ series: each, values })),
      promql_expr_test: [
        { expr, eval_time: '0m', exp_samples: [] },
        {
          expr,
          eval_time: '130m',
          exp_samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
        },
      ],
    }
  }

  function check(tests: readonly object[]): void {
    const file = join(folder, 'tests.yaml')
    writeFileSync(file, stringify({ rule_files: [RULE_FILE], evaluation_interval: '1m', tests }))
    const { status, stdout, stderr } = spawnSync(promtool, ['test', 'rules', file], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`${stderr}${stdout}`)
  }

  it('accepts the rules', () => {
    expect(execFileSync(promtool, ['check', 'rules', RULE_FILE], { encoding: 'utf8' })).toContain(
      `${rules.length} rules`,
    )
  })

  it('fires each alert by its series and no other, and none while everything is as it should be', () => {
    const firing = Object.entries(FIRING).map(([alert, series]) => {
      const names = new Set(series.map(([name]) => name))
      return testOf(alert, [...QUIET.filter(([name]) => !names.has(name)), ...series], [alert])
    })
    // One process: starting one for each alert takes longer than all of the tests.
    check([testOf('quiet', QUIET, []), ...firing])
  })

  it('fails where an alert does not fire', () => {
    expect(() => check([testOf('not fired', QUIET, ['SeamarkAbsent'])])).toThrow('SeamarkAbsent')
  })
})
