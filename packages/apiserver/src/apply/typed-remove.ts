/** Removes a set of fields from an object along its type. Pure; unchanged parts are shared. */
import { setOwn } from '../codec/json-object.ts'
import type { FieldSet } from './field-set.ts'
import { asList, asMap, shapeOf } from './field-type.ts'
import type { FieldType, Fields } from './field-type.ts'
import { itemElement } from './list-item.ts'
import { fieldElement } from './path-element.ts'
import { childType } from './typed-compare.ts'

/** Null when nothing remains: an emptied map or list becomes an explicit null. */
export function removeFields(type: FieldType, value: unknown, fields: FieldSet): unknown {
  const shape = shapeOf(type, value)
  if (shape === 'map') return removeFromMap(type, asMap(value), fields)
  if (shape === 'list') return removeFromList(type, asList(value), fields)
  return value
}

function removeFromMap(type: FieldType, map: Fields | undefined, fields: FieldSet): Fields | null {
  if (map === undefined || type.map!.atomic) return null
  const out: Fields = {}
  let isEmpty = true
  for (const key of Object.keys(map)) {
    const element = fieldElement(key)
    if (fields.members.has(element)) continue
    const below = fields.below(element)
    setOwn(out, key, below === undefined ? map[key] : removeFields(childType(type.map!, key), map[key], below))
    isEmpty = false
  }
  return isEmpty ? null : out
}

function removeFromList(type: FieldType, list: unknown[] | undefined, fields: FieldSet): unknown[] | null {
  if (list === undefined || type.list!.atomic) return null
  const out: unknown[] = []
  for (const item of list) {
    const element = itemElement(type.list!, item)
    if (fields.members.has(element)) continue
    const below = fields.below(element)
    out.push(below === undefined ? item : removeFields(type.list!.element(), item, below))
  }
  return out.length === 0 ? null : out
}
