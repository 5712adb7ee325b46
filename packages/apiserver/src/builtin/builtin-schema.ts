/**
 * Schemas of built-in types, made from the table on first use. A type is one Schema object wherever it occurs, so that
 * everything derived from it is shared; recursive types make cyclic schemas.
 */
import type { Schema } from '../schema/model.ts'
import { OBJECT_META } from '../schema/object-meta.ts'
import type { FieldSpec } from './table.ts'
import { getType } from './table.ts'

const schemas = new Map<string, Schema>([['meta.v1.ObjectMeta', OBJECT_META]])

export function schemaOfType(name: string): Schema {
  let schema = schemas.get(name)
  if (schema !== undefined) return schema
  const type = getType(name)
  schema = { type: 'object', typeName: name }
  if (type.isAtomic) schema['x-kubernetes-map-type'] = 'atomic'
  schemas.set(name, schema)
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  addFields(type.fields, properties, required)
  schema.properties = properties
  if (required.length > 0) schema.required = required
  return schema
}

function addFields(fields: readonly FieldSpec[], properties: Record<string, Schema>, required: string[]): void {
  for (const field of fields) {
    if (field.isInline) {
      addFields(getType(field.base).fields, properties, required)
      continue
    }
    properties[field.name] = schemaOfField(field)
    if (field.isRequired) required.push(field.name)
  }
}

function schemaOfField(field: FieldSpec): Schema {
  const { container, isPointer, isAlways, patchStrategy, mergeKey, listType, listKeys } = field
  const inner = field.isStruct ? schemaOfType(field.base) : scalarSchema(field.base)
  if (container === 'none') return presence(field, inner)
  const schema: Schema =
    container === 'list' ? { type: 'array', items: inner } : { type: 'object', additionalProperties: inner }
  if (patchStrategy !== undefined) schema['x-kubernetes-patch-strategy'] = patchStrategy
  if (mergeKey !== undefined) schema['x-kubernetes-patch-merge-key'] = mergeKey
  if (container === 'map') {
    if (listType === 'atomic') schema['x-kubernetes-map-type'] = 'atomic'
  } else if (listType !== undefined) {
    schema['x-kubernetes-list-type'] = listType
    if (listKeys.length > 0) schema['x-kubernetes-list-map-keys'] = [...listKeys]
  }
  if (isPointer) schema.optional = true
  if (isAlways) schema.zero = null
  return schema
}

/** How the field differs from its type: presence, default, atomicity. A type's own schema is never changed. */
function presence(field: FieldSpec, inner: Schema): Schema {
  const { isPointer, isAlways, patchStrategy, mergeKey, listType } = field
  const extra: Schema = {}
  if (field.default !== undefined) extra.default = field.default
  if (isPointer) extra.optional = true
  if (isAlways) extra.zero = isPointer ? null : zeroOf(field)
  if (patchStrategy !== undefined) extra['x-kubernetes-patch-strategy'] = patchStrategy
  if (mergeKey !== undefined) extra['x-kubernetes-patch-merge-key'] = mergeKey
  if (listType !== undefined && field.isStruct)
    extra['x-kubernetes-map-type'] = listType === 'atomic' ? 'atomic' : 'granular'
  if (Object.keys(extra).length === 0) return inner
  if (inner.properties !== undefined || !field.isStruct) return { ...inner, ...extra }
  // A type that is still being read (recursion): properties arrive later, so they are read through.
  return Object.defineProperty({ ...inner, ...extra }, 'properties', { get: () => inner.properties, enumerable: true })
}

function zeroOf(field: FieldSpec): unknown {
  if (field.isStruct) return {}
  switch (field.base) {
    case 's':
      return ''
    case 'b':
      return false
    case 'i':
    case 'l':
    case 'd':
    case 'I':
      return 0
    case 'Q':
      return '0'
    case 'D':
      return '0s'
    default:
      return null
  }
}

const JSON_SCHEMA_PROPS = 'apiextensions.v1.JSONSchemaProps'

function scalarSchema(code: string): Schema {
  switch (code) {
    case 's':
      return { type: 'string' }
    case 'b':
      return { type: 'boolean' }
    case 'i':
      return { type: 'integer', format: 'int32' }
    case 'l':
      return { type: 'integer', format: 'int64' }
    case 'd':
      return { type: 'number', format: 'double' }
    case 'y':
      return { type: 'string', format: 'byte' }
    case 'T':
    case 'M':
      return { type: 'string', format: 'date-time' }
    case 'D':
      return { type: 'string' }
    case 'Q':
      return { type: 'string', format: 'quantity' }
    case 'I':
      return { type: 'string', format: 'int-or-string', 'x-kubernetes-int-or-string': true }
    case 'X':
      return { type: 'array', items: { type: 'string' } }
    default:
      return freeSchema(code)
  }
}

/** Free JSON is one unit; the alternatives of JSONSchemaProps are checked by their own reader. */
function freeSchema(code: string): Schema {
  const schema: Schema = { 'x-kubernetes-preserve-unknown-fields': true }
  if (code === 'R') schema['x-kubernetes-map-type'] = 'atomic'
  else schema.typeName = `${JSON_SCHEMA_PROPS}Or${{ B: 'Bool', A: 'Array', S: 'StringArray' }[code] ?? ''}`
  return schema
}
