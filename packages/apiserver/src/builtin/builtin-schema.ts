/**
 * Schemas of built-in types, built from the table on first use. A type is one Schema object wherever it occurs, so that
 * everything derived from it is shared; recursive types produce cyclic schemas.
 */
import type { Schema } from '../schema/model.ts'
import { OBJECT_META } from '../schema/object-meta.ts'
import type { FieldSpec } from './table.ts'
import { getType, scalarZero } from './table.ts'

const schemas = new Map<string, Schema>([['meta.v1.ObjectMeta', OBJECT_META]])

export function schemaOfType(name: string): Schema {
  let schema = schemas.get(name)
  if (schema !== undefined) return schema
  const type = getType(name)
  schema = { type: 'object', typeName: name }
  if (type.isAtomic) schema['x-kubernetes-map-type'] = 'atomic'
  const required = requiredFields(type.fields)
  if (required.length > 0) schema.required = required
  schemas.set(
    name,
    withLazyProperties(schema, () => propertiesOf(type.fields)),
  )
  return schema
}

/** Properties are read from the table on first access: a kind reaches hundreds of types, a request a handful. */
function withLazyProperties(schema: Schema, read: () => Record<string, Schema>): Schema {
  return Object.defineProperty(schema, 'properties', {
    configurable: true,
    enumerable: true,
    get: () => {
      const value = read()
      Object.defineProperty(schema, 'properties', { value, enumerable: true })
      return value
    },
  })
}

function requiredFields(fields: readonly FieldSpec[]): string[] {
  return fields.flatMap((field) => {
    if (field.isInline) return requiredFields(getType(field.base).fields)
    return field.isRequired ? [field.name] : []
  })
}

function propertiesOf(fields: readonly FieldSpec[]): Record<string, Schema> {
  const properties: Record<string, Schema> = {}
  for (const field of fields) {
    if (field.isInline) Object.assign(properties, propertiesOf(getType(field.base).fields))
    else properties[field.name] = schemaOfField(field)
  }
  return properties
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

/** Differences of the field from its type: presence, default, atomicity. The schema of the type is never modified. */
function presence(field: FieldSpec, inner: Schema): Schema {
  const { isPointer, isAlways, patchStrategy, mergeKey, listType } = field
  const extra: Schema = {}
  if (field.default !== undefined) extra.default = field.default
  if (isPointer) extra.optional = true
  if (isAlways) extra.zero = isPointer ? null : field.isStruct ? {} : scalarZero(field.base)
  if (patchStrategy !== undefined) extra['x-kubernetes-patch-strategy'] = patchStrategy
  if (mergeKey !== undefined) extra['x-kubernetes-patch-merge-key'] = mergeKey
  if (listType !== undefined && field.isStruct)
    extra['x-kubernetes-map-type'] = listType === 'atomic' ? 'atomic' : 'granular'
  if (Object.keys(extra).length === 0) return inner
  if (!field.isStruct) return { ...inner, ...extra }
  const { type = 'object', typeName = field.base, required } = inner
  const own: Schema = { type, typeName, ...(required !== undefined && { required }) }
  if (inner['x-kubernetes-map-type'] !== undefined) own['x-kubernetes-map-type'] = inner['x-kubernetes-map-type']
  return withLazyProperties({ ...own, ...extra }, () => inner.properties ?? {})
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
      return { type: 'string', format: 'date-time' }
    case 'M':
      return { type: 'string', format: 'date-time', hasMicroseconds: true }
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

/** Free JSON is atomic; the alternatives of JSONSchemaProps are checked by a separate decoder. */
function freeSchema(code: string): Schema {
  const schema: Schema = { 'x-kubernetes-preserve-unknown-fields': true }
  if (code === 'R') schema['x-kubernetes-map-type'] = 'atomic'
  else schema.typeName = `${JSON_SCHEMA_PROPS}Or${{ B: 'Bool', A: 'Array', S: 'StringArray' }[code] ?? ''}`
  return schema
}
