/**
 * Fields that the server sets inside atomic values, recorded from its responses: an apply replaces an atomic value as a
 * whole, so a field in the response that is not in the intent is certainly a default.
 *
 * A default is identified by kind, path (without list positions), value, and the names of its siblings in the intent,
 * because some defaults depend on those. Bounded: when full, nothing more is recorded, and applies are sent instead.
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
   * Whether the response to another write of these fields should be evaluated. The first responses contain most
   * defaults; others are recorded from the response to an apply that changed nothing.
   */
  isOpen(kind: Kind, fields: string): boolean
}

const MAX_ENTRIES = 2_000
const MAX_ENTRY_LENGTH = 1_000
/** Responses evaluated per set of fields. */
const MAX_RESPONSES = 32

export function createLearnedDefaults(): LearnedDefaults {
  const known = new Set<string>()
  const seen = new WeakMap<Kind, Map<string, number>>()
  return {
    isOpen(kind, fields) {
      let counts = seen.get(kind)
      if (counts === undefined) seen.set(kind, (counts = new Map()))
      const count = counts.get(fields) ?? 0
      if (count >= MAX_RESPONSES) return false
      if (count > 0 || counts.size < MAX_ENTRIES) counts.set(fields, count + 1)
      return true
    },
    has: (kind, place) => known.has(entryOf(kind, place)),
    add(kind, place) {
      const entry = entryOf(kind, place)
      if (known.size < MAX_ENTRIES && entry.length <= MAX_ENTRY_LENGTH) known.add(entry)
    },
  }
}

function entryOf(kind: Kind, { path, siblings, value }: DefaultPlace): string {
  return `${apiVersionOf(kind)} ${kind.kind} ${path} ${siblings} ${JSON.stringify(value)}`
}
