/** The path element of an item of an associative list: by its key fields, or by its value in a set of scalars. */
import type { ListType } from './field-type.ts'
import { asMap } from './field-type.ts'
import { keyElement, valueElement } from './path-element.ts'

/** A value that does not fit its type; `path` is what precedes the message. */
export class TypedValueError extends Error {
  readonly code = 'TYPED_VALUE_INVALID'
}

export function itemElement(type: ListType, item: unknown): string {
  return type.keys.length > 0 ? keyedElement(type, item) : scalarElement(item)
}

function keyedElement(type: ListType, item: unknown): string {
  if (item === null) throw new TypedValueError('associative list with keys may not have a null element')
  const map = asMap(item)
  if (map === undefined) throw new TypedValueError('associative list with keys may not have non-map elements')
  const entries: [string, unknown][] = []
  for (const key of type.keys) {
    if (Object.hasOwn(map, key)) {
      entries.push([key, map[key]])
    } else {
      const fallback = type.element().map?.defaultOf(key)
      if (fallback !== undefined && fallback !== null) entries.push([key, fallback])
    }
  }
  if (entries.length > 0) return keyElement(entries)
  const keys = type.keys.map((key) => JSON.stringify(key)).join(' ')
  throw new TypedValueError(
    `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`,
  )
}

function scalarElement(item: unknown): string {
  if (item === null) throw new TypedValueError("associative list without keys has an element that's an explicit null")
  if (Array.isArray(item)) throw new TypedValueError('not supported: associative list with lists as elements')
  if (typeof item === 'object')
    throw new TypedValueError("associative list without keys has an element that's a map type")
  return valueElement(item)
}
