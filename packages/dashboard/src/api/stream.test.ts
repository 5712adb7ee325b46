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
    needsYou: { set: [], removed: ['held/7c1f0a2b', 'cluster/ap1'] },
    needsYouTotal: 1,
  }
  const after = applyDifference(exampleState, difference)
  expect(after?.hosts).toEqual([held, added, changed])
  expect(after?.hosts[0]).toBe(exampleState.hosts[0])
  expect(after?.clusters).toBe(exampleState.clusters)
  expect(after).toMatchObject({
    version: 'next',
    needsYou: [{ id: 'host/xn--bcher-kva.demo.test' }],
    needsYouTotal: 1,
  })
})

it('a difference to another version does not apply', () => {
  expect(applyDifference(exampleState, { base: 'other', version: 'next' })).toBeUndefined()
})

it('what needs somebody is in the order of harm, then of age', () => {
  const [broken, heldBack, lost] = exampleState.needsYou
  const worse = { ...lost!, severity: 'broken' as const }
  const difference: Difference = {
    base: exampleState.version,
    version: 'next',
    needsYou: { set: [worse], removed: [] },
  }
  expect(applyDifference(exampleState, difference)?.needsYou).toEqual([broken, worse, heldBack])
})

it('events replace those with their id, newest first, and what is an hour older than the newest goes', () => {
  const [newest] = exampleState.lastHour
  const added = { ...newest!, id: 'e5', at: '2026-03-01T03:12:30Z' }
  const again = { ...exampleState.lastHour[1]!, at: '2026-03-01T03:12:00Z', count: 2 }
  const difference: Difference = { base: exampleState.version, version: 'next', events: [added, again] }
  expect(applyDifference(exampleState, difference)?.lastHour).toEqual([added, again, newest])
})
