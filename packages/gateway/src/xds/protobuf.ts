/**
 * Messages of Envoy's API as bytes. Their types and their descriptor are generated (envoy-api.ts): a field that the API does
 * not have is a type error, and protobufjs encodes and decodes.
 *
 * Messages are plain objects in the form that protobufjs encodes: enums are numbers (`Enums`), wrappers are
 * `{ value }`, durations `{ seconds, nanos }`, and `google.protobuf.Any` is made by `packAny`.
 */
import protobuf from 'protobufjs/light.js'
import { DESCRIPTOR, type Messages } from './envoy-api.ts'

export { Enums } from './envoy-api.ts'

export type MessageName = keyof Messages
export type Message<N extends MessageName> = Messages[N]
export type Any = Message<'google.protobuf.Any'>

const root = protobuf.Root.fromJSON(DESCRIPTOR)
const TYPE_PREFIX = 'type.googleapis.com/'

export function encode<N extends MessageName>(name: N, message: Message<N>): Uint8Array {
  return typeOf(name).encode(message).finish()
}

/** Throws if the bytes are not a message of this type. Absent fields have their default values. */
export function decode<N extends MessageName>(name: N, bytes: Uint8Array): Required<Message<N>> {
  return typeOf(name).decode(bytes) as unknown as Required<Message<N>>
}

export function typeUrlOf(name: MessageName): string {
  return `${TYPE_PREFIX}${name}`
}

export function packAny<N extends MessageName>(name: N, message: Message<N>): Any {
  return { type_url: typeUrlOf(name), value: encode(name, message) }
}

export function durationOf(ms: number): Message<'google.protobuf.Duration'> {
  const seconds = Math.trunc(ms / 1_000)
  return { seconds, nanos: Math.round((ms - seconds * 1_000) * 1_000_000) }
}

/** The JSON form of protobuf, with the field names of the `.proto` files: what a configuration file of Envoy contains. */
export function toJson(name: MessageName, bytes: Uint8Array): unknown {
  const type = typeOf(name)
  return jsonOf(type, type.decode(bytes))
}

const types = new Map<string, protobuf.Type>()

function typeOf(name: string): protobuf.Type {
  let type = types.get(name)
  if (type === undefined) types.set(name, (type = root.lookupType(name)))
  return type
}

function jsonOf(type: protobuf.Type, message: object): unknown {
  const fields = message as Record<string, unknown>
  const own = (name: string): unknown => (Object.hasOwn(fields, name) ? fields[name] : undefined)
  switch (type.fullName.slice(1)) {
    case 'google.protobuf.Any': {
      const { type_url: url, value } = message as Required<Any>
      const packed = typeOf(url.slice(TYPE_PREFIX.length))
      return { '@type': url, ...(jsonOf(packed, packed.decode(value)) as object) }
    }
    case 'google.protobuf.Duration':
      return `${Number(own('seconds') ?? 0) + Number(own('nanos') ?? 0) / 1e9}s`
    case 'google.protobuf.UInt32Value':
    case 'google.protobuf.BoolValue':
    case 'google.protobuf.DoubleValue':
      return own('value') ?? (type.name === 'BoolValue' ? false : 0)
    default:
      return Object.fromEntries(
        type.fieldsArray.flatMap((field) => {
          const value = own(field.name)
          if (value === undefined || value === null || isEmpty(field, value)) return []
          return [[field.name, fieldJson(field.resolve(), value)]]
        }),
      )
  }
}

function isEmpty({ map, repeated }: protobuf.Field, value: unknown): boolean {
  return (map || repeated) && Object.keys(value as object).length === 0
}

function fieldJson(field: protobuf.Field, value: unknown): unknown {
  if (field.map)
    return Object.fromEntries(Object.entries(value as object).map(([key, each]) => [key, valueJson(field, each)]))
  return field.repeated ? (value as unknown[]).map((each) => valueJson(field, each)) : valueJson(field, value)
}

function valueJson({ resolvedType }: protobuf.Field, value: unknown): unknown {
  if (resolvedType instanceof protobuf.Enum) return resolvedType.valuesById[Number(value)] ?? value
  if (resolvedType instanceof protobuf.Type) return jsonOf(resolvedType, value as object)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  // 64-bit integers are objects with two halves; those of resources are small.
  return typeof value === 'object' ? Number(value) : value
}
