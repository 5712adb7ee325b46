/**
 * Decodes the Kubernetes protobuf envelope and the built-in message in it into the JSON shape of the object, as if the
 * client had sent JSON: zero values that only the wire format carries are dropped.
 *
 * Place in the flow: content negotiation calls it for `application/vnd.kubernetes.protobuf` bodies.
 */
import { findTypeName } from '../builtin/builtin.ts'
import type { FieldSpec, TypeSpec } from '../builtin/table.ts'
import { getType, scalarZero } from '../builtin/table.ts'
import { readDuration, readIntOrString, readQuantity, readRaw, readTime } from './well-known.ts'
import { MalformedProtobuf, WireReader } from './wire.ts'

export { MalformedProtobuf } from './wire.ts'

/** The kind has no table; the server responds 415. */
export class UnsupportedKind extends Error {
  readonly code = 'UNSUPPORTED_KIND'
  readonly apiVersion: string
  readonly kind: string

  constructor(apiVersion: string, kind: string) {
    super(`no protobuf table for ${kind} in ${apiVersion}; send JSON`)
    this.name = 'UnsupportedKind'
    this.apiVersion = apiVersion
    this.kind = kind
  }
}

const MAGIC = [0x6b, 0x38, 0x73, 0x00]
/** Exceeds the depth of any valid object; recursive types (JSONSchemaProps) could otherwise exhaust the stack. */
const MAX_DEPTH = 200

export function decodeProtobuf(bytes: Uint8Array): {
  apiVersion: string
  kind: string
  object: Record<string, unknown>
} {
  if (MAGIC.some((byte, i) => bytes[i] !== byte)) {
    throw new MalformedProtobuf(
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    )
  }
  const { apiVersion, kind, raw } = readEnvelope(bytes.subarray(MAGIC.length))
  const typeName = findTypeName(apiVersion, kind)
  if (typeName === undefined) throw new UnsupportedKind(apiVersion, kind)
  const object = { kind, apiVersion, ...readMessage(getType(typeName), raw, 0) }
  return { apiVersion, kind, object }
}

function readEnvelope(bytes: Uint8Array): { apiVersion: string; kind: string; raw: Uint8Array } {
  const reader = new WireReader(bytes)
  const result = { apiVersion: '', kind: '', raw: new Uint8Array(0) }
  while (!reader.isAtEnd()) {
    const { number, wireType } = reader.tag()
    if (number === 1 && wireType === 2) {
      const meta = new WireReader(reader.block())
      while (!meta.isAtEnd()) {
        const field = meta.tag()
        if (field.number === 1 && field.wireType === 2) result.apiVersion = meta.string()
        else if (field.number === 2 && field.wireType === 2) result.kind = meta.string()
        else meta.skip(field.wireType)
      }
    } else if (number === 2 && wireType === 2) {
      result.raw = Uint8Array.from(reader.block())
    } else {
      reader.skip(wireType)
    }
  }
  return result
}

type Fields = Record<string, unknown>

const fieldsByNumber = new WeakMap<TypeSpec, Map<number, FieldSpec>>()

function numbersOf(type: TypeSpec): Map<number, FieldSpec> {
  let numbers = fieldsByNumber.get(type)
  if (numbers === undefined) {
    numbers = new Map(type.fields.map((field) => [field.number, field]))
    fieldsByNumber.set(type, numbers)
  }
  return numbers
}

function readMessage(type: TypeSpec, bytes: Uint8Array, depth: number): Fields {
  if (depth > MAX_DEPTH) throw new MalformedProtobuf('proto: message is nested too deeply')
  const reader = new WireReader(bytes)
  const numbers = numbersOf(type)
  const object: Fields = {}
  while (!reader.isAtEnd()) {
    const { number, wireType } = reader.tag()
    const field = numbers.get(number)
    if (field === undefined) reader.skip(wireType)
    else readField(field, reader, wireType, object, depth)
  }
  fillAlways(type, object)
  return object
}

function readField(field: FieldSpec, reader: WireReader, wireType: number, object: Fields, depth: number): void {
  if (field.isInline) {
    Object.assign(object, readMessage(getType(field.base), reader.block(), depth + 1))
  } else if (field.container === 'list') {
    const list = (object[field.name] ??= []) as unknown[]
    if (wireType === 2 && 'bil'.includes(field.base)) readPacked(field, reader.block(), list)
    else list.push(readValue(field, reader, wireType, depth))
  } else if (field.container === 'map') {
    const map = (object[field.name] ??= {}) as Fields
    const [key, value] = readEntry(field, reader.block(), depth)
    if (key === '__proto__')
      Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true })
    else map[key] = value
  } else {
    const value = readValue(field, reader, wireType, depth)
    if (field.isPointer || field.isAlways || !isZero(value)) object[field.name] = value
    else delete object[field.name]
  }
}

