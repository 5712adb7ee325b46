import { describe, expect, it } from 'vitest'
import { NOW, plan, record, want, ZONE } from '../../../testing/plan-fixture.ts'
import { DEFAULT_LIMITS } from '../plan/limits.ts'
import type { Plan } from '../plan/plan.ts'
import type { HeldChange } from '../../safety/held-change.ts'
import { EMPTY_STATE, type GuardState } from '../state/guard-state.ts'
import { reserve } from './reservation.ts'

const HELD: HeldChange = {
  name: `held.${ZONE}`,
  type: 'A',
  op: 'delete',
  code: 'Quarantined',
  why: 'the budget is spent',
  source: 's-held',
  key: 'k',
  since: NOW,
}
const made = plan({ desired: [want(record('new', 'A', ['192.0.2.1']))], number: NOW })
const state: GuardState = {
  ...EMPTY_STATE,
  fence: NOW - 1,
  ownedNames: 40,
  ownedSources: 30,
  waiting: new Map([[`held.${ZONE} A`, NOW - 1]]),
  held: [HELD],
  decided: { key: 'z', provider: 'memory', zone: ZONE, plan: NOW - 1, mode: 'enforce' },
}

function granted(before: GuardState, of: Plan): GuardState {
  const reservation = reserve(before, of, DEFAULT_LIMITS, NOW, 'z')
  if (reservation.kind !== 'granted') throw new Error(reservation.kind)
  return reservation.state
}

describe('a reservation', () => {
  it('keeps what another plan spent since this one was made', () => {
    const spent = { ...state, gone: [{ at: NOW, key: 's-1' }], retargeted: [{ at: NOW, key: 'a' }] }
    const other = { ...made.state, gone: [{ at: NOW, key: 's-2' }], retargeted: [{ at: NOW, key: 'b' }] }
    const { gone, retargeted } = granted(spent, { ...made, state: other })
    expect([gone, retargeted].map((stamps) => stamps.map(({ key }) => key))).toEqual([
      ['s-1', 's-2'],
      ['a', 'b'],
    ])
  })

  it('of a plan that no guard evaluated changes nothing of what the guards decided', () => {
    const { ownedNames, ownedSources, waiting, held, decided } = granted(state, { ...made, state: EMPTY_STATE })
    expect({ ownedNames, ownedSources, waiting, held, decided }).toEqual({
      ownedNames: 40,
      ownedSources: 30,
      waiting: state.waiting,
      held: [HELD],
      decided: state.decided,
    })
  })

  it('of a plan that guards evaluated takes over their decisions', () => {
    const { ownedNames, waiting, decided } = granted(state, made)
    expect([ownedNames, waiting.size, decided?.plan]).toEqual([1, 0, NOW])
  })
})
