/**
 * Unknown fields: dropped from custom resources, listed in warnings and strict errors.
 *
 * Metadata is pruned to ObjectMeta at the root and in embedded resources. Nulls that are not allowed and that no
 * default replaces are dropped as well.
 */
import type { Schema } from './model.ts'
import { OBJECT_META } from './object-meta.ts'

type Fields = Record<string, unknown>

interface Walk {
  dropped: string[]
  /** False: report only. */
  removes: boolean
}

/** Unknown paths, sorted; in place when `removes`. */
export function pruneUnknown(schema: Schema, value: unknown, removes: boolean): string[] {
  const walk: Walk = { dropped: [], removes }
  pruneValue({ ...schema, 'x-kubernetes-embedded-resource': true }, value, '', walk)
  if (schema.typeName === undefined) walk.dropped.sort()
  if (removes) pruneNulls(schema, value)
  return walk.dropped
}

function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}

function pruneValue(schema: Schema | undefined, value: unknown, path: string, walk: Walk): void {
  if (schema?.['x-kubernetes-preserve-unknown-fields'] === true) {
    visitKnown(schema, value, path, walk)
    return
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i]
      if (typeof item === 'object') pruneValue(schema?.items, item, `${path}[${i}]`, walk)
    }
    return
  }
  const fields = asFields(value)
  if (fields === undefined) return
  for (const key of Object.keys(fields)) {
    if (schema !== undefined && pruneMeta(schema, fields, key, path, walk)) continue
    const child = childSchema(schema, key)
    if (child === null) {
      walk.dropped.push(join(path, key))
      if (walk.removes) delete fields[key]
    } else if (typeof fields[key] === 'object') {
      pruneValue(child, fields[key], join(path, key), walk)
    }
  }
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

/** Null: the key is unknown. Undefined: known, without a schema for its content. */
function childSchema(schema: Schema | undefined, key: string): Schema | undefined | null {
  if (schema === undefined) return null
  const { properties, additionalProperties } = schema
  if (properties !== undefined && Object.hasOwn(properties, key)) return properties[key]
  if (additionalProperties === undefined || additionalProperties === false) return null
  return additionalProperties === true ? undefined : additionalProperties
}

/** True for the fields that every embedded object has. */
function pruneMeta(schema: Schema, fields: Fields, key: string, path: string, walk: Walk): boolean {
  if (schema['x-kubernetes-embedded-resource'] !== true) return false
  if (key === 'apiVersion' || key === 'kind') return true
  if (key !== 'metadata') return false
  pruneValue(OBJECT_META, fields[key], join(path, key), walk)
  const metadata = asFields(fields[key])
  if (walk.removes && metadata !== undefined) omitEmpty(OBJECT_META, metadata)
  return true
}

/** Metadata is decoded into its type and encoded again, which drops empty fields. Optional fields are kept. */
function omitEmpty({ properties = {} }: Schema, metadata: Fields): void {
  for (const key of Object.keys(metadata)) {
    const value = metadata[key]
    if (properties[key]?.optional === true && value !== null) continue
    const isEmpty = typeof value === 'object' ? value === null || Object.keys(value).length === 0 : !value
    if (isEmpty) delete metadata[key]
  }
}

/** Unknown fields are kept, but declared fields are pruned. */
function visitKnown(schema: Schema, value: unknown, path: string, walk: Walk): void {
  if (Array.isArray(value)) {
    if (schema.items === undefined) return
    for (const [i, item] of value.entries()) visitKnown(schema.items, item, `${path}[${i}]`, walk)
    return
  }
  const fields = asFields(value)
  if (fields === undefined) return
  for (const key of Object.keys(fields)) {
    if (pruneMeta(schema, fields, key, path, walk)) continue
    const child = childSchema(schema, key)
    if (child !== null && child !== undefined) pruneValue(child, fields[key], join(path, key), walk)
  }
}

function pruneNulls(schema: Schema | undefined, value: unknown): void {
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') pruneNulls(schema?.items, item)
    return
  }
  const fields = asFields(value)
  if (fields === undefined) return
  for (const key in fields) {
    if (typeof fields[key] !== 'object') continue
    const child = childSchema(schema, key) ?? undefined
    if (fields[key] === null) {
      if (child !== undefined && child.nullable !== true && child.default === undefined) delete fields[key]
    } else {
      pruneNulls(child, fields[key])
    }
  }
}
