/**
 * Plans for people: lines for a terminal, Markdown for a pull request. Pure.
 *
 * A change that writes only ownership records is listed apart, since no client asks for them. What is held for one reason is
 * one entry. Nothing is cut: a line may be the input of another program, and ends with the command that is the next step.
 */
import { printable } from '@seamark/dns'
import { isMarkerName } from '../../rrset/marker.ts'
import { type RRset, sameSet } from '../../rrset/rrset.ts'
import { approveCommand } from '../../safety/held-change.ts'
import type { Change, Plan, Refusal } from './plan.ts'

const SIGN = { create: '+', update: '~', delete: '-' } as const
/** Stands for the name of each RRset in what is said of several. */
const EACH = 'NAME'
/** Names of one entry; `-o wide` lists all. */
const SHOWN_NAMES = 10
const CLIENTS_NOTICE_NOTHING = 'clients notice nothing'

/** The answers before and after it are the same: only our marker, or an entry of another registry, is written. */
function isMarkerOnly({ from, to, name, type }: Change): boolean {
  if (type === 'TXT' && isMarkerName(name)) return true
  return from !== undefined && to !== undefined && sameSet(from, to)
}

function values(set: RRset | undefined): string {
  return set === undefined ? '(none)' : set.values.map((value) => printable(value)).join(', ')
}

function effect({ from, to }: Change): string {
  if (from === undefined) return values(to)
  if (to === undefined) return values(from)
  const ttl = from.ttl === to.ttl ? '' : `  ttl ${from.ttl} → ${to.ttl}`
  return `${values(from)} → ${values(to)}${ttl}`
}

export function printPlanText(plans: readonly Plan[]): string {
  const lines: string[] = []
  for (const plan of plans) {
    const { changes, refused } = plan
    lines.push(`zone ${printable(plan.zone)} (${printable(plan.provider)}), owner ${printable(plan.owner)}`)
    for (const change of changes) {
      const { name, type, op, reason, message, risk, ttlEffect } = change
      if (isMarkerOnly(change)) continue
      const wait = ttlEffect > 0 ? `, old answer for up to ${ttlEffect} s` : ''
      lines.push(`  ${SIGN[op]} ${printable(name)} ${printable(type)}  ${effect(change)}`)
      lines.push(`      ${reason}: ${printable(message)}; risk ${risk}${wait}`)
    }
    const markers = changes.filter(isMarkerOnly)
    for (const { name, type, reason, message } of markers)
      lines.push(`  = ${printable(name)} ${printable(type)}  ${reason}: ${printable(message)}`)
    if (markers.length > 0) lines.push(`  ${ofMarkers(markers.length)}`)
    for (const group of groupHeld(refused)) lines.push(...printGroup(group))
    for (const { set, count } of heldSets(plan))
      lines.push(`  ${count} held together; to let them pass: ${approveCommand(set)}`)
    if (changes.length === 0 && refused.length === 0) lines.push('  no changes')
  }
  lines.push(summary(plans))
  return `${lines.join('\n')}\n`
}

function ofMarkers(count: number): string {
  return `${count} ${count === 1 ? 'change' : 'changes'} of the marker alone; ${CLIENTS_NOTICE_NOTHING}`
}

function summary(plans: readonly Plan[]): string {
  const changes = plans.flatMap((plan) => plan.changes)
  const markers = changes.filter(isMarkerOnly).length
  const refused = plans.reduce((sum, plan) => sum + plan.refused.length, 0)
  return `${changes.length - markers} changes, ${refused} held${markers === 0 ? '' : `; ${ofMarkers(markers)}`}`
}

interface HeldGroup {
  readonly op: Refusal['op']
  readonly code: Refusal['code']
  readonly until: number | undefined
  /** With EACH in the place of the name. */
  readonly why: string
  readonly refusals: Refusal[]
}

