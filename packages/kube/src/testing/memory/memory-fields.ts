/**
 * FieldsV1 trees of the in-memory cluster, one for all objects with the same fields, and their texts: a test with many objects
 * would otherwise hold and write the same tree for each.
 */
import type { Plain } from './memory-patch.ts'

const trees = new Map<string, Plain>()
const texts = new WeakMap<object, string>()

/** The tree must not be modified afterwards. */
export function internFields(tree: Plain): Plain {
  const text = JSON.stringify(tree)
  const known = trees.get(text)
  if (known !== undefined) return known
  trees.set(text, tree)
  texts.set(tree, text)
  return tree
}

export function fieldsText(tree: object): string {
  return texts.get(tree) ?? JSON.stringify(tree)
}
