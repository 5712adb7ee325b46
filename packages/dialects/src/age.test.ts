import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Aged, compareAge } from './age.ts'

const word = fc.constantFrom('a', 'b', 'c')
const aged = fc.record<Aged>({
  createdAt: fc.constantFrom('', '2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z'),
  namespace: word,
  name: word,
  kind: word,
})

it('decides creation time, then namespace, name and kind', () => {
  const base = { createdAt: '2026-01-01T00:00:01Z', namespace: 'b', name: 'b', kind: 'b' }
  const older = [
    { ...base, createdAt: '2026-01-01T00:00:00Z', namespace: 'c', name: 'c', kind: 'c' },
    { ...base, namespace: 'a', name: 'c', kind: 'c' },
    { ...base, name: 'a', kind: 'c' },
    { ...base, kind: 'a' },
  ]
  for (const each of older) expect(compareAge(each, base)).toBeLessThan(0)
})

it('an object that is not created yet is younger than all that are', () => {
  const created = { createdAt: '2026-01-01T00:00:00Z', namespace: 'b', name: 'b', kind: 'b' }
  expect(compareAge({ createdAt: '', namespace: 'a', name: 'a', kind: 'a' }, created)).toBeGreaterThan(0)
})

it('is a total order that is 0 for one object only', () => {
  fc.assert(
    fc.property(aged, aged, aged, (a, b, c) => {
      expect(Math.sign(compareAge(a, b))).toBe(0 - Math.sign(compareAge(b, a)))
      if (compareAge(a, b) === 0) expect(a).toEqual(b)
      if (compareAge(a, b) <= 0 && compareAge(b, c) <= 0) expect(compareAge(a, c)).toBeLessThanOrEqual(0)
    }),
  )
})