/** What is held for the same reason, in the order of the first one. */
function groupHeld(refused: readonly Refusal[]): HeldGroup[] {
  const groups = new Map<string, HeldGroup>()
  for (const refusal of refused) {
    const { op, code, until } = refusal
    const why = refusal.why.replaceAll(refusal.name, EACH).replaceAll(withoutDot(refusal.name), EACH)
    const key = JSON.stringify([op, code, until, why])
    const group = groups.get(key) ?? { op, code, until, why, refusals: [] }
    group.refusals.push(refusal)
    groups.set(key, group)
  }
  return [...groups.values()]
}

function printGroup({ op, code, until, why, refusals }: HeldGroup): string[] {
  const held = `${op} held: ${code}${until === undefined ? '' : ` until ${new Date(until).toISOString()}`}`
  const [only] = refusals
  if (refusals.length === 1 && only !== undefined)
    return [`  ! ${printable(only.name)} ${printable(only.type)}  ${held}: ${printable(only.why)}`]
  return [
    `  ! ${refusals.length} RRsets  ${held}: ${printable(whyOfAll(why, refusals))}`,
    `      ${printable(listed(refusals))}`,
  ]
}

/** A command that ends with the name takes all of them. */
function whyOfAll(why: string, refusals: readonly Refusal[]): string {
  const isCommand = / seamark [^;]+$/.test(why) && why.endsWith(` ${EACH}`)
  if (!isCommand) return why
  const names = [...new Set(refusals.map(({ name }) => withoutDot(name)))]
  return `${why.slice(0, -EACH.length)}${names.join(' ')}`
}

function listed(refusals: readonly Refusal[]): string {
  const shown = refusals.slice(0, SHOWN_NAMES).map(({ name, type }) => `${name} ${type}`)
  const more = refusals.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more; -o wide lists them` : ''}`
}

function withoutDot(name: string): string {
  return name.replace(/\.$/, '')
}

/** Held sets that can be approved. */
function heldSets({ refused }: Plan): { set: string; count: number }[] {
  const counts = new Map<string, number>()
  for (const { set } of refused) if (set !== undefined) counts.set(set, (counts.get(set) ?? 0) + 1)
  return Array.from(counts, ([set, count]) => ({ set, count }))
}

/** Escapes a table cell: record values are untrusted text and must not end the cell or become markup. */
function cell(text: string): string {
  return printable(text).replaceAll('\\', '\\\\').replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('`', "'")
}

export function printPlanMarkdown(plans: readonly Plan[]): string {
  const lines = [`## DNS plan: ${summary(plans)}`, '']
  for (const plan of plans) {
    lines.push(`### ${cell(plan.zone)} (${cell(plan.provider)})`, '')
    if (plan.changes.length > 0) {
      lines.push('| | name | type | change | reason | risk | old answer for |', '|---|---|---|---|---|---|---|')
      for (const change of plan.changes) {
        const isMarker = isMarkerOnly(change)
        const cells = [
          change.op,
          change.name,
          change.type,
          isMarker ? `marker alone; ${CLIENTS_NOTICE_NOTHING}` : effect(change),
          change.reason,
          change.risk,
          isMarker ? '' : `${change.ttlEffect} s`,
        ]
        lines.push(`| ${cells.map(cell).join(' | ')} |`)
      }
      lines.push('')
    }
    if (plan.refused.length > 0) {
      lines.push('| held | name | type | code | why |', '|---|---|---|---|---|')
      for (const refusal of plan.refused) {
        lines.push(`| ${[refusal.op, refusal.name, refusal.type, refusal.code, refusal.why].map(cell).join(' | ')} |`)
      }
      lines.push('')
      for (const { set, count } of heldSets(plan))
        lines.push(`${count} held together; to let them pass: \`${approveCommand(set)}\``, '')
    }
    if (plan.changes.length === 0 && plan.refused.length === 0) lines.push('No changes.', '')
  }
  return lines.join('\n')
}
