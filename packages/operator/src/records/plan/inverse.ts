/**
 * Taking a plan back. Every change carries what was there before, markers included, so a plan is its own inverse's base:
 * plan, then inverse, leaves the zone byte for byte as it was, but for the serial.
 *
 * The inverse passes the executor like any plan: it is refused for sets that somebody changed since.
 */
import { EMPTY_STATE } from '../state/guard-state.ts'
import type { Change, Op, Plan } from './plan.ts'

export function inverseOf(plan: Plan, number: number): Plan {
  const changes = plan.changes.map(invert).reverse()
  // The base is not known before the plan was applied; the executor compares set by set instead.
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
