/** All classes of bad requests together. */
import fc from 'fast-check'
import type { BadRequest, Class } from './bad-request.ts'
import { exchangeClasses } from './exchanges.ts'
import { hugeClasses, objectClasses } from './objects.ts'

const weighted = (classes: readonly Class[], weight: number) => classes.map((arbitrary) => ({ arbitrary, weight }))

/** Any of them, the huge ones rarely. */
export const badRequest: Class = fc.oneof(
  ...weighted([...objectClasses, ...exchangeClasses], 50),
  ...weighted(hugeClasses, 1),
)

/** A few of every class, for servers that are too slow for ten thousand. */
export function samples(perClass: number, seed: number): BadRequest[] {
  return [...objectClasses, ...exchangeClasses, ...hugeClasses].flatMap((arbitrary) =>
    fc.sample(arbitrary, { numRuns: perClass, seed }),
  )
}
