/**
 * The changes that guards hold, as they are persisted and approved. Pure.
 *
 * Place in the flow: guards → refusals → held changes (guard state) → Events, conditions, `plan`, `explain`, `approve`.
 * Each held change has a key, a hash of what it would write. Changes that one guard holds in one zone and that an
 * approval can let pass are one set; the id of a set is a hash of the keys of its changes, so a set with other content has
 * another id.
 */
import { createHash } from 'node:crypto'
import type { Reason } from '../../reasons.ts'
import { compareText, setKey } from '../../rrset/rrset.ts'
import { approveCommand, type HeldChange } from '../../safety/held-change.ts'
import type { SetChange } from '../../rrset/set-change.ts'
import type { PlanInput, Refusal, ZoneId } from './plan.ts'

/** The maximum number of held changes that a zone persists by name; a ConfigMap has 1 MiB for all zones. */
export const MAX_HELD = 5_000

/** Held by the mode or the kill switch of the whole process, not by a decision about one RRset. */
export function isProcessWide({ code }: { readonly code?: Reason }): boolean {
  return code === 'ObserveMode' || code === 'Paused'
}

/** Hash of what a change would write; without its markers, which contain the number of the plan. */
export function changeKey({
  op,
  name,
  type,
  from,
  to,
}: { op: string; name: string; type: string } & SetChange): string {
  const side = (set: SetChange['from']): unknown => (set === undefined ? null : [set.ttl, set.values])
  return hash(JSON.stringify([op, name, type, side(from), side(to)]), 10)
}

export function heldMessage({ why, set }: { readonly why: string; readonly set?: string | undefined }): string {
  return set === undefined ? why : `${why}; to let it pass: ${approveCommand(set)}`
}

/** What is held in the zone after this plan: its own refusals, and held changes of names outside its scope. */
export function heldAfter(refused: readonly Refusal[], input: PlanInput): HeldChange[] {
  const { scope, state, now } = input
  const known = new Map(state.held.map((item) => [entryKey(item), item]))
  const fresh = refused
    .filter(({ code }) => !isProcessWide({ code }))
    .map((refusal): HeldChange => {
      const { name, type, op, code, why, source, until, isApprovable } = refusal
      const before = known.get(entryKey(refusal))
      return {
        name,
        type,
        op,
        code,
        why,
        source,
        key: changeKey(refusal),
        since: before?.code === code ? before.since : now,
        ...(until !== undefined && { until }),
        ...(isApprovable === true && { isApprovable }),
      }
    })
  const outside = scope === 'all' ? [] : state.held.filter(({ name }) => !scope.has(name))
  const all = [...fresh, ...outside].sort((a, b) => compareText(entryKey(a), entryKey(b))).slice(0, MAX_HELD)
  return withSetIds(all, input)
}

/** The same, restricted to the part inside or outside the scope of a plan: for merging with a state that changed meanwhile. */
export function mergeHeld(
  current: readonly HeldChange[],
  planned: readonly HeldChange[],
  scope: 'all' | readonly string[],
  zone: ZoneId,
): HeldChange[] {
  if (scope === 'all') return [...planned]
  const names = new Set(scope)
  const all = [...planned.filter(({ name }) => names.has(name)), ...current.filter(({ name }) => !names.has(name))]
  return withSetIds(
    all.sort((a, b) => compareText(entryKey(a), entryKey(b))),
    zone,
  )
}

/** Codes of guards that count changes: their decision about one change depends on how many others there are. */
const COUNTING: ReadonlySet<Reason> = new Set([
  'ShrinkBreakerOpen',
  'RetargetBreakerOpen',
  'Quarantined',
  'DeleteBudgetSpent',
])

/** Whether the guard that decided counts changes. */
export function isCounting(code: Reason): boolean {
  return COUNTING.has(code)
}

interface Decision {
  readonly name: string
  readonly type: string
  readonly code: Reason
}

/**
 * Names to plan again after a pass: when the number of changes held by a counting guard changes, its decision about the
 * other changes may change too. Empty once a pass over them changes nothing.
 */
export function namesToReview(before: Iterable<Decision>, after: Iterable<Decision>): Set<string> {
  const counted = (list: Iterable<Decision>) => [...list].filter(({ code }) => COUNTING.has(code))
  const [old, now] = [counted(before), counted(after)]
  const known = new Set(old.map(({ name, type, code }) => `${name} ${type} ${code}`))
  const isSame = old.length === now.length && now.every(({ name, type, code }) => known.has(`${name} ${type} ${code}`))
  return new Set(isSame ? [] : now.map(({ name }) => name))
}

function withSetIds(held: readonly HeldChange[], { provider, zone }: ZoneId): HeldChange[] {
  const keys = new Map<string, string[]>()
  for (const item of held) {
    const group = groupOf(item)
    if (group === undefined) continue
    const list = keys.get(group)
    if (list === undefined) keys.set(group, [item.key])
    else list.push(item.key)
  }
  const ids = new Map<string, string>()
  for (const [group, list] of keys) ids.set(group, hash(JSON.stringify([provider, zone, group, list.toSorted()]), 12))
  return held.map(({ set: _set, ...item }) => {
    const id = ids.get(groupOf(item) ?? '')
    return id === undefined ? item : { ...item, set: id }
  })
}

/** Deletions over the limit are one set, whether they are in quarantine or have left it. Protected names are approved one by one. */
function groupOf({ code, name, isApprovable }: HeldChange): string | undefined {
  if (isApprovable !== true) return undefined
  if (code === 'Quarantined' || code === 'DeleteBudgetSpent') return 'delete-limit'
  return code === 'ApprovalMissing' ? `${code} ${name}` : code
}

function entryKey(item: { name: string; type: string; source: string }): string {
  return `${setKey(item)} ${item.source}`
}

function hash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length)
}
