/**
 * What a plan spends is written down before its first batch is sent: the fence, and the names it will delete. Pure.
 *
 * This is the second look at the delete budget, at the moment of writing: a plan from a file, or of another process,
 * finds here what was spent since it was made.
 */
import { deleteAllowance } from '../guards/breakers.ts'
import { addStamps, type GuardState, withinWindow } from '../state/guard-state.ts'
import type { Limits } from '../plan/limits.ts'
import type { Change, Plan } from '../plan/plan.ts'

export type Reservation =
  | { readonly kind: 'superseded'; readonly fence: number }
  | { readonly kind: 'granted'; readonly state: GuardState; readonly overBudget: ReadonlySet<Change> }

export function reserve(state: GuardState, plan: Plan, limits: Limits, now: number): Reservation {
  // The same number is the same plan, sent again after a crash.
  if (state.fence > plan.number) return { kind: 'superseded', fence: state.fence }
  const spent = new Set(withinWindow(state.deleted, now, limits.windowMs).map(({ key }) => key))
  // A plan about the whole zone knows how much there is; one about some names only adds to what was known.
  const isWhole = plan.scope === 'all'
  const owned = isWhole ? plan.state.ownedNames : Math.max(state.ownedNames, plan.state.ownedNames)
  const allowance = deleteAllowance(owned, limits)
  const overBudget = new Set<Change>()
  const deleted: string[] = []
  // A name that keeps a record is not lost: a change of type.
  const kept = new Set(plan.changes.flatMap((change) => (change.to === undefined ? [] : [change.group])))
  for (const change of plan.changes) {
    if (change.op !== 'delete' || change.from === undefined || kept.has(change.group)) continue
    if (change.isReleased !== true && !spent.has(change.name) && spent.size >= allowance) {
      overBudget.add(change)
      continue
    }
    if (change.isReleased !== true) spent.add(change.name)
    deleted.push(change.name)
  }
  const recent = (stamps: GuardState['deleted']) => withinWindow(stamps, now, limits.windowMs)
  return {
    kind: 'granted',
    overBudget,
    state: {
      version: 1,
      fence: plan.number,
      ownedNames: owned,
      ownedSources: isWhole ? plan.state.ownedSources : Math.max(state.ownedSources, plan.state.ownedSources),
      deleted: recent(addStamps(state.deleted, deleted, now)),
      gone: recent([...state.gone, ...plan.state.gone]),
      retargeted: recent([...state.retargeted, ...plan.state.retargeted]),
      waiting: plan.state.fence === 0 ? state.waiting : plan.state.waiting,
    },
  }
}
