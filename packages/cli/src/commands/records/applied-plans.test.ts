import type { Plan } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { groupPlans, printCauses } from './applied-plans.ts'

const start = Date.parse('2026-05-01T10:00:00Z')

function plan(number: number, zone: string, op: 'create' | 'delete', names: string[]): Plan {
  const changes = names.map((name) => ({
    op,
    name: `${name}.${zone}`,
    reason: op === 'create' ? 'Created' : 'SourceGone',
  }))
  return { number, zone, provider: 'bind', changes } as unknown as Plan
}

describe('the list of applied plans', () => {
  const plans = [
    plan(start, 'a.test.', 'create', ['one']),
    plan(start + 60_000, 'a.test.', 'delete', ['one', 'two', 'three']),
    plan(start + 60_000, 'b.test.', 'delete', ['four']),
    plan(start + 64_000, 'a.test.', 'create', ['other']),
    plan(start + 65_000, 'a.test.', 'delete', ['five']),
    plan(start + 90_000, 'a.test.', 'delete', ['six']),
  ]

  it('groups what was done for one cause, over zones and passes, newest first', () => {
    expect(
      groupPlans(plans).map(({ plans: numbers, names }) => [numbers.map((each) => (each - start) / 1000), names]),
    ).toEqual([
      [[90], ['six.a.test.']],
      [
        [65, 60],
        ['five.a.test.', 'four.b.test.', 'one.a.test.', 'three.a.test.', 'two.a.test.'],
      ],
      [[64], ['other.a.test.']],
      [[0], ['one.a.test.']],
    ])
  })

  it('names the records, all of them in the wide form, and how to take a group back', () => {
    const short = printCauses(groupPlans(plans), false)
    expect(short).toContain(`${start + 65_000} ${start + 60_000}  2026-05-01T10:01:05.000Z  delete SourceGone`)
    expect(short).toContain('five.a.test., four.b.test., one.a.test. and 2 more')
    expect(short).toContain('seamark undo PLANS')
    expect(printCauses(groupPlans(plans), true)).toContain('one.a.test., three.a.test., two.a.test.')
    expect(printCauses([], false)).toBe('no applied plan is stored\n')
  })
})
