/**
 * The list of `seamark undo`: applied plans, newest first, those that one cause made as one entry. Pure.
 *
 * One change in the cluster often becomes several plans: one per zone, and one per pass while its events arrive. Plans belong
 * together when they do the same (operations and reasons) and follow each other within `CAUSE_GAP_MS`.
 */
import type { Plan } from '@seamark/operator'
import { printTable } from '../../output-form.ts'

/** A plan's number is the time at which it was made, in milliseconds. */
const CAUSE_GAP_MS = 10_000

/** Names in a row of the short table. */
const SHOWN_NAMES = 3

export interface AppliedCause {
  /** Of the newest plan, RFC 3339. */
  readonly time: string
  /** Newest first, as `seamark undo` takes them. */
  readonly plans: readonly number[]
  readonly zones: readonly string[]
  /** `delete SourceGone` */
  readonly operations: readonly string[]
  readonly changes: number
  readonly names: readonly string[]
}

export function groupPlans(plans: readonly Plan[]): AppliedCause[] {
  const groups: { key: string; plans: Plan[] }[] = []
  for (const plan of plans.toSorted((a, b) => b.number - a.number)) {
    const key = operationsOf([plan]).join()
    const last = groups.findLast((group) => group.key === key)
    const previous = last?.plans.at(-1)
    if (last !== undefined && previous !== undefined && previous.number - plan.number <= CAUSE_GAP_MS)
      last.plans.push(plan)
    else groups.push({ key, plans: [plan] })
  }
  return groups.map(({ plans: members }) => {
    const changes = members.flatMap((plan) => plan.changes)
    return {
      time: new Date(members[0]?.number ?? 0).toISOString(),
      plans: [...new Set(members.map(({ number }) => number))],
      zones: unique(members.map(({ zone, provider }) => `${zone} (${provider})`)),
      operations: operationsOf(members),
      changes: changes.length,
      names: unique(changes.map(({ name }) => name)),
    }
  })
}

function operationsOf(plans: readonly Plan[]): string[] {
  return unique(plans.flatMap(({ changes }) => changes.map(({ op, reason }) => `${op} ${reason}`)))
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].toSorted()
}

export function printCauses(causes: readonly AppliedCause[], isWide: boolean): string {
  if (causes.length === 0) return 'no applied plan is stored\n'
  const rows = causes.map(({ time, plans, zones, operations, changes, names }) => {
    const listed = isWide ? names : names.slice(0, SHOWN_NAMES)
    const more = names.length - listed.length
    return [
      plans.join(' '),
      time,
      operations.join(', '),
      String(changes),
      zones.join(', '),
      `${listed.join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
    ]
  })
  return `${printTable(['PLANS', 'APPLIED', 'CHANGES', '#', 'ZONES', 'NAMES'], rows)}take back with: seamark undo PLANS\n`
}
