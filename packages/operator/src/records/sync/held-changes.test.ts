import { describe, expect, it } from 'vitest'
import { type Held, HeldChanges } from './held-changes.ts'

const zone = { provider: 'bind', zone: 'a.test.' }
const held = (name: string, more: Partial<Held> = {}): Held => ({
  ...zone,
  name,
  type: 'A',
  code: 'ForeignOwner',
  why: 'because',
  source: `s-${name}`,
  ...more,
})
const names = (items: Iterable<Held>) => Array.from(items, ({ name }) => name)

describe('what is held', () => {
  it('is reported once, and again when the reason changes', () => {
    const changes = new HeldChanges()
    expect(names(changes.replace(zone, 'all', [held('a'), held('b')], 0))).toEqual(['a', 'b'])
    expect(names(changes.replace(zone, 'all', [held('a'), held('b', { code: 'Stale' })], 0))).toEqual(['b'])
    expect(changes.add(held('a'), 0)).toBe(false)
    expect(changes.add(held('a', { code: 'Stale' }), 0)).toBe(true)
  })

  it('is removed only when its name was planned and it is no longer held', () => {
    const changes = new HeldChanges()
    changes.replace(zone, 'all', [held('a'), held('b')], 0)
    changes.replace({ ...zone, zone: 'b.test.' }, 'all', [], 0)
    changes.replace(zone, new Set(['b']), [], 0)
    expect(names(changes.all())).toEqual(['a'])
    expect(names(changes.of('s-a'))).toEqual(['a'])
    expect(names(changes.of('s-b'))).toEqual([])
  })

  it('is due at its time, or after ten minutes, and not again immediately', () => {
    const changes = new HeldChanges()
    changes.replace(zone, 'all', [held('soon', { until: 60_000 }), held('late', { until: 9e9 }), held('never')], 0)
    expect([...changes.takeDue(59_999)]).toEqual([])
    expect([...changes.takeDue(60_000)]).toEqual(['soon'])
    expect([...changes.takeDue(60_001)]).toEqual([])
    expect([...changes.takeDue(600_000)].toSorted()).toEqual(['late', 'never'])
  })

  it('is reported to each of two sources that request one set', () => {
    const changes = new HeldChanges()
    changes.replace(zone, 'all', [held('a', { source: 's1' }), held('a', { source: 's2' })], 0)
    expect([changes.of('s1').length, changes.of('s2').length]).toEqual([1, 1])
  })
})
