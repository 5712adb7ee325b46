/** The alert rules of the chart. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

export const RULE_FILE = join(import.meta.dirname, '../../../charts/seamark/files/monitoring-alerts.yaml')

export interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook: string }
}

export const groups = (
  parse(readFileSync(RULE_FILE, 'utf8')) as { groups: { readonly name: string; readonly rules: readonly Rule[] }[] }
).groups

export const rules = groups.flatMap((group) => group.rules)
