import { describe, expect, it } from 'vitest'
import { findCondition, isConditionTrue, microTimestamp, setCondition, type Condition } from './conditions.ts'

const at = (seconds: number) => Date.UTC(2030, 0, 1, 0, 0, seconds)
const ready = (status: Condition['status'], message = 'm') => ({ type: 'Ready', status, reason: 'Because', message })

describe('conditions', () => {
  it('change lastTransitionTime only when the status changes', () => {
    const first = setCondition(undefined, ready('False'), at(0))
    const reworded = setCondition(first, ready('False', 'other words'), at(5))
    const flipped = setCondition(reworded, ready('True'), at(9))
    expect(findCondition(first, 'Ready')?.lastTransitionTime).toBe('2030-01-01T00:00:00Z')
    expect(reworded).toEqual([{ ...ready('False', 'other words'), lastTransitionTime: '2030-01-01T00:00:00Z' }])
    expect(findCondition(flipped, 'Ready')?.lastTransitionTime).toBe('2030-01-01T00:00:09Z')
    expect([isConditionTrue(first, 'Ready'), isConditionTrue(flipped, 'Ready')]).toEqual([false, true])
  })

  it('are returned as the same array when nothing changed, and keep the order of the others', () => {
    const other = { type: 'Other', status: 'True', reason: 'R', message: '', lastTransitionTime: 'x' } as const
    const list = [...setCondition([other], ready('True'), at(0)), { ...other, type: 'Third' }]
    expect(setCondition(list, ready('True'), at(1))).toBe(list)
    expect(setCondition(list, ready('False'), at(1)).map(({ type }) => type)).toEqual(['Other', 'Ready', 'Third'])
    expect(setCondition(list, { ...ready('True'), observedGeneration: 2 }, at(1))).not.toBe(list)
  })

  it('format MicroTime with six digits', () => {
    expect(microTimestamp(at(1) + 7)).toBe('2030-01-01T00:00:01.007000Z')
  })
})
