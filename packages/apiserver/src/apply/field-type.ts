/**
 * Merge types: schemas reduced to the three shapes of field ownership (scalar, list, map), each list and map either
 * atomic or granular.
 *
 * Place in the flow: apply/ walks objects along these types. They are derived from a schema on first use and cached by
 * schema identity; cyclic schemas (JSONSchemaProps) are supported.
 */
import type { Schema } from '../schema/model.ts'
import { OBJECT_META } from '../schema/object-meta.ts'

type ScalarType = 'numeric' | 'string' | 'boolean' | 'untyped'

export interface ListType {
  atomic: boolean
  /** Names of the key fields of an associative list; empty: a set of scalars. */
  keys: readonly string[]
  element: () => FieldType
}

export interface MapType {
  atomic: boolean
  /** Type of a declared field. */
  field(name: string): FieldType | undefined
  /** Default of a declared field: fills absent keys of associative list items. */
  defaultOf(name: string): unknown
  /** Type of a key that is not declared; undefined when such keys are not allowed. */
  element: (() => FieldType) | undefined
  /** Nothing declared and everything allowed: never reconciled with schema changes. */
  isDeduced: boolean
}

export interface FieldType {
  scalar?: ScalarType
  list?: ListType
  map?: MapType
}

const UNTYPED: FieldType = {
  scalar: 'untyped',
  list: { atomic: true, keys: [], element: () => UNTYPED },
  map: { atomic: true, field: () => undefined, defaultOf: () => undefined, element: () => UNTYPED, isDeduced: false },
}

/** No schema: maps are split, lists are atomic. */
const DEDUCED: FieldType = {
  scalar: 'untyped',
  list: { atomic: true, keys: [], element: () => UNTYPED },
  map: { atomic: false, field: () => undefined, defaultOf: () => undefined, element: () => DEDUCED, isDeduced: true },
}

/** One cache per inherited value of preserve-unknown-fields: a schema node has two types. */
const caches = [new WeakMap<Schema, FieldType>(), new WeakMap<Schema, FieldType>()] as const
const roots = new WeakMap<Schema, FieldType>()

/** Type of a whole object. Its metadata always has the type ObjectMeta. */
export function objectType(schema: Schema | undefined): FieldType {
  if (schema === undefined) return DEDUCED
  let type = roots.get(schema)
  if (type === undefined) roots.set(schema, (type = fieldType(withObjectFields(schema), false)))
  return type
}

function withObjectFields(schema: Schema): Schema {
  const properties = { ...schema.properties, metadata: OBJECT_META, apiVersion: STRING, kind: STRING }
  return { ...schema, type: 'object', properties }
}

const STRING: Schema = { type: 'string' }

function fieldType(schema: Schema, inherited: boolean): FieldType {
  const keepsUnknown = inherited || schema['x-kubernetes-preserve-unknown-fields'] === true
  const cache = caches[inherited ? 1 : 0]
  let type = cache.get(schema)
  if (type === undefined) cache.set(schema, (type = deriveType(schema, keepsUnknown)))
  return type
}

function deriveType(schema: Schema, keepsUnknown: boolean): FieldType {
  if (schema['x-kubernetes-int-or-string'] === true) return { scalar: 'untyped' }
  switch (schema.type) {
    case 'object':
      return { map: deriveMap(schema, keepsUnknown) }
    case 'array':
      return { list: deriveList(schema, keepsUnknown) }
    case 'integer':
    case 'number':
      return { scalar: 'numeric' }
    case 'boolean':
      return { scalar: 'boolean' }
    case 'string':
      return {
        scalar: schema.format === undefined || schema.format === '' || schema.format === 'byte' ? 'string' : 'untyped',
      }
    case undefined:
      break
  }
  return { scalar: 'untyped', list: deriveList(schema, keepsUnknown), map: deriveMap(schema, keepsUnknown) }
}

function deriveList(schema: Schema, keepsUnknown: boolean): ListType {
  const { items } = schema
  const element = items === undefined ? () => UNTYPED : () => fieldType(items, keepsUnknown)
  const listType = schema['x-kubernetes-list-type']
  switch (listType) {
    case 'set':
      return { atomic: false, keys: [], element }
    case 'map':
      return { atomic: false, keys: schema['x-kubernetes-list-map-keys'] ?? [], element }
    case 'atomic':
      return { atomic: true, keys: [], element }
    case undefined:
      break
  }
  const strategy = schema['x-kubernetes-patch-strategy']
  if (strategy !== 'merge' && strategy !== 'merge,retainKeys') return { atomic: true, keys: [], element }
  const key = schema['x-kubernetes-patch-merge-key']
  return { atomic: false, keys: key === undefined ? [] : [key], element }
}

function deriveMap(source: Schema, keepsUnknown: boolean): MapType {
  const schema = source['x-kubernetes-embedded-resource'] === true ? withObjectFields(source) : source
  const { properties, additionalProperties } = schema
  const own = (name: string): Schema | undefined =>
    properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined
  const isFree = properties === undefined || isEmpty(properties)
  return {
    atomic: schema['x-kubernetes-map-type'] === 'atomic',
    field: (name) => {
      const property = own(name)
      return property && fieldType(property, keepsUnknown)
    },
    defaultOf: (name) => own(name)?.default,
    element: elementType(additionalProperties, keepsUnknown, isFree),
    isDeduced: isFree && typeof additionalProperties !== 'object',
  }
}

function elementType(
  additional: Schema | boolean | undefined,
  keepsUnknown: boolean,
  isFree: boolean,
): (() => FieldType) | undefined {
  if (additional === undefined) return keepsUnknown || isFree ? () => DEDUCED : undefined
  if (additional === true) return () => DEDUCED
  if (additional === false) return undefined
  return () => fieldType(additional, keepsUnknown)
}

function isEmpty(record: object): boolean {
  for (const _ in record) return false
  return true
}

export type Shape = 'map' | 'scalar' | 'list'

/** The shape of the type that the value has; a value that fits none (or null) takes the first shape of the type. */
export function shapeOf(type: FieldType, value: unknown): Shape {
  if (Array.isArray(value)) {
    if (type.list !== undefined) return 'list'
  } else if (typeof value === 'object') {
    if (value !== null && type.map !== undefined) return 'map'
  } else if (value !== undefined && type.scalar !== undefined) {
    return 'scalar'
  }
  return type.map !== undefined ? 'map' : type.scalar !== undefined ? 'scalar' : 'list'
}

export type Fields = Record<string, unknown>

export function asMap(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}

export function asList(value: unknown): unknown[] | undefined {
  return Array.isArray(value) ? value : undefined
}
