/**
 * Persists what a plan spends before its first batch is sent: the fence, and the names it will delete. Pure.
 *
 * This is the second check of the delete budget, at the time of writing: a plan from a file, or of another process, is
 * checked against what was spent since it was made.
 */
import { deleteAllowance } from '../guards/breakers.ts'
import { isMarkerName } from '../../rrset/marker.ts'
import { mergeHeld } from '../plan/held-set.ts'
import { addStamps, type GuardState, withinWindow } from '../state/guard-state.ts'
import type { Limits } from '../plan/limits.ts'
import type { Change, Plan } from '../plan/plan.ts'

export type Reservation =
  | { readonly kind: 'superseded'; readonly fence: number }
  | { readonly kind: 'granted'; readonly state: GuardState; readonly overBudget: ReadonlySet<Change> }

export function reserve(state: GuardState, plan: Plan, limits: Limits, now: number, stateKey: string): Reservation {
  // The same number is the same plan, sent again after a crash.
  if (state.fence > plan.number) return { kind: 'superseded', fence: state.fence }
  const spent = new Set(withinWindow(state.deleted, now, limits.windowMs).map(({ key }) => key))
  const isJudged = plan.state.fence !== 0
  const overBudget = new Set<Change>()
  const deleted: string[] = []
  // A name that keeps a record is not deleted: this is a change of type.
  const kept = new Set(plan.changes.flatMap((change) => (change.to === undefined ? [] : [change.group])))
  const allowance = deleteAllowance(baselineOf(state, plan, spent.size, kept), limits)
  for (const change of plan.changes) {
    // Removing only the marker releases an RRset and deletes no name.
    if (change.op !== 'delete' || change.from === undefined || isMarkerName(change.name)) continue
    if (kept.has(change.group)) continue
    if (change.isApproved !== true && !spent.has(change.name) && spent.size >= allowance) {
      overBudget.add(change)
      continue
    }
    if (change.isApproved !== true) spent.add(change.name)
    deleted.push(change.name)
  }
  const recent = (stamps: GuardState['deleted']) => withinWindow(stamps, now, limits.windowMs)
  return {
    kind: 'granted',
    overBudget,
    state: {
      version: 1,
      fence: plan.number,
      // A plan that no guard evaluated (from a file, a hand-over) does not contain how much is owned after it.
      ownedNames: isJudged ? plan.state.ownedNames : state.ownedNames,
      ownedSources: isJudged ? plan.state.ownedSources : state.ownedSources,
      deleted: recent(addStamps(state.deleted, deleted, now)),
      gone: recent([...state.gone, ...plan.state.gone]),
      retargeted: recent([...state.retargeted, ...plan.state.retargeted]),
      waiting: isJudged ? plan.state.waiting : state.waiting,
      held: isJudged ? mergeHeld(state.held, plan.state.held, plan.scope, plan) : state.held,
      approvals: state.approvals,
      ...(isJudged && {
        decided: { key: stateKey, provider: plan.provider, zone: plan.zone, plan: plan.number, mode: 'enforce' },
      }),
      ...(!isJudged && state.decided !== undefined && { decided: state.decided }),
    },
  }
}

/**
 * Names owned when the window began. The state counts what other plans deleted since this one was made; the plan counts
 * what it read itself. The smaller number applies, so that two concurrent plans share one budget.
 */
function baselineOf(state: GuardState, plan: Plan, spent: number, kept: ReadonlySet<string>): number {
  const lost = new Set(
    plan.changes
      .filter(
        ({ op, from, name, group }) => op === 'delete' && from !== undefined && !isMarkerName(name) && !kept.has(group),
      )
      .map(({ name }) => name),
  )
  const planned = plan.state.ownedNames + lost.size + spent
  return state.ownedNames === 0 ? planned : Math.min(planned, state.ownedNames + spent)
}
