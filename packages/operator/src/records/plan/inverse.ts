/**
 * Undo of a plan. Every change contains the previous sets, markers included, so the inverse follows from the plan alone:
 * applying the plan and then its inverse restores the zone byte for byte, except for the serial.
 *
 * The executor treats the inverse like any plan: it refuses sets that another program changed since.
 */
import { EMPTY_STATE } from '../state/guard-state.ts'
import type { Change, Op, Plan } from './plan.ts'

export function inverseOf(plan: Plan, number: number): Plan {
  const changes = plan.changes.map(invert).reverse()
  // The base is unknown before the plan was applied; the executor compares set by set instead.
  return {
    ...plan,
    number,
    base: '',
    changes,
    refused: [],
    state: { ...EMPTY_STATE, ownedNames: plan.state.ownedNames },
  }
}

function invert(change: Change): Change {
  const op: Op = change.op === 'create' ? 'delete' : change.op === 'delete' ? 'create' : 'update'
  return {
    ...change,
    op,
    from: change.to,
    to: change.from,
    markers: change.markers.map(({ from, to }) => ({ from: to, to: from })),
    reason: 'Undone',
    message: `takes back: ${change.message}`,
    ttlEffect: change.to?.ttl ?? 0,
    isApproved: true,
  }
}
