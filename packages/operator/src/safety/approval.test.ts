import { expect, it } from 'vitest'
import { withApproval } from './approval.ts'
import { EMPTY_STATE, type GuardState, withinWindow } from '../records/state/guard-state.ts'

it('the number of approvals in the state is bounded; the newest are kept', () => {
  let state: GuardState = EMPTY_STATE
  for (let index = 0; index < 150; index++) state = withApproval(state, `s-${index}`, [], index)
  expect([state.approvals.length, state.approvals[0]?.id, state.approvals.at(-1)?.id]).toEqual([100, 's-149', 's-50'])
})

it('a time in the future, of a clock that was ahead, counts as now and not for longer', () => {
  const [stamp] = withinWindow([{ at: 5_000, key: 'a' }], 1_000, 100)
  expect(stamp).toEqual({ at: 1_000, key: 'a' })
})
