import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createDriftSweep } from './drift-sweep.ts'

it('visits every name exactly once a round, in parts of equal size, and names of a zone that is read as a whole in one step', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.stringMatching(/^[a-z]{1,3}\.[ab]\.test\.$/), { maxLength: 50 }),
      fc.integer({ min: 1, max: 12 }),
      (names, steps) => {
        const sweep = createDriftSweep(steps)
        const isReadByName = (name: string) => name.endsWith('.a.test.')
        for (const round of [1, 2]) {
          const parts = Array.from({ length: steps }, () => [...sweep.next(() => names, isReadByName)])
          expect(parts.flat().toSorted(), `round ${round}`).toEqual(names.toSorted())
          expect(parts.slice(1).flat().every(isReadByName)).toBe(true)
          const alone = names.filter(isReadByName).length
          for (const part of parts)
            expect(part.filter(isReadByName).length).toBeLessThanOrEqual(Math.ceil(alone / steps))
        }
      },
    ),
  )
})
