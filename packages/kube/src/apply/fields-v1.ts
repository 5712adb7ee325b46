/**
 * FieldsV1: the tree of paths owned by one field manager, as in managedFields. Parsed once per text: thousands of
 * objects of one controller share a few texts, because UIDs are replaced by a placeholder.
 */

import { UID_MARK } from '../decode/managed-fields.ts'

export interface FieldsItem {
  readonly keys: Readonly<Record<string, unknown>>
  readonly node: Fields
}

export interface Fields {
  /** No children: a leaf, or an atomic value. */
  readonly isLeaf: boolean
  readonly fields: ReadonlyMap<string, Fields>
  /** `k:` items of a list with keys. */
  readonly items: readonly FieldsItem[]
  /** `v:` members of a set, as JSON. */
  readonly values: ReadonlySet<string>
}

/** As escaped inside a JSON string. */
const MASKED_UID = `\\"uid\\":\\"${UID_MARK}\\"`

/** Whether a key value is the placeholder for any UID. */
export function isMasked(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith(UID_MARK)
}

const MAX_CACHED_TEXTS = 2_000
const cache = new Map<string, Fields>()

/** Throws SyntaxError on text that is not JSON. */
export function parseFields(text: string): Fields {
  let parsed = cache.get(text)
  if (parsed === undefined) {
    let count = 0
    // Two masked UIDs would be the same JSON key; numbering keeps both.
    parsed = toFields(JSON.parse(text.replaceAll(MASKED_UID, () => `\\"uid\\":\\"${UID_MARK}${count++}\\"`)))
    if (cache.size >= MAX_CACHED_TEXTS) cache.clear()
    cache.set(text, parsed)
  }
  return parsed
}

function toFields(tree: unknown): Fields {
  const fields = new Map<string, Fields>()
  const items: FieldsItem[] = []
  const values = new Set<string>()
  const entries = Object.entries(tree as Record<string, unknown>)
  for (const [name, below] of entries) {
    const rest = name.slice(2)
    if (name.startsWith('f:')) fields.set(rest, toFields(below))
    else if (name.startsWith('k:')) items.push({ keys: JSON.parse(rest) as FieldsItem['keys'], node: toFields(below) })
    else if (name.startsWith('v:')) values.add(JSON.stringify(JSON.parse(rest)))
  }
  return { isLeaf: fields.size + items.length + values.size === 0, fields, items, values }
}
