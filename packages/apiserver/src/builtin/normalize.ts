/**
 * Normalises JSON as decoding a built-in object into its Go type and encoding it again does: drops unknown fields and
 * empty values of fields that are omitted when empty, adds fields that are always written. In place.
 *
 * Place in the flow: built-in kinds are normalised after decoding JSON and after every patch, before defaulting, so
 * that the stored object and its field owners equal those of kube-apiserver. Values of a wrong type throw DecodeError
 * with Go's message.
 */
import { isJsonObject } from '../codec/json-object.ts'
import type { JsonObject } from '../codec/json-object.ts'
import type { Schema } from '../schema/model.ts'
import { zeroValue } from '../schema/zero.ts'
import { formatQuantity } from '../cel/quantity.ts'
import { explainTime, normalizeTime } from '../codec/time-text.ts'

/** The server responds 400: `Service in version "v1" cannot be handled as a Service: ` and this message. */
export class DecodeError extends Error {
  readonly code = 'DECODE_FAILED'
  readonly status = 400

  constructor(message: string) {
    super(message)
    this.name = 'DecodeError'
  }
}

interface Location {
  /** Type that holds the field, without its package: `ServicePort`. */
  struct: string
  /** Path from the root without indices: `spec.ports.port`. */
  path: string
}

export function normalizeBuiltin(schema: Schema, object: JsonObject): void {
  normalizeFields(schema, object, { struct: shortName(schema), path: '' })
}

function shortName({ typeName = '' }: Schema): string {
  return typeName.slice(typeName.lastIndexOf('.') + 1)
}

function normalizeFields(schema: Schema, object: JsonObject, location: Location): void {
  const properties = schema.properties ?? {}
  for (const key of Object.keys(object)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (property === undefined) {
      if (key !== 'apiVersion' && key !== 'kind') delete object[key]
      continue
    }
    const value = normalizeValue(property, object[key], {
      struct: location.struct,
      path: location.path === '' ? key : `${location.path}.${key}`,
    })
    if (value === undefined) delete object[key]
    else object[key] = value
  }
  for (const key in properties) {
    const property = properties[key]!
    if (property.zero !== undefined && !Object.hasOwn(object, key)) object[key] = structuredClone(zeroValue(property))
  }
}

/** Undefined: the field is omitted. */
function normalizeValue(schema: Schema, value: unknown, location: Location): unknown {
  if (value === null) return schema.zero === undefined ? undefined : structuredClone(zeroValue(schema))
  const result = normalizePresent(schema, value, location)
  // kube-apiserver stores protobuf, which has no empty lists.
  if (schema.zero !== undefined && Array.isArray(result) && result.length === 0)
    return structuredClone(zeroValue(schema))
  return schema.optional !== true && schema.zero === undefined && isEmpty(schema, result) ? undefined : result
}

/** Encoders never omit empty structs, except fields that are marked so; these have no `zero`. */
function isEmpty(schema: Schema, value: unknown): boolean {
  if (typeof value !== 'object') return value === '' || value === 0 || value === false
  if (value === null) return true
  if (Array.isArray(value)) return value.length === 0
  return schema.type === 'object' && Object.keys(value).length === 0
}

function normalizePresent(schema: Schema, value: unknown, location: Location): unknown {
  switch (schema.type) {
    case 'object':
      if (!isJsonObject(value)) throw wrongType(schema, value, location)
      if (schema.properties !== undefined)
        normalizeFields(schema, value, { struct: shortName(schema), path: location.path })
      else if (typeof schema.additionalProperties === 'object')
        normalizeMap(schema.additionalProperties, value, location)
      return value
    case 'array':
      if (!Array.isArray(value)) throw wrongType(schema, value, location)
      if (schema.items !== undefined) normalizeItems(schema.items, value, location)
      return value
    case 'integer':
      if (
        typeof value !== 'number' ||
        !Number.isInteger(value) ||
        (schema.format === 'int32' && (value | 0) !== value)
      ) {
        throw wrongType(schema, value, location)
      }
      return value
    case 'number':
      if (typeof value !== 'number') throw wrongType(schema, value, location)
      return value
    case 'boolean':
      if (typeof value !== 'boolean') throw wrongType(schema, value, location)
      return value
    case 'string':
      return normalizeString(schema, value, location)
    case undefined:
      return value
  }
}

function normalizeMap(schema: Schema, map: JsonObject, location: Location): void {
  for (const key of Object.keys(map)) map[key] = normalizeElement(schema, map[key], location)
}

function normalizeItems(schema: Schema, list: unknown[], location: Location): void {
  for (let i = 0; i < list.length; i++) list[i] = normalizeElement(schema, list[i], location)
}

/** Inside lists and maps null is the zero value of the element. */
function normalizeElement(schema: Schema, value: unknown, location: Location): unknown {
  if (value !== null) return normalizePresent(schema, value, location)
  if (schema.properties !== undefined) return structuredClone(zeroValue(schema))
  // Free JSON, such as the values of an `enum`, of which null is one.
  if (schema.type === undefined) return null
  if (schema.type === 'array' || schema.format === 'byte' || schema.format === 'date-time') return null
  return schema.type === 'string' ? '' : schema.type === 'boolean' ? false : 0
}

function normalizeString(schema: Schema, value: unknown, location: Location): unknown {
  if (schema['x-kubernetes-int-or-string'] === true || schema.format === 'quantity') {
    if (typeof value === 'number') return schema.format === 'quantity' ? readAmount(String(value)) : value
    if (typeof value !== 'string') throw wrongType(schema, value, location)
    return schema.format === 'quantity' ? readAmount(value) : value
  }
  if (typeof value !== 'string') throw wrongType(schema, value, location)
  return schema.format === 'date-time' ? readTime(value, schema.hasMicroseconds === true) : value
}

function readTime(text: string, hasMicroseconds: boolean): string {
  const problem = explainTime(text, hasMicroseconds)
  if (problem !== undefined) throw new DecodeError(problem)
  return normalizeTime(text, hasMicroseconds)
}

function readAmount(text: string): string {
  const amount = formatQuantity(text)
  if (amount !== undefined) return amount
  throw new DecodeError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
}

function wrongType(schema: Schema, value: unknown, { struct, path }: Location): DecodeError {
  return new DecodeError(
    `json: cannot unmarshal ${jsonKind(schema, value)} into Go struct field ${struct}.${path} of type ${goTypeName(schema)}`,
  )
}

/** A number is reported with its value when its type is right and its value is not. */
function jsonKind(schema: Schema, value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'bool'
  return typeof value === 'number' && schema.type === 'integer' ? `number ${value}` : typeof value
}

function goTypeName(schema: Schema): string {
  if (schema.typeName !== undefined) return schema.typeName.split('.').slice(1).join('.')
  switch (schema.type) {
    case 'array':
      return `[]${schema.items === undefined ? 'interface {}' : goTypeName(schema.items)}`
    case 'object':
      return `map[string]${typeof schema.additionalProperties === 'object' ? goTypeName(schema.additionalProperties) : 'interface {}'}`
    case 'integer':
      return schema.format === 'int32' ? 'int32' : 'int64'
    case 'number':
      return 'float64'
    case 'boolean':
      return 'bool'
    case 'string':
    case undefined:
      break
  }
  if (schema['x-kubernetes-int-or-string'] === true) return 'int32'
  return schema.format === 'byte' ? '[]uint8' : 'string'
}
