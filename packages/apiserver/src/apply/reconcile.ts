/**
 * Reconciles stored ownership with a schema that changed from granular to atomic: a manager that owned parts of a now
 * atomic field owns the whole field.
 */
import { FieldSet } from './field-set.ts'
import type { FieldType } from './field-type.ts'
import { childType } from './typed-compare.ts'

export function reconcileWithType(set: FieldSet, type: FieldType): FieldSet {
  const atoms = new FieldSet()
  collectAtoms(set, type, false, [], atoms)
  return atoms.isEmpty() ? set : set.differenceWithBelow(atoms).union(atoms)
}

/** The paths at which `set` has members below an atomic field. */
function collectAtoms(
  set: FieldSet | undefined,
  type: FieldType,
  isWhole: boolean,
  path: string[],
  atoms: FieldSet,
): void {
  if (type.map !== undefined) {
    const { map } = type
    if (map.isDeduced) return
    if (!isWhole && map.atomic) {
      if (set !== undefined && !set.isEmpty()) atoms.insert(path)
      return
    }
    visit(set, path, atoms, (element) => {
      if (!element.startsWith('f:')) return map.element?.()
      const name = element.slice(2)
      return map.field(name) === undefined && map.element === undefined ? undefined : childType(map, name)
    })
  } else if (type.scalar === undefined && type.list !== undefined) {
    const { list } = type
    if (!isWhole && list.atomic) atoms.insert(path)
    else visit(set, path, atoms, () => list.element())
  }
}

function visit(
  set: FieldSet | undefined,
  path: string[],
  atoms: FieldSet,
  typeOf: (element: string) => FieldType | undefined,
): void {
  if (set === undefined) return
  for (const element of new Set([...set.children.keys(), ...set.members])) {
    const type = typeOf(element)
    if (type === undefined) continue
    const child = set.children.get(element)
    collectAtoms(child, type, set.members.has(element) && child === undefined, [...path, element], atoms)
  }
}
