import { describe, expect, it } from 'vitest'
import { Subscription } from './subscription.ts'
import { TurnBudget } from '../decode/decode-budget.ts'

/** A budget of one step per turn; the test runs the turns. */
function oneStepBudget() {
  let now = 0
  const turns: (() => void)[] = []
  const budget = new TurnBudget(
    1,
    () => now++,
    (run) => turns.push(run),
  )
  const finish = () => {
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn()
  }
  return { budget, finish }
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

describe('a subscription', () => {
  it('delivers a few changes at once, in the same turn', () => {
    const seen: number[] = []
    const { budget } = oneStepBudget()
    new Subscription<number>(
      (change) => seen.push(change),
      () => undefined,
      budget,
    ).push(range(10), 10)
    expect(seen).toEqual(range(10))
  })

  it('delivers a long batch over several turns, and later changes after it', () => {
    const seen: number[] = []
    const { budget, finish } = oneStepBudget()
    const subscription = new Subscription<number>(
      (change) => seen.push(change),
      () => undefined,
      budget,
    )
    subscription.push(range(100), 100)
    subscription.push([100], 1)
    subscription.push([101], 1)
    expect(seen.length).toBeLessThan(10)
    finish()
    expect(seen).toEqual(range(102))
    subscription.push([102], 1)
    expect(seen.at(-1)).toBe(102)
  })

  it('stops in the middle of a batch when it is cancelled or its handler throws', () => {
    const seen: number[] = []
    const errors: unknown[] = []
    const { budget, finish } = oneStepBudget()
    const failing = new Subscription<number>(
      (change) => {
        seen.push(change)
        if (change === 3) throw new Error('handler')
      },
      (error) => errors.push(error),
      budget,
    )
    failing.push(range(100), 100)
    finish()
    failing.push([7], 1)
    expect([seen, errors.length]).toEqual([[0, 1, 2, 3], 1])
  })
})
