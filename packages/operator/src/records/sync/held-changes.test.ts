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
  it('is news once, and again when the reason is another', () => {
    const book = new HeldChanges()
    expect(names(book.replace(zone, 'all', [held('a'), held('b')], 0))).toEqual(['a', 'b'])
    expect(names(book.replace(zone, 'all', [held('a'), held('b', { code: 'Stale' })], 0))).toEqual(['b'])
    expect(book.add(held('a'), 0)).toBe(false)
    expect(book.add(held('a', { code: 'Stale' }), 0)).toBe(true)
  })

  it('is forgotten when its name is looked at and it is held no more, and only then', () => {
    const book = new HeldChanges()
    book.replace(zone, 'all', [held('a'), held('b')], 0)
    book.replace({ ...zone, zone: 'b.test.' }, 'all', [], 0)
    book.replace(zone, new Set(['b']), [], 0)
    expect(names(book.all())).toEqual(['a'])
    expect(names(book.of('s-a'))).toEqual(['a'])
    expect(names(book.of('s-b'))).toEqual([])
  })

  it('is due when its time has come, or after ten minutes, and then not at once again', () => {
    const book = new HeldChanges()
    book.replace(zone, 'all', [held('soon', { until: 60_000 }), held('late', { until: 9e9 }), held('never')], 0)
    expect([...book.takeDue(59_999)]).toEqual([])
    expect([...book.takeDue(60_000)]).toEqual(['soon'])
    expect([...book.takeDue(60_001)]).toEqual([])
    expect([...book.takeDue(600_000)].toSorted()).toEqual(['late', 'never'])
  })

  it('is told to each of two sources that want one set', () => {
    const book = new HeldChanges()
    book.replace(zone, 'all', [held('a', { source: 's1' }), held('a', { source: 's2' })], 0)
    expect([book.of('s1').length, book.of('s2').length]).toEqual([1, 1])
  })
})
