import { exampleState, exampleStateWith } from '../../testing/index.ts'
import { expect, it } from 'vitest'
import { applyDifference, type Difference } from './stream.ts'

const [held, shop] = exampleStateWith(0).hosts

it('a difference sets, adds and removes by name, in the order of names, and keeps what did not change', () => {
  const changed = { ...shop!, state: 'broken' as const }
  const added = { ...shop!, name: 'm.demo.test' }
  const difference: Difference = {
    base: exampleState.version,
    version: 'next',
    hosts: { set: [changed, added], removed: ['xn--bcher-kva.demo.test'] },
    needsYou: [],
    needsYouTotal: 0,
  }
  const after = applyDifference(exampleState, difference)
  expect(after?.hosts).toEqual([held, added, changed])
  expect(after?.hosts[0]).toBe(exampleState.hosts[0])
  expect(after?.clusters).toBe(exampleState.clusters)
  expect(after).toMatchObject({ version: 'next', needsYou: [], needsYouTotal: 0 })
})

it('a difference to another version does not apply', () => {
  expect(applyDifference(exampleState, { base: 'other', version: 'next' })).toBeUndefined()
})