function readPacked(field: FieldSpec, block: Uint8Array, list: unknown[]): void {
  const reader = new WireReader(block)
  while (!reader.isAtEnd()) list.push(field.base === 'b' ? reader.integer() !== 0 : reader.integer())
}

function readEntry(field: FieldSpec, block: Uint8Array, depth: number): [string, unknown] {
  const reader = new WireReader(block)
  let key = ''
  let value: unknown
  while (!reader.isAtEnd()) {
    const { number, wireType } = reader.tag()
    if (number === 1 && wireType === 2) key = reader.string()
    else if (number === 2) value = readValue(field, reader, wireType, depth)
    else reader.skip(wireType)
  }
  return [
    key,
    value ?? readValue(field, new WireReader(new Uint8Array([0])), 'bild'.includes(field.base) ? 0 : 2, depth),
  ]
}

function readValue(field: FieldSpec, reader: WireReader, wireType: number, depth: number): unknown {
  if (!field.isStruct && 'bil'.includes(field.base)) {
    if (wireType !== 0) throw wrongType(field, wireType)
    const value = reader.integer()
    return field.base === 'b' ? value !== 0 : value
  }
  if (!field.isStruct && field.base === 'd') {
    if (wireType !== 1) throw wrongType(field, wireType)
    return reader.double()
  }
  if (wireType !== 2) throw wrongType(field, wireType)
  const block = reader.block()
  return field.isStruct ? readMessage(getType(field.base), block, depth + 1) : readSpecial(field.base, block, depth)
}

function wrongType(field: FieldSpec, wireType: number): MalformedProtobuf {
  return new MalformedProtobuf(`proto: wrong wireType = ${wireType} for field ${field.name}`)
}

function readSpecial(code: string, block: Uint8Array, depth: number): unknown {
  switch (code) {
    case 's':
      return new TextDecoder().decode(block)
    case 'y':
      return Buffer.from(block.buffer, block.byteOffset, block.byteLength).toString('base64')
    case 'T':
      return readTime(block, false)
    case 'M':
      return readTime(block, true)
    case 'D':
      return readDuration(block)
    case 'Q':
      return readQuantity(block)
    case 'I':
      return readIntOrString(block)
    case 'X':
      return readStrings(block, 1)
    case 'R':
      return readRaw(block)
    default:
      return readSchemaChoice(code, block, depth)
  }
}

function readStrings(block: Uint8Array, at: number): string[] {
  const reader = new WireReader(block)
  const list: string[] = []
  while (!reader.isAtEnd()) {
    const { number, wireType } = reader.tag()
    if (number === at && wireType === 2) list.push(reader.string())
    else reader.skip(wireType)
  }
  return list
}

/** JSONSchemaProps or a bool (B), a list of schemas (A), a list of names (S). */
function readSchemaChoice(code: string, block: Uint8Array, depth: number): unknown {
  const reader = new WireReader(block)
  const props = getType('apiextensions.v1.JSONSchemaProps')
  let schema: Fields | undefined
  let allows = false
  const list: unknown[] = []
  while (!reader.isAtEnd()) {
    const { number, wireType } = reader.tag()
    if (code === 'B' && number === 1 && wireType === 0) allows = reader.integer() !== 0
    else if (number === (code === 'B' ? 2 : 1) && wireType === 2) schema = readMessage(props, reader.block(), depth + 1)
    else if (code === 'A' && number === 2 && wireType === 2) list.push(readMessage(props, reader.block(), depth + 1))
    else if (code === 'S' && number === 2 && wireType === 2) list.push(reader.string())
    else reader.skip(wireType)
  }
  if (schema !== undefined) return schema
  return code === 'B' ? allows : list
}

function isZero(value: unknown): boolean {
  if (typeof value !== 'object') return value === '' || value === 0 || value === false
  if (value === null) return true
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0
}

/** Fields that JSON always contains, although they are absent on the wire. */
function fillAlways(type: TypeSpec, object: Fields): void {
  for (const field of type.fields) {
    if (!field.isAlways || Object.hasOwn(object, field.name)) continue
    object[field.name] = zeroOf(field)
  }
}

function zeroOf(field: FieldSpec): unknown {
  if (field.isPointer || field.container !== 'none') return null
  if (field.isStruct) return readMessage(getType(field.base), new Uint8Array(0), 0)
  return scalarZero(field.base)
}
