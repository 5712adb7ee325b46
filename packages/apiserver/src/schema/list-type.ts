/** Uniqueness in lists of type set and map, at any depth. */
import { duplicate, goJson, invalid } from './field-error.ts'
import type { Cause, Schema } from './model.ts'
import { oncePerSchema, type SchemaCheck } from './schema-check.ts'

/** Undefined when the schema contains no such list. */
export const listTypeCheck = oncePerSchema(compile)

function compile(schema: Schema): SchemaCheck | undefined {
  const parts: SchemaCheck[] = []
  const listType = schema['x-kubernetes-list-type']
  if (listType === 'set') parts.push(checkSet)
  if (listType === 'map') parts.push((value, path, causes) => checkMap(schema, value, path, causes))
  const ofItems = schema.items && listTypeCheck(schema.items)
  if (ofItems !== undefined) {
    parts.push((value, path, causes) => {
      if (Array.isArray(value)) for (const [i, item] of value.entries()) ofItems(item, `${path}[${i}]`, causes)
    })
  }
  const fields = fieldChecks(schema)
  if (fields !== undefined) parts.push(fields)
  if (parts.length === 0) return undefined
  return parts.length === 1 ? parts[0] : (value, path, causes) => parts.forEach((part) => part(value, path, causes))
}

function fieldChecks({ properties = {}, additionalProperties }: Schema): SchemaCheck | undefined {
  const known = new Map<string, SchemaCheck>()
  for (const [name, property] of Object.entries(properties)) {
    const check = listTypeCheck(property)
    if (check !== undefined) known.set(name, check)
  }
  const extra = typeof additionalProperties === 'object' ? listTypeCheck(additionalProperties) : undefined
  if (known.size === 0 && extra === undefined) return undefined
  return (value, path, causes) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    const fields = value as Record<string, unknown>
    for (const [name, check] of known) {
      if (Object.hasOwn(fields, name)) check(fields[name], path === '' ? name : `${path}.${name}`, causes)
    }
    if (extra !== undefined) for (const key of Object.keys(fields)) extra(fields[key], `${path}[${key}]`, causes)
  }
}

function checkSet(value: unknown, path: string, causes: Cause[]): void {
  if (Array.isArray(value)) for (const i of repeated(value)) causes.push(duplicate(`${path}[${i}]`, value[i]))
}

/** Each repeated value once: the index of its second occurrence. */
function repeated(values: readonly unknown[]): number[] {
  if (values.length <= 1) return []
  const counts = new Map<unknown, number>()
  const found: number[] = []
  for (const [i, value] of values.entries()) {
    const key =
      typeof value === 'object' && value !== null
        ? `json ${goJson(value)}`
        : typeof value === 'string'
          ? `text ${value}`
          : value
    const count = counts.get(key) ?? 0
    counts.set(key, count + 1)
    if (count === 1) found.push(i)
  }
  return found
}

function checkMap(schema: Schema, value: unknown, path: string, causes: Cause[]): void {
  if (!Array.isArray(value)) return
  const invalidIndex = value.findIndex((item) => item !== null && (typeof item !== 'object' || Array.isArray(item)))
  if (invalidIndex >= 0) {
    causes.push(
      invalid(`${path}[${invalidIndex}]`, value[invalidIndex], 'must be an object for an array of list-type map'),
    )
    return
  }
  if (value.length <= 1) return
  const names = schema['x-kubernetes-list-map-keys'] ?? []
  const keys = value.map((item: Record<string, unknown> | null) => {
    const key: Record<string, unknown> = {}
    for (const name of names) if (item !== null && Object.hasOwn(item, name)) key[name] = item[name]
    return key
  })
  for (const i of repeated(keys)) causes.push(duplicate(`${path}[${i}]`, keys[i]))
}
