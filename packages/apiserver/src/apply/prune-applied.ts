/**
 * Removes fields that a manager applied before and no longer applies, unless another manager owns them or no manager
 * ever did.
 *
 * Place in the flow: after the merge, before conflict detection.
 */
import { FieldSet } from './field-set.ts'
import type { FieldType } from './field-type.ts'
import type { Managers } from './managers.ts'
import { childType, fieldsOf } from './typed-compare.ts'
import { removeFields } from './typed-remove.ts'

export function pruneApplied(type: FieldType, merged: unknown, managers: Managers, last: FieldSet): unknown {
  if (last.isEmpty()) return merged
  const named = (set: FieldSet): FieldSet => withNamedFields(set, type)
  const mergedSet = named(fieldsOf(type, merged))
  let owned = new FieldSet()
  for (const { set } of managers.values()) owned = owned.union(set)

  const pruned = removeFields(type, merged, named(last))
  const kept = named(fieldsOf(type, pruned)).union(named(owned))
  const withOwned = removeFields(type, merged, mergedSet.difference(kept))

  const keptSet = named(fieldsOf(type, withOwned))
  return removeFields(type, merged, mergedSet.difference(keptSet).intersection(named(last)))
}

/** Declared fields that lead to members count as members: removing all of a struct removes the struct. */
function withNamedFields(set: FieldSet, type: FieldType | undefined): FieldSet {
  if (set.children.size === 0) return set
  const members = new Set(set.members)
  const children = new Map<string, FieldSet>()
  for (const [element, child] of set.children) {
    const isField = element.startsWith('f:')
    if (isField && type?.map?.field(element.slice(2)) !== undefined) members.add(element)
    const inner = isField ? type?.map && childType(type.map, element.slice(2)) : type?.list?.element()
    children.set(element, withNamedFields(child, inner))
  }
  return new FieldSet(members, children)
}
