/**
 * The fields that the creator of an object owns, built directly as FieldsV1: the common case of update tracking,
 * without other managers and without a difference. Equal to the comparison with the empty object (verified by a
 * property test).
 */
import { jsonEqual } from '../codec/json-equal.ts'
import type { FieldsV1 } from './field-set.ts'
import { asMap, shapeOf } from './field-type.ts'
import type { FieldType, Fields, ListType, MapType } from './field-type.ts'
import { itemElement } from './list-item.ts'
import { childType } from './typed-compare.ts'

/** Server-set metadata that no manager owns. */
export const UNOWNED_METADATA: ReadonlySet<string> = new Set([
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'clusterName',
  'generation',
  'managedFields',
  'resourceVersion',
])

/**
 * Undefined when nothing is owned. `empty` is the object before creation: only the fields that a new object of the kind
 * always has. `skipped` names top-level fields that this endpoint resets.
 */
export function fieldsOfCreator(
  type: FieldType,
  empty: Fields,
  object: Fields,
  skipped: readonly string[],
): FieldsV1 | undefined {
  const fields: FieldsV1 = {}
  let isEmpty = true
  for (const key of Object.keys(object)) {
    if (key === 'apiVersion' || key === 'kind' || skipped.includes(key)) continue
    const value = object[key]
    const child =
      key === 'metadata'
        ? metadataFields(childType(type.map!, key), value)
        : changed(childType(type.map!, key), Object.hasOwn(empty, key) ? empty[key] : undefined, value)
    if (child === undefined) continue
    fields[`f:${key}`] = child
    isEmpty = false
  }
  return isEmpty ? undefined : fields
}

function metadataFields(type: FieldType, metadata: unknown): FieldsV1 | undefined {
  const fields: FieldsV1 = {}
  let isEmpty = true
  for (const [key, value] of Object.entries(asMap(metadata) ?? {})) {
    if (UNOWNED_METADATA.has(key)) continue
    fields[`f:${key}`] = all(childType(type.map!, key), value)
    isEmpty = false
  }
  return isEmpty ? undefined : fields
}

/**
 * Added and modified fields; undefined when there are none. A value that existed before is not owned itself, only its
 * children.
 */
function changed(type: FieldType, before: unknown, after: unknown): FieldsV1 | undefined {
  if (before === undefined) return all(type, after)
  const shape = shapeOf(type, after)
  if (shape === 'map' && !type.map!.atomic && after !== null) {
    const { '.': _, ...fields } = allOfMap(type.map!, after as Fields, asMap(before))
    if (Object.keys(after as Fields).length > 0) return isEmptyFields(fields) ? undefined : fields
  } else if (shape === 'list' && !type.list!.atomic && Array.isArray(after) && after.length > 0) {
    const { '.': _, ...fields } = allOfList(type.list!, after)
    return fields
  }
  return jsonEqual(before, after) ? undefined : {}
}

function isEmptyFields(fields: FieldsV1): boolean {
  for (const _ in fields) return false
  return true
}

/** All fields of a new value: each node on the path is owned as well. */
function all(type: FieldType, value: unknown): FieldsV1 {
  const shape = shapeOf(type, value)
  if (shape === 'map' && !type.map!.atomic && value !== null) return allOfMap(type.map!, value as Fields)
  if (shape === 'list' && !type.list!.atomic && Array.isArray(value)) return allOfList(type.list!, value)
  return {}
}

function allOfMap(type: MapType, map: Fields, before: Fields = {}): FieldsV1 {
  const keys = Object.keys(map)
  if (keys.length === 0) return {}
  const fields: FieldsV1 = { '.': {} }
  for (const key of keys) {
    const child = changed(childType(type, key), Object.hasOwn(before, key) ? before[key] : undefined, map[key])
    if (child !== undefined) fields[`f:${key}`] = child
  }
  return fields
}

function allOfList(type: ListType, list: unknown[]): FieldsV1 {
  if (list.length === 0) return {}
  const fields: FieldsV1 = { '.': {} }
  for (const item of list) {
    const element = itemElement(type, item)
    fields[element] = Object.hasOwn(fields, element) ? {} : all(type.element(), item)
  }
  return fields
}
