/**
 * Fields that the server fills in by itself inside atomic values, learnt from its own answers: an apply replaces an
 * atomic value as a whole, so what the answer has there and the intent had not is a default for certain.
 *
 * A default is remembered by kind, place (list positions left out), value, and the names of its siblings in the intent,
 * as some defaults depend on those. Bounded: a full book learns nothing more, and applies are sent instead.
 */
import { apiVersionOf, type Kind } from '../object/object.ts'

export interface DefaultPlace {
  readonly path: string
  readonly siblings: string
  readonly value: unknown
}

export interface LearnedDefaults {
  has(kind: Kind, place: DefaultPlace): boolean
  add(kind: Kind, place: DefaultPlace): void
  /**
   * Whether the answer to one more write of these fields may teach something. The first ones show what there is to learn;
   * what they did not show is learnt from the answer to an apply that changed nothing.
   */
  isOpen(kind: Kind, fields: string): boolean
}

const bookLimit = 2_000
const longestEntry = 1_000
/** Answers by which the defaults of one set of fields are known. */
const lessons = 32

export function createLearnedDefaults(): LearnedDefaults {
  const known = new Set<string>()
  const seen = new WeakMap<Kind, Map<string, number>>()
  return {
    isOpen(kind, fields) {
      let counts = seen.get(kind)
      if (counts === undefined) seen.set(kind, (counts = new Map()))
      const count = counts.get(fields) ?? 0
      if (count >= lessons) return false
      if (count > 0 || counts.size < bookLimit) counts.set(fields, count + 1)
      return true
    },
    has: (kind, place) => known.has(entryOf(kind, place)),
    add(kind, place) {
      const entry = entryOf(kind, place)
      if (known.size < bookLimit && entry.length <= longestEntry) known.add(entry)
    },
  }
}

function entryOf(kind: Kind, { path, siblings, value }: DefaultPlace): string {
  return `${apiVersionOf(kind)} ${kind.kind} ${path} ${siblings} ${JSON.stringify(value)}`
}
